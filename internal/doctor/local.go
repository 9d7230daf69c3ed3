package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// noConfig is why checks of the services' own machine cannot run.
const noConfig = "needs the services' configuration: run leeway doctor --config FILE on their machine"

func checkConfig(_ context.Context, e *examination) []Finding {
	l := e.cfg.Local
	if l == nil {
		return skipped("%s", noConfig)
	}
	var list []Finding
	for _, p := range l.Problems {
		list = append(list, fail("config-invalid", p, "correct the file; leeway config check FILE lists all")...)
	}
	for _, key := range l.Secrets {
		list = append(list, fail("turn-secret", key+" is none of turn.secrets: the relay refuses every viewer", "write one secret in both (leeway secret makes one)")...)
	}
	if list == nil {
		return ok("the configuration is one that the services start with")
	}
	return list
}

// checkBus joins NATS as the services do.
func checkBus(ctx context.Context, e *examination) []Finding {
	l := e.cfg.Local
	switch {
	case l == nil:
		return skipped("%s", noConfig)
	case l.Bus == nil:
		return skipped("the configuration names no NATS server (nats.url): one process has its own")
	}
	err := l.Bus(ctx)
	switch {
	case err == nil:
		return ok("NATS takes this configuration's user")
	case strings.Contains(strings.ToLower(err.Error()), "authoriz"), strings.Contains(strings.ToLower(err.Error()), "authentic"):
		return fail("nats-refused", err.Error(), "set nats.user and nats.password (or nkey_file, credentials_file) as the server has them")
	}
	return fail("nats-unreachable", err.Error(), "start the NATS server, or correct nats.url; open its port (4222/tcp)")
}

// checkOrigin fetches manifest and segment below fetch_base by the seed's own client.
func checkOrigin(ctx context.Context, e *examination) []Finding {
	l := e.cfg.Local
	if l == nil {
		return skipped("%s", noConfig)
	}
	var list []Finding
	for _, o := range l.Origins {
		if o.Closed != nil {
			list = append(list, fail("seed-origin-closed", "no seed can ask "+o.Base+" with this configuration: "+o.Closed.Error(),
				"correct fetch_auth of the site, or seed.private; if the files are the seed's alone, run leeway doctor as its user")...)
		}
	}
	return append(list, l.fetched(ctx, e)...)
}

// fetched gets the manifest from the origin of the site that it is of.
func (l *Local) fetched(ctx context.Context, e *examination) []Finding {
	if e.cfg.Manifest == "" {
		return skipped("no manifest was given")
	}
	var hosts []string
	for _, o := range l.Origins {
		k, err := o.Site.Key(e.cfg.Manifest)
		if err != nil {
			hosts = append(hosts, o.Site.Hosts()...)
			continue
		}
		if o.Closed != nil {
			return nil
		}
		path, _, _ := strings.Cut(k, "?")
		if err := o.follow(ctx, e, path); err != nil {
			return o.refused(err)
		}
		return ok("a seed gets manifest and segment of site %s from %s", o.Site.Name(), o.Base)
	}
	if len(l.Origins) == 0 {
		return fail("no-fetch-base", "no site of the configuration has a fetch_base: seeds serve none", "set fetch_base of the site to the URL of your origin, or of the CDN before it")
	}
	return fail("foreign-manifest", "the manifest is on none of the hosts of the configuration's sites that have a fetch_base: "+strings.Join(hosts, ", "),
		"add "+strings.TrimPrefix(strings.TrimPrefix(originOf(e.cfg.Manifest), "https://"), "http://")+" to hosts of the site, or give it a fetch_base")
}

// follow goes from a manifest's path to a segment.
func (o Origin) follow(ctx context.Context, e *examination, path string) error {
	var imports playlist.Variables
	for range 3 { // master, media, segment
		got, err := o.Origin.Get(ctx, seed.Fetch{Path: path, MaxBytes: playlist.MaxBytes})
		if err != nil {
			return err
		}
		renditions, listed, err := playlist.List(o.Site, path, imports, got.Data, e.cfg.Now())
		switch {
		case err != nil:
			return err
		case listed != nil && len(listed.Segments) > 0:
			return o.fetch(ctx, listed.Segments[len(listed.Segments)/2])
		case renditions != nil && len(renditions.Paths) > 0:
			path, imports = renditions.Paths[0], renditions.Variables
		case renditions != nil && len(renditions.Representations) > 0:
			rep := renditions.Representations[0]
			if len(rep.Segments) == 0 {
				return o.fetch(ctx, rep.Indexes[0].Entry) // it has one of the two, and its segments are ranges of the same file
			}
			return o.fetch(ctx, rep.Segments[len(rep.Segments)/2])
		default:
			return errors.New("the playlist lists nothing of the site's hosts")
		}
	}
	return errors.New("playlists lead to playlists")
}

