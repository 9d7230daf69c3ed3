package tracker

import (
	"net/netip"
	"testing"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestARollOutIsDrawnByTheAddressOrTheSubject: alike for a viewer that comes back, differently for others and on other sites, and in the
// share that the site names.
func TestARollOutIsDrawnByTheAddressOrTheSubject(t *testing.T) {
	k := newWorld(t).tracker(nil).secrets
	address := netip.MustParseAddr
	for _, c := range []struct {
		name string
		a, b signal.ID
		same bool
	}{
		{"an address", k.drawn("demo", "", address("192.0.2.7")), k.drawn("demo", "", address("192.0.2.7")), true},
		{"another address of a subnet", k.drawn("demo", "", address("192.0.2.7")), k.drawn("demo", "", address("192.0.2.8")), false},
		{"a mapped address", k.drawn("demo", "", address("192.0.2.7")), k.drawn("demo", "", address("::ffff:192.0.2.7")), true},
		{"one /64", k.drawn("demo", "", address("2001:db8::1")), k.drawn("demo", "", address("2001:db8::ffff:1")), true},
		{"two /64", k.drawn("demo", "", address("2001:db8::1")), k.drawn("demo", "", address("2001:db8:0:1::1")), false},
		{"another site", k.drawn("demo", "", address("192.0.2.7")), k.drawn("other", "", address("192.0.2.7")), false},
		{"a subject elsewhere", k.drawn("demo", "anna", address("192.0.2.7")), k.drawn("demo", "anna", address("192.0.2.8")), true},
		{"two subjects", k.drawn("demo", "anna", address("192.0.2.7")), k.drawn("demo", "bert", address("192.0.2.7")), false},
		{"no address", k.drawn("demo", "", netip.Addr{}), k.drawn("demo", "", netip.Addr{}), true},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: the same draw is %v", c.name, c.a == c.b)
		}
	}
	const all = 20_000
	held := 0
	for i := range all {
		if swarm.Draw(k.drawn("demo", "", netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))) < 900 {
			held++
		}
	}
	if share := float64(held) / all; share < 0.88 || share > 0.92 {
		t.Errorf("of 900 permille %v are held back", share)
	}
}

// TestViewersThatAreHeldBackMeetNoPeer: they have the role off, and so they do when they come back.
func TestViewersThatAreHeldBackMeetNoPeer(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Policy: configured.Policy{HoldBackPermille: 500}})
	})
	roles := map[string]int{}
	for i := range 20 {
		from := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String()
		first, again := n.viewerFrom(from, ""), n.viewerFrom(from, "")
		role := n.sessions.session(first.id).rule.allowed().Role
		if got := n.sessions.session(again.id).rule.allowed().Role; got != role {
			t.Errorf("%s has the role %s, and then %s", from, role, got)
		}
		roles[role]++
		if joined := first.join(); role == configured.RoleOff && joined.Viewers > roles[configured.RoleFull] {
			t.Errorf("a viewer that is held back counts: %d viewers", joined.Viewers)
		}
	}
	if roles[configured.RoleOff] == 0 || roles[configured.RoleFull] == 0 {
		t.Errorf("roles: %v", roles)
	}
}

// TestViewersThatAreHeldBackAreInNoGroup: they have no peers, so counted as viewers with peers they would hide what peers do.
func TestViewersThatAreHeldBackAreInNoGroup(t *testing.T) {
	for _, c := range []struct {
		held, control int // permille
		variant       string
	}{{0, 0, "peer"}, {0, 1000, "control"}, {1000, 0, "off"}, {1000, 1000, "off"}} {
		w := newWorld(t)
		n := w.tracker(func(cfg *Config) {
			cfg.Sites = oneSite(t, configured.Config{Policy: configured.Policy{HoldBackPermille: c.held, ControlGroupPermille: c.control}})
		})
		v := n.viewer("")
		v.send(&signal.Stats{Swarm: v.join().Swarm, Interval: 10_000, Bytes: map[string]int64{"origin": 5}})
		testkit.Eventually(t, "counted as "+c.variant, func() bool { return w.metrics.Value(defReceived, "demo", "origin", "direct", c.variant) == 5 })
	}
}

// TestFewViewersAreNotIntroduced: the one that makes the number meets those that were there before it.
func TestFewViewersAreNotIntroduced(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Policy: configured.Policy{MinViewers: 3}})
	})
	a, b, c := n.viewer(""), n.viewer(""), n.viewer("")
	a.join()
	in := b.join().Swarm
	b.send(&signal.Update{Request: 1, Swarm: in, Want: 8})
	testkit.Eventually(t, "the update is handled", func() bool { return w.metrics.Count(defHandle, "update") == 1 })
	if got := w.metrics.Value(defIntroductions, "viewer"); got != 0 {
		t.Errorf("two viewers had %v introductions", got)
	}
	c.send(&signal.Join{Request: 7, Title: testTitle, Manifest: testManifest, Role: "full", Want: 8})
	if met := expect[*signal.Introduce](c); len(met.Peers) != 2 {
		t.Errorf("the third viewer meets %d", len(met.Peers))
	}
}
