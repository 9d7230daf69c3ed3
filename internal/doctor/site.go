package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// checkSite asks whether manifest and segments are the site's, and whether the site shares at all.
func checkSite(_ context.Context, e *examination) []Finding {
	if e.welcome == nil {
		return skipped(noWelcome)
	}
	if found := e.policy(); found != nil {
		return found
	}
	if e.cfg.Manifest == "" {
		return skipped("no manifest was given")
	}
	var c site.Config
	err := json.Unmarshal(e.welcome.Site, &c)
	if err != nil {
		return fail("site-unknown", "the tracker's site cannot be read: "+err.Error(), "load the same version of tracker and doctor")
	}
	rules, err := site.New(c)
	if err != nil {
		return fail("site-unknown", "the tracker's site cannot be read: "+err.Error(), "load the same version of tracker and doctor")
	}
	k, err := rules.Key(e.cfg.Manifest)
	switch {
	case errors.Is(err, site.ErrForeignHost):
		return foreign("foreign-manifest", "the manifest", e.cfg.Manifest, c)
	case err != nil:
		return fail("bad-manifest", "the manifest's URL names nothing on the site: "+err.Error(), "give a plain http or https URL, without user information")
	}
	title, err := rules.Title(k, e.cfg.Title)
	if err != nil {
		return fail("bad-title", err.Error(), "correct --title and data-title")
	}
	e.rules, e.named = rules, naming{k, title}
	if e.manifest != nil {
		for _, s := range e.manifest.segments {
			if _, err := rules.Key(s.url); errors.Is(err, site.ErrForeignHost) {
				return foreign("foreign-segments", "segments", s.url, c)
			}
		}
	}
	return ok("site %s, title %s", c.Name, title)
}

func foreign(code, what, at string, c site.Config) []Finding {
	host := strings.TrimPrefix(strings.TrimPrefix(originOf(at), "https://"), "http://")
	verb := "are"
	if what == "the manifest" {
		verb = "is"
	}
	return fail(code, fmt.Sprintf("%s %s on %s, and site %s has %s", what, verb, host, c.Name, strings.Join(c.Hosts, ", ")),
		fmt.Sprintf("add it to the site: hosts: [%q]; hosts serve the same paths", host))
}

// policy says whether this viewer is allowed to share.
func (e *examination) policy() []Finding {
	p := e.welcome.Policy
	switch {
	case p.ControlGroup:
		e.unshared = true
		return warn("control-group", "this viewer was drawn into the control group, which the origin alone serves", "run doctor again; policy.control_group_permille of the site says how many are drawn")
	case p.Role == site.RoleOff:
		e.unshared = true
		return fail("site-off", "peer delivery is off for this site or this viewer", "leeway switch SITE on, if an operator switched it off or harm was found; else policy.role and off of the site, and role of the token. policy.hold_back_permille holds the same addresses back each time")
	}
	return nil
}

// looks is how often a swarm is joined to see whether it has a seed, a second apart: a tracker hears of seeds every two seconds.
const looks = 4

// checkSeed joins the title's swarm until a seed is introduced: one that has just started is known from its first beat on.
func checkSeed(ctx context.Context, e *examination) []Finding {
	if e.rules == nil {
		return skipped("the manifest is not known to be the site's")
	}
	for n := 1; ; n++ {
		joined, found := e.join(ctx)
		switch {
		case found != nil && n == 1:
			return found
		case found == nil && joined.Seeds > 0:
			e.seeded = true
			return ok("%s introduced, %s in the swarm", counted(joined.Seeds, "seed"), counted(joined.Viewers-1, "viewer"))
		case found != nil, n == looks, !sleep.For(ctx, time.Second): // what the tracker said before holds
			return fail("no-seed", "no seed was introduced for this title, and nothing is shared without one (but what packagers sign)",
				"start a seed (leeway seed, with nats.url of the trackers), and give the site a fetch_base; a seed that is not ready says why at its /readyz: usually UDP 4600 is closed, or seed.announce is missing. Titles with fewer viewers than policy.min_viewers of the site have none")
		}
	}
}

// join enters the title's swarm and leaves it again.
func (e *examination) join(ctx context.Context) (joined *signal.Joined, found []Finding) {
	path, _, _ := strings.Cut(e.named.key, "?")
	m, err := e.ask(ctx, &signal.Join{Request: 2, Title: e.named.title, Manifest: path, Role: site.RoleLeech, Want: 1}, func(m signal.Message) (is bool) {
		if joined, is = m.(*signal.Joined); is {
			if leave, err := signal.Encode(&signal.Leave{Swarm: joined.Swarm}); err == nil {
				_ = e.conn.Write(leave) // a connection that is lost is noticed by what comes next
			}
		}
		return is
	})
	if err != nil {
		return nil, fail("join-timeout", "the tracker does not answer a join: "+err.Error(), "look at the tracker's log and its /readyz: the tracker that keeps the title may have lost its bus (nats.url)")
	}
	if refused, is := m.(*signal.Error); is {
		fix := refused.Hint
		if refused.Code == "bad-title" {
			fix = "bind the title to the manifest: title.explicit of the site, or title and manifest of the token (leeway token mint --title … --manifest …)"
		}
		return nil, fail(refused.Code, "the tracker: "+refused.Message, fix)
	}
	return joined, nil
}

// loopbackHost says whether a URL is of this machine.
func loopbackHost(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	h := u.Hostname()
	return h == "localhost" || strings.HasPrefix(h, "127.") || h == "::1"
}
