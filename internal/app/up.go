package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/webdist"
)

// upCmd is `leeway up`.
//
// Large: a field for each flag.
type upCmd struct {
	Listen       *string  `help:"Address of page, script, tracker and film." placeholder:"HOST:PORT" key:"up.listen"`
	TLSCert      *string  `name:"tls-cert" help:"TLS certificate of the listen address (PEM), read again when it changes." placeholder:"FILE" key:"tracker.cert_file"`
	TLSKey       *string  `name:"tls-key" help:"Key of the certificate (PEM)." placeholder:"FILE" key:"tracker.key_file"`
	Admin        *string  `help:"Address of metrics, health, purge and switch." placeholder:"HOST:PORT" key:"up.admin"`
	SeedListen   *string  `help:"UDP address of the seed." placeholder:"HOST:PORT" key:"seed.listen"`
	SeedAllow    []string `help:"Private addresses of viewers that the seed may send to. A range, an address, or an address and port." placeholder:"PEER" key:"seed.allow"`
	ProbeListen  *string  `help:"Address of the network check." placeholder:"HOST:PORT" key:"probe.listen"`
	DataDir      *string  `help:"Folder of keys and the seed's store." placeholder:"DIR" key:"up.data_dir"`
	Open         *bool    `help:"Let any program that can reach the address join." key:"up.open"`
	pictureFlags `set:"section=up"`
	Site         *string `help:"Serve a site of yours instead of the film: a file with its configuration." placeholder:"FILE" key:"up.site" xor:"what,live"`
	OriginRate   *int    `help:"Experiment: bytes per second of each viewer's connection to the origin." placeholder:"N" key:"up.origin_rate" group:"Experiments"`
	Control      *int    `help:"Control group: how many of a thousand viewers only the origin serves (default 0)." name:"control-group" placeholder:"PERMILLE" key:"up.control_group_permille" group:"Experiments"`
	Prefetch     *bool   `help:"Let the film's viewers prefetch in the background lane (default yes)." negatable:"" key:"up.prefetch" group:"Experiments"`
	SignLive     *bool   `help:"Sign the digests of a live stream as it is published, as a packager does (default yes)." negatable:"" key:"up.sign_live" group:"Experiments"`
	SignFilm     *bool   `help:"Sign the digests of the film, as a packager does: viewers then share it without asking the seed." key:"up.sign_film" group:"Experiments"`
	Role         *string `help:"Role of the film's viewers to each other: full, leech, relay-only, off." placeholder:"ROLE" key:"up.role" group:"Experiments"`
	OriginFault  *string `help:"Experiment: what the origin answers for segments: none (no fault), 404, 500, slow, late." placeholder:"KIND" key:"up.origin_fault" group:"Experiments"`
}

// Help is shown below the usage.
func (upCmd) Help() string {
	return `Examples:
  leeway up
  leeway up --media holiday.mp4
  leeway up --live
  leeway up --live --low-latency
  leeway up --replay --window 10m
  leeway up --site my-site.yaml
  leeway up --listen 0.0.0.0:8080 --open
  leeway up --listen :8443 --open --tls-cert cert.pem --tls-key key.pem`
}

// Run serves until ctx ends.
func (c *upCmd) Run(ctx context.Context, r *run) error {
	config, log, err := r.service("", c)
	if err != nil {
		return err
	}
	if err := upDecided(config.Up, r.env); err != nil {
		return err
	}
	u := &upRun{env: r.env, config: config, log: log, metrics: &laterSink{}}
	defer u.close()
	return u.run(ctx)
}

// upDecided says whether the access is stated: this machine alone, everyone, or viewers with a token.
func upDecided(c UpConfig, env Env) error {
	if loopback(c.Listen) || c.Open {
		return nil
	}
	if c.Site != "" {
		config, err := loadSite(c.Site, env)
		if err != nil {
			return err
		}
		if s, err := site.New(config); err == nil && s.Config().Access == site.AccessToken {
			return nil
		}
	}
	return cmdline.Usage(fmt.Errorf("up: %s can be reached from other machines and nothing asks viewers for a token: add --open if anyone may join, listen on 127.0.0.1, or serve a --site with access: token", c.Listen))
}

// upRun is one run of `leeway up`. What it opens it closes in close, in reverse.
type upRun struct {
	env     Env
	config  *Config
	log     *slog.Logger
	metrics *laterSink
	stun    string // address of the STUN server; empty: none
	closers []func()
}

func (u *upRun) onClose(f func()) { u.closers = append(u.closers, f) }

func (u *upRun) close() {
	for i := len(u.closers) - 1; i >= 0; i-- {
		u.closers[i]()
	}
}

// shown is what an up serves: its film from an origin of its own, or the site of a file.
type shown struct {
	site   site.Config
	page   http.Handler
	origin *origin.Server // nil for the site of a file
}

