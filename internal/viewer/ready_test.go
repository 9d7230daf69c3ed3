package viewer

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestReadyOffersLinkWithoutAnIntroduction has a viewer join with two offers: the seed and the first viewer take them, and
// the tracker has no peer left to name.
func TestReadyOffersLinkWithoutAnIntroduction(t *testing.T) {
	s := newScene(t, fourSeconds(20, 750_000))
	ready := func(c *Config) { c.ReadyOffers, c.JoinAfter = 2, -1 }
	s.viewer(fast, ready)
	s.w.run(20 * time.Second)
	if n := s.tracker.introduced; n != 0 {
		t.Errorf("the first viewer was told of %d peers beside the seed, which took an offer", n)
	}
	late := s.viewer(fast, ready)
	// Socket, and then no more than join, answer, and the link's own two round trips: nothing waits for the welcome.
	s.w.run(3*oneWay + 4*oneWay + 4*oneWay + 5*oneWay)
	if n := late.now().Links; n != 2 {
		t.Errorf("%d links are open as soon as they can be", n)
	}
	for _, r := range late.title.engine.peers.byID {
		if r.role == schedule.Viewer && (!r.ready || len(r.holdings.holds) == 0) {
			t.Error("what the first viewer said with its answer is not known when the link opens")
		}
	}
	s.w.run(100 * time.Second)
	s.check()
	for i, a := range s.viewers {
		if sum := a.now(); len(sum.Stats.LinkFailures) != 0 {
			t.Errorf("viewer %d: links failed: %v", i, sum.Stats.LinkFailures)
		}
	}
	if n := s.tracker.introduced; n != 0 {
		t.Errorf("%d introductions beside ready offers", n)
	}
	if late.now().Stats.Bytes["peer"] == 0 {
		t.Error("nothing came from the other viewer")
	}
}

// TestAnAnswerSaysTheCertificatesThatTheOfferWants: those that are there, behind hello and holdings.
func TestAnAnswerSaysTheCertificatesThatTheOfferWants(t *testing.T) {
	s := newScene(t, fourSeconds(20, 750_000))
	first := s.viewer(fast, nil)
	s.viewer(fast, nil)
	s.w.run(20 * time.Second)
	e := first.title.engine
	var certified, not signal.ID
	for _, g := range e.segments.all() {
		if g.cert != nil {
			certified = signal.ID(g.key)
		} else {
			not = signal.ID(g.key)
		}
	}
	if certified.IsZero() || not.IsZero() {
		t.Fatal("the scene has no segment with a certificate, or none without")
	}
	said, held := e.greeting.first(nil, []signal.ID{not, certified})
	var types []peer.Type
	for _, b := range said {
		m, err := peer.Decode(peer.Control, b)
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, m.Type())
		if c, ok := m.(peer.Certificate); ok && signal.ID(c.Segment) != certified {
			t.Errorf("the certificate of %x is said", c.Segment)
		}
	}
	if want := []peer.Type{peer.TypeHello, peer.TypeHave, peer.TypeCertificate}; !slices.Equal(types, want) || len(held) == 0 {
		t.Errorf("said %v, of %d segments held; want %v", types, len(held), want)
	}
	s.w.run(100 * time.Second)
	s.check()
}

// TestASiteWithRulesIsJoinedByThem has the join ahead of the welcome refused.
func TestASiteWithRulesIsJoinedByThem(t *testing.T) {
	s := newScene(t, fourSeconds(20, 750_000))
	s.tracker.rules = true
	for range 2 {
		s.viewer(fast, func(c *Config) { c.ReadyOffers, c.JoinAfter = 2, -1 })
	}
	s.w.run(20 * time.Second)
	for i, a := range s.viewers {
		if sum := a.now(); sum.Links != 2 || sum.Off != "" {
			t.Errorf("viewer %d: %d links, off %q", i, sum.Links, sum.Off)
		}
	}
	s.w.run(100 * time.Second)
	s.check()
}

// TestATitleThatCannotBeGuessedWaitsForTheRules: a query may be content or a token, and a credential is told to no other.
func TestATitleThatCannotBeGuessedWaitsForTheRules(t *testing.T) {
	for url, want := range map[string]bool{
		"https://a.test/v/master.m3u8": true, "https://a.test/v/master.m3u8?quality=2": false, "https://a.test/v/master.m3u8?token=abcdefgh12345678": false, "file:///a": false,
	} {
		title := &naming{url: url}
		if got := title.guess(); got != want {
			t.Errorf("%s: guessed %t, as %q", url, got, title.name)
		}
	}
}

// TestAGuessThatTheSiteDoesNotConfirmIsTakenBack: the join went out ahead, and the welcome says that the manifest is not the site's.
func TestAGuessThatTheSiteDoesNotConfirmIsTakenBack(t *testing.T) {
	s := newScene(t, fourSeconds(5, 750_000))
	other := *s.film
	var err error
	if other.rules, err = site.New(site.Config{Name: "demo", Hosts: []string{"elsewhere.test"}}); err != nil {
		t.Fatal(err)
	}
	s.tracker.film = &other
	a := s.viewer(fast, func(c *Config) { c.ReadyOffers, c.JoinAfter = 2, -1 })
	s.w.run(2 * time.Second)
	if sum := a.now(); sum.Off != string(schedule.ByPolicy) || a.title.engine != nil || s.tracker.left != 1 || !slices.Equal(a.notices, []string{"bad-manifest"}) {
		t.Errorf("off %q, engine %v, left %d times, notices %q", sum.Off, a.title.engine != nil, s.tracker.left, a.notices)
	}
	s.w.run(30 * time.Second)
	s.check()
	if n := len(a.title.links.entries); n != 0 {
		t.Errorf("%d links of a swarm that it is not in", n)
	}
}

// TestReadyOffersThatNoPeerTakesAreForgotten has one more offer out than there are peers.
func TestReadyOffersThatNoPeerTakesAreForgotten(t *testing.T) {
	s := newScene(t, fourSeconds(20, 750_000))
	only := s.viewer(fast, func(c *Config) { c.ReadyOffers, c.JoinAfter = 2, -1 })
	s.w.run(establishTime / 2)
	if n, under := only.title.links.count(true), only.title.links.count(false); n != 1 || under != 0 {
		t.Errorf("%d links open, %d under way to a peer; expected the seed's alone", n, under)
	}
	s.w.run(establishTime)
	if n := len(only.title.links.entries); n != 1 {
		t.Errorf("%d links are remembered", n)
	}
	if sum := only.now(); len(sum.Stats.LinkFailures) != 0 || sum.Off != "" {
		t.Errorf("failures %v, off %q", sum.Stats.LinkFailures, sum.Off)
	}
	s.w.run(100 * time.Second)
	s.check()
}