// fetch gets a segment as a seed does that is to pass it on.
func (o Origin) fetch(ctx context.Context, s playlist.Entry) error {
	_, err := o.Origin.Get(ctx, seed.Fetch{Path: s.Path, Ranged: s.Ranged, First: s.First, Last: s.Last, MaxBytes: segment.MaxLength, Shared: true})
	return err
}

// refused explains what a seed is refused for.
func (o Origin) refused(err error) []Finding {
	var f *seed.FetchError
	if !errors.As(err, &f) {
		return fail("seed-origin-playlist", "a seed reads "+o.Base+" and finds: "+err.Error(), "have fetch_base lead to the same files as hosts of the site")
	}
	fixes := map[seed.Outcome]string{
		seed.OutcomeNotFound: "correct fetch_base: fetch_base and the path of the manifest make the URL that a seed asks for",
		seed.OutcomeClient:   "let the seed's machine in: allow its address or its User-Agent (leeway-seed) at the origin, set fetch_auth of the site if the origin asks for a header or a signature (docs/operations/signed-urls.md), or give it a fetch_base of its own",
		seed.OutcomeServer:   "look at the origin's log: it fails",
		seed.OutcomeTimeout:  "open the way from the seed's machine to fetch_base: nothing answers in time",
		seed.OutcomeNetwork:  "correct fetch_base: from the seed's machine nothing listens there, or its TLS certificate is not trusted",
		seed.OutcomeTooLarge: "make segments smaller than 8 MiB, and playlists and MPDs smaller than 4 MiB: seeds take no more",
		seed.OutcomeRefused:  "list the origin's private range in seed.private, a redirect's target in seed.redirects; or have the origin send segments without cookies, private, no-store and Vary",
	}
	return fail("seed-origin-"+string(f.Outcome), fmt.Sprintf("a seed cannot have %s%s: %v", o.Base, f.Path, f.Cause), fixes[f.Outcome])
}

func checkBuffers(_ context.Context, e *examination) []Finding {
	l := e.cfg.Local
	if l == nil || l.Buffers == nil {
		return skipped("%s", noConfig)
	}
	read, write, err := l.Buffers()
	switch {
	case err != nil:
		return skipped("no socket could be opened: %v", err)
	case read < l.Want || write < l.Want:
		return warn("udp-buffers", fmt.Sprintf("the kernel gives a socket %d and %d bytes; a seed asks for %d", read, write, l.Want),
			fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%[1]d (docs/operations/network.md, UDP buffers)", l.Want))
	}
	return ok("the kernel gives sockets %d bytes", min(read, write))
}

func checkFiles(ctx context.Context, e *examination) []Finding {
	l := e.cfg.Local
	if l == nil || l.Files == nil {
		return skipped("%s", noConfig)
	}
	n, of := l.Files(ctx)
	if n == 0 {
		return skipped("the system does not say")
	}
	if n < uint64(max(0, l.Sessions)) {
		return warn("file-limit", fmt.Sprintf("%s may have %d files; tracker.max_sessions wants %d", of, n, l.Sessions), "raise the limit (ulimit -n, LimitNOFILE= of the unit), or lower tracker.max_sessions")
	}
	return ok("%s may have %d files, which suffice for tracker.max_sessions", of, n)
}

// checkAdmin tries whether strangers reach the admin port. Asked by a name that is none of admin.hosts it answers 421, and by its
// address it would answer all.
func checkAdmin(ctx context.Context, e *examination) []Finding {
	var list []Finding
	if l := e.cfg.Local; l != nil {
		for _, key := range sortedKeys(l.Admins) {
			if host, _, err := net.SplitHostPort(l.Admins[key]); err == nil && !onlyHere(host) {
				list = append(list, warn("admin-wide", key+" listens on "+l.Admins[key]+": metrics answer every client that reaches it",
					"bind it to 127.0.0.1 or to an address of your own network, and close the port to others")...)
			}
		}
	}
	u, err := url.Parse(e.cfg.Tracker)
	switch {
	case e.cfg.Tracker == "" || err != nil:
		return append(list, skipped("no tracker was given, whose host would be tried")...)
	case loopbackHost(e.cfg.Tracker):
		return append(list, skipped("the tracker is on this machine, from where its admin port may be reached")...)
	}
	at := net.JoinHostPort(u.Hostname(), e.cfg.AdminPort)
	a := e.get(ctx, "admin", "http://"+at+"/metrics", maxSample, 0, false)
	if a.err == nil && (a.response.StatusCode == http.StatusOK && strings.Contains(string(a.body), "leeway_") || a.response.StatusCode == http.StatusMisdirectedRequest) {
		return append(list, fail("admin-public", "the admin port answers here: http://"+at+"/metrics", "close it in the firewall, or bind tracker.admin to 127.0.0.1 or a network of your own")...)
	}
	return append(list, ok("%s is not an admin port that answers here", at)...)
}

// onlyHere says whether an address is of this machine alone.
func onlyHere(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