// source is the picture of an up that shows one of its own.
type source struct {
	*origin.Server
	film string // folder of the film; empty: there is none
}

func (u *upRun) run(ctx context.Context) error {
	bundle, err := webdist.Load()
	if err != nil {
		return fmt.Errorf("up: read the embedded bundle: %w", err)
	}
	certificate, err := publicPair(u.config.Tracker.CertFile, u.config.Tracker.KeyFile, u.log)
	if err != nil {
		return err // before the film is encoded, which takes a minute
	}
	film, err := u.openFilm(ctx)
	if err != nil {
		return err
	}
	public, err := listenTCP(ctx, "up --listen", u.config.Up.Listen, true)
	if err != nil {
		return err
	}
	u.onClose(func() { _ = public.Close() })
	adminPort, err := listenTCP(ctx, "up --admin", u.config.Up.Admin, true)
	if err != nil {
		return err
	}
	u.onClose(func() { _ = adminPort.Close() })
	group := newServers(u.log)
	u.onClose(group.stop)
	at := place{public.Addr(), certificate}
	shows, err := u.shows(ctx, bundle, film, at, group)
	if err != nil {
		return err
	}
	if err := u.startSTUN(at); err != nil {
		return err
	}
	door, answer := group.doorway(adminPort)
	services, err := u.startServices(ctx, shows.site, public.Addr(), process{answer, group.fail})
	if err != nil {
		return err
	}
	check, err := u.startProbe(ctx, services, at, group)
	if err != nil {
		return err
	}
	checkPage, err := checkPageOf(check.at.addr)
	if err != nil {
		return err
	}
	services.certified(certificate)
	mux, err := publicMux(bundle, services.tracker, shows.page)
	if err != nil {
		return err
	}
	admin, err := services.admin(u.config.Up.Admin, u.config.Up.DataDir)
	if err != nil {
		return err
	}
	mux.Handle("/check", checkPage)
	more, shape, err := u.demoPorts(mux, shows.origin, services, at)
	if err != nil {
		return err
	}
	group.serveTLS("public", services.tracker.admission(public), mux, shape, certificate)
	door.open(admin.handler(more))
	answer()
	if err := u.announce(bundle, at, adminPort.Addr().String(), services.seedAddr, check); err != nil {
		return err
	}
	return group.wait(ctx)
}

// demoPorts adds to the public port what the page of a film needs. more are handlers for the admin port. shape limits the connections of the
// public port.
func (u *upRun) demoPorts(mux *http.ServeMux, o *origin.Server, s *services, at place) (more map[string]http.HandlerFunc, shape func(context.Context, net.Conn) context.Context, err error) {
	if o == nil {
		return nil, nil, nil
	}
	away, err := u.newOutages(s, at)
	if err != nil {
		return nil, nil, err
	}
	mux.HandleFunc("GET /demo/outage", away.serveState)
	mux.HandleFunc("POST /demo/outage", away.serveStop)
	mux.Handle(o.Prefix, o.Handler(origin.Viewer))
	mux.HandleFunc("GET /demo/ledger", o.ServeLedger)
	if rate := u.config.Up.OriginRate; rate > 0 {
		shape = origin.ShapeConnections(rate)
	}
	return map[string]http.HandlerFunc{"POST /origin/fault": o.ServeFault, "GET /origin/digests": o.ServeDigests}, shape, nil
}

// startServices runs tracker and seed, joined by a bus of their own unless the configuration names one.
func (u *upRun) startServices(ctx context.Context, config site.Config, public net.Addr, p process) (*services, error) {
	s, err := openServices(ctx, u.config, []site.Config{config}, "up", u.log, p)
	if err != nil {
		return nil, err
	}
	u.onClose(s.stop)
	if u.stun != "" {
		if err := s.registry.Register(nil, relay.Metrics()...); err != nil {
			return nil, err
		}
	}
	u.metrics.set(s.registry)
	if err := s.startTracker(filepath.Join(u.config.Up.DataDir, "tracker")); err != nil {
		return nil, err
	}
	seed := seedParts{listen: u.config.Seed.Listen, next: true, dataDir: filepath.Join(u.config.Up.DataDir, "seed"), failed: p.failed}
	if seed.listen == "" {
		host, _, err := net.SplitHostPort(public.String())
		if err != nil {
			return nil, fmt.Errorf("up: read the public address: %w", err)
		}
		// Firefox has no candidates on loopback, and makes no pairs with those of others.
		if seed.own = loopback(public.String()); seed.own {
			host = ""
		}
		seed.listen = net.JoinHostPort(host, seedPort)
	}
	if err := s.startSeed(ctx, seed); err != nil {
		return nil, err
	}
	s.watchSites(u.config.Up.Site, []site.Config{config}, func() ([]site.Config, error) {
		again, err := loadSite(u.config.Up.Site, u.env)
		return []site.Config{again}, err
	})
	return s, nil
}

// openFilm prepares what the origin serves; nil if up serves the site of a file.
func (u *upRun) openFilm(ctx context.Context) (*source, error) {
	if u.config.Up.Site != "" {
		return nil, nil
	}
	opened, dir, err := u.config.Up.open(ctx, u.env, u.metrics)
	if err != nil {
		return nil, err
	}
	u.onClose(func() {
		if err := opened.Close(); err != nil {
			u.log.Warn("up: what the origin served cannot be closed", "error", err)
		}
	})
	if err := opened.SetFault(u.config.Up.OriginFault); err != nil {
		return nil, cmdline.Usage(err)
	}
	return &source{opened, dir}, nil
}

// stream starts the live stream, and adds the key that signs it to the site.
func (u *upRun) stream(ctx context.Context, source *source, config *site.Config, group *servers) error {
	key, public, err := u.packager()
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	c := channel{picture: u.config.Up.PictureConfig, replayed: source.film, origin: source.Server, site: *config, key: key, log: u.log}
	stop, err := c.start(ctx, group)
	if err != nil {
		return err
	}
	u.onClose(stop)
	if u.config.Up.SignLive {
		config.PackagerKeys = []string{public}
	}
	return nil
}

// shows puts together site and page. The seed gets a listener of its own to the film, on loopback, so that the ledger can
// tell it from viewers and shaping leaves it alone.
func (u *upRun) shows(ctx context.Context, bundle *webdist.Bundle, source *source, at place, group *servers) (shown, error) {
	if source == nil {
		config, err := loadSite(u.config.Up.Site, u.env)
		return shown{site: config, page: sitePage(config.Name, at)}, err
	}
	seeds, err := listenTCP(ctx, "up", "127.0.0.1:0", false)
	if err != nil {
		return shown{}, err
	}
	group.serve("origin", seeds, source.Handler(origin.Seed))
	config, err := demoSite(at, "http://"+seeds.Addr().String())
	if err != nil {
		return shown{}, err
	}
	config.Policy.ControlGroupPermille, config.Policy.Role = u.config.Up.Control, u.config.Up.Role
	if !u.config.Up.Prefetch {
		config.Policy.Prefetch = site.PrefetchNever
	}
	if u.config.Up.streams() {
		if err := u.stream(ctx, source, &config, group); err != nil {
			return shown{}, err
		}
	} else if u.config.Up.SignFilm {
		if err := u.sign(ctx, source, &config); err != nil {
			return shown{}, err
		}
	}
	film := u.config.Up.shown("", source.Server)
	film.Outages = !u.proxied()
	if film.Addresses, err = at.otherMachines(); err != nil {
		return shown{}, err
	}
	page, err := bundle.Page(film)
	if err != nil {
		return shown{}, fmt.Errorf("up: read the embedded demo page: %w", err)
	}
	return shown{site: config, page: page, origin: source.Server}, nil
}

// announce prints where everything is. The page's address is the only one with its scheme, to be found by people and
// scripts alike.
func (u *upRun) announce(bundle *webdist.Bundle, public place, admin, seed string, check *probeService) error {
	w := u.env.Stdout
	if !bundle.Built {
		fmt.Fprintln(w, "\n  This binary carries no browser bundle: run make build, then build/leeway up.")
	}
	stun := ""
	if u.stun != "" {
		stun = "  stun     " + u.stun + "/udp\n"
	}
	_, err := fmt.Fprintf(w, `
  Leeway %s

  page     %s
  admin    %s  /metrics /healthz /readyz
  seed     %s/udp
  probe    %s  ndt7, data channels %s/udp
  check    %s/check
%s%s
  For a page of your own, beside its player:
  %s

  Ctrl+C ends all of it.

`, Version, public.url(), admin, seed, check.at.addr, check.udp, check.at.shown(), stun, u.busyPorts(public.addr.String(), admin, seed, check.at.addr.String()), public.scriptTag())
	return err
}

// busyPorts says which ports were busy and which ones this run took instead: empty, or a paragraph.
func (u *upRun) busyPorts(public, admin, seed, check string) string {
	wanted := u.config.Seed.Listen
	if wanted == "" {
		wanted = net.JoinHostPort("", seedPort)
	}
	var busy []string
	for _, at := range [][2]string{{u.config.Up.Listen, public}, {u.config.Up.Admin, admin}, {wanted, seed}, {cmp.Or(u.config.Probe.Listen, ":"+probePort), check}} {
		_, was, _ := net.SplitHostPort(at[0])
		if _, is, _ := net.SplitHostPort(at[1]); was != is && was != "0" {
			busy = append(busy, was)
		}
	}
	if busy == nil {
		return ""
	}
	return fmt.Sprintf("\n  In use by other programs: %s; the next free ports are used instead.\n", strings.Join(busy, ", "))
}
