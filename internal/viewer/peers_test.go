package viewer

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// links of an actor, in the order of their making.
func (a *actor) simLinks() []*simLink {
	var out []*simLink
	for _, id := range a.title.links.order {
		out = append(out, a.title.links.entries[id].conn.(*simLink))
	}
	return out
}

func TestAPolluterIsDroppedAndNoOtherBlamed(t *testing.T) {
	s := newScene(t, fourSeconds(15, 500_000))
	liar := s.viewer(fast, nil)
	honest := s.viewer(fast, nil)
	s.w.run(12 * time.Second)
	victim := s.viewer(fast, nil)
	s.w.run(1200 * time.Millisecond)
	for _, l := range liar.simLinks() {
		if l.far == victim.node {
			l.garble = flip
		}
	}
	s.w.run(80 * time.Second)
	s.check()
	sum := victim.now()
	if sum.Banned != 1 || sum.LinksClosed[peer.CloseBadPiece] != 1 || sum.Stats.RejectedBytes == 0 {
		t.Errorf("banned %d, closed %v, rejected %d", sum.Banned, sum.LinksClosed, sum.Stats.RejectedBytes)
	}
	if _, ok := victim.title.engine.peers.bans[liar.now().Session]; !ok {
		t.Errorf("the wrong one: %v", victim.title.engine.peers.bans)
	}
	if sum.Offload < 0.5 || sum.Stats.Stalls > 0 {
		t.Errorf("offload %.2f, %d stalls", sum.Offload, sum.Stats.Stalls)
	}
	if n := honest.now().Banned + liar.now().Banned; n > 0 {
		t.Errorf("%d more were banned", n)
	}
	// The honest ones go on passing on what they hold.
	if honest.now().Stats.Uploaded["direct"] == 0 {
		t.Error("the honest peer served nothing")
	}
}

// TestASwarmWithPolluters has three of ten viewers send nothing but wrong bytes.
func TestASwarmWithPolluters(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	for i := range 10 {
		a := s.viewer(access{up: 1.25e6, down: 2.5e6}, nil)
		if i%3 == 1 {
			a.node.garble = flip
		}
		s.w.run(3 * time.Second)
	}
	s.w.run(120 * time.Second)
	s.check()
	var peers, all int64
	banned := 0
	for i, a := range s.viewers {
		sum := a.now()
		banned += sum.Banned
		if i%3 != 1 {
			peers += sum.Stats.Bytes["peer"]
			all += sum.Stats.Bytes["peer"] + sum.Stats.Bytes["seed"] + sum.Stats.Bytes["origin"]
		}
		for id := range a.title.engine.peers.bans {
			if guilty := id[1] == '2' || id[1] == '5' || id[1] == '8'; !guilty {
				t.Errorf("viewer %d banned %s, which sent nothing wrong", i, id)
			}
		}
		if sum.Stats.Stalls > 0 {
			t.Errorf("viewer %d: %d stalls", i, sum.Stats.Stalls)
		}
	}
	if offload := float64(peers) / float64(all); offload < 0.5 || banned < 7 {
		t.Errorf("offload %.2f, %d times a peer was banned", offload, banned)
	}
}

// TestASilentPeerLosesItsRequestsAndThenItsLink: it answers pings, so it could have sent, or said that it is busy.
func TestASilentPeerLosesItsRequestsAndThenItsLink(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	silent := s.viewer(fast, nil)
	s.w.run(12 * time.Second)
	victim := s.viewer(fast, nil)
	s.w.run(1200 * time.Millisecond)
	silent.title.engine.pacing.stop()
	s.w.run(8 * time.Second)
	if n := victim.now().LinksClosed[peer.CloseStalled]; n != 1 {
		t.Errorf("eight seconds later %d links were closed", n)
	}
	s.w.run(92 * time.Second)
	s.check()
	sum := victim.now()
	if sum.LinksClosed[peer.CloseStalled] != 1 || sum.Stats.Stalls > 0 || sum.Banned > 0 {
		t.Errorf("closed %v, %d stalls, %d banned", sum.LinksClosed, sum.Stats.Stalls, sum.Banned)
	}
}

func TestALostTrackerIsFoundAgainWhileLinksGoOn(t *testing.T) {
	s := newScene(t, fourSeconds(40, 500_000))
	a := s.viewer(fast, nil)
	s.w.run(10 * time.Second)
	b := s.viewer(fast, nil)
	s.w.run(5 * time.Second)
	s.tracker.crash()
	before := b.now().Stats.Bytes["peer"]
	s.w.run(20 * time.Second)
	if got := b.now().Stats.Bytes["peer"]; got <= before {
		t.Errorf("peers brought %d bytes, %d before the tracker died", got, before)
	}
	s.tracker.down = false
	s.w.run(60 * time.Second)
	for _, v := range []*actor{a, b} {
		sum := v.now()
		if v.title.session.state != sessionReady || sum.Reconnects < 2 || sum.Links != 2 {
			t.Errorf("%s after %d reconnects, %d links", v.title.session.state, sum.Reconnects, sum.Links)
		}
	}
	if s.tracker.next != 2 {
		t.Errorf("%d sessions were begun; a ticket resumes one", s.tracker.next)
	}
	s.w.run(100 * time.Second)
	s.check()
	if st := s.tracker.stats; st.PlayedMs < 310_000 || st.Bytes["peer"] == 0 || s.tracker.left != 2 {
		t.Errorf("reported %+v, %d left", st, s.tracker.left)
	}
}

func TestPoliciesTurnPeersOff(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		cfg    func(*Config)
		reason string
	}{
		"control group":   {change: func(s *scene) { s.tracker.policy.ControlGroup = true }, reason: "control-group"},
		"role off":        {change: func(s *scene) { s.tracker.policy.Role = "off" }, reason: "policy"},
		"signed manifest": {cfg: func(c *Config) { c.URL += "?token=abc" }, reason: "needs-token"},
		"foreign":         {cfg: func(c *Config) { c.URL = "http://other.test/media/film/master.m3u8" }, reason: "policy"},
	} {
		s := newScene(t, fourSeconds(10, 100_000))
		for url, data := range s.film.files {
			s.film.files[url+"?token=abc"], s.film.files["http://other.test"+url] = data, data
		}
		if c.change != nil {
			c.change(s)
		}
		a, b := s.viewer(fast, c.cfg), s.viewer(fast, c.cfg)
		s.w.run(60 * time.Second)
		for _, v := range []*actor{a, b} {
			sum := v.now()
			if sum.Off != c.reason || sum.LinksOpened > 0 || sum.Stats.Bytes["origin"] != 1_000_000 || sum.Stats.Reasons[c.reason] < 7 || sum.Ended != "end" {
				t.Errorf("%s: off %q, %d links, %v, %v", name, sum.Off, sum.LinksOpened, sum.Stats.Bytes, sum.Stats.Reasons)
			}
		}
		if c.cfg == nil {
			continue
		}
		// Neither fresh credentials nor another policy lifts that.
		a.title.pushed(&signal.SetServers{})
		a.title.pushed(&signal.SetPolicy{Policy: signal.Policy{Role: "full", MaxLinks: 8}})
		if string(a.title.off) != c.reason {
			t.Errorf("%s: off %q once the tracker has pushed something", name, a.title.off)
		}
	}
}

func TestALeechTakesAndDoesNotGive(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	s.viewer(fast, nil)
	s.w.run(6 * time.Second)
	s.tracker.policy.Role = "leech"
	leech := s.viewer(fast, nil)
	s.w.run(6 * time.Second)
	s.tracker.policy.Role = "full"
	third := s.viewer(fast, nil)
	s.w.run(100 * time.Second)
	s.check()
	if up := leech.now().Stats.Uploaded["direct"]; up > 0 || leech.now().Offload < 0.5 {
		t.Errorf("sent %d, offload %.2f", up, leech.now().Offload)
	}
	if third.now().Offload < 0.5 || third.now().Banned > 0 {
		t.Errorf("the third: %+v", third.now())
	}
}

func TestRevocationForgetsWhatIsHeld(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	a := s.viewer(fast, nil)
	s.w.run(10 * time.Second)
	if len(a.title.engine.store.ids()) == 0 {
		t.Fatal("nothing is held")
	}
	s.seed.certs = map[segment.ID][]byte{}
	s.tracker.everyone(&signal.Revoke{Revocations: []signal.Revocation{{Site: "test", Prefix: "/media/", MinIssuedAt: s.w.now.UnixMilli()}}})
	s.w.run(100 * time.Millisecond)
	for _, id := range a.title.engine.store.ids() {
		if a.title.engine.segments.byID[id].cert.IssuedAt.Before(s.w.now.Add(-200 * time.Millisecond)) {
			t.Errorf("segment %s is still held under a withdrawn certificate", id)
		}
	}
	s.w.run(90 * time.Second)
	s.check()
	if a.now().Stats.Bytes["seed"] == 0 || a.now().Stats.Stalls > 0 {
		t.Errorf("%+v", a.now())
	}
}

func TestAnOriginThatContradictsTurnsTheTitleOff(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	s.seed.issue = func(n segment.Name, data []byte) []byte { // certifies other bytes than viewers get
		data[0] ^= 1
		raw := issue(s.w, n, data)
		data[0] ^= 1
		return raw
	}
	// A line on which every segment is urgent, so that it comes from the origin while its certificate is known.
	a := s.viewer(access{up: 1e6, down: 333_000}, func(c *Config) { c.Buffer = 4 * time.Second })
	s.w.run(120 * time.Second)
	s.check()
	sum := a.now()
	if sum.Off != "policy" || sum.Stats.Contradictions != 3 || !slices.Contains(a.notices, "title-off") {
		t.Errorf("off %q after %d contradictions: %v", sum.Off, sum.Stats.Contradictions, a.notices)
	}
	if e := a.title.engine; len(e.store.ids()) > 0 || sum.Stats.Reasons["policy"] < 10 {
		t.Errorf("%v, %d segments are held", sum.Stats.Reasons, len(e.store.ids()))
	}
	// Nothing that the tracker pushes lifts that: neither fresh credentials nor a site that is on again.
	a.title.pushed(&signal.SetServers{})
	a.title.pushed(&signal.SetPolicy{Policy: signal.Policy{Role: "off"}})
	a.title.pushed(&signal.SetPolicy{Policy: signal.Policy{Role: "full", MaxLinks: 8}})
	if a.title.off != "policy" || a.title.engine.off != "policy" {
		t.Errorf("off %q, the engine's %q", a.title.off, a.title.engine.off)
	}
}

func TestASiteIsSwitchedOffAndOnInMidSession(t *testing.T) {
	s := newScene(t, fourSeconds(40, 500_000))
	a := s.viewer(fast, nil)
	s.w.run(8 * time.Second)
	b := s.viewer(fast, nil)
	s.w.run(8 * time.Second)
	if a.now().Links == 0 || b.now().Links == 0 {
		t.Fatal("no viewer has a link")
	}
	policy := s.tracker.policy
	policy.Role = "off"
	s.tracker.everyone(&signal.SetPolicy{Policy: policy})
	s.w.run(200 * time.Millisecond)
	taken := map[*actor]int64{}
	for _, v := range []*actor{a, b} {
		sum := v.now()
		taken[v] = sum.Stats.Bytes["peer"] + sum.Stats.Bytes["seed"]
		if sum.Links != 0 || sum.Off != "policy" {
			t.Errorf("%d links, off %q", sum.Links, sum.Off)
		}
	}
	s.w.run(30 * time.Second)
	for _, v := range []*actor{a, b} {
		if sum := v.now(); sum.Stats.Bytes["peer"]+sum.Stats.Bytes["seed"] != taken[v] || sum.LinksOpened == 0 || sum.Stats.Stalls > 0 {
			t.Errorf("while it was off: %v, %d stalls", sum.Stats.Bytes, sum.Stats.Stalls)
		}
	}
	policy.Role = "full"
	s.tracker.everyone(&signal.SetPolicy{Policy: policy})
	c := s.viewer(fast, nil) // a peer that the tracker introduces
	s.w.run(60 * time.Second)
	for _, v := range []*actor{a, b, c} {
		if sum := v.now(); sum.Off != "" || sum.Links == 0 {
			t.Errorf("on again: off %q, %d links", sum.Off, sum.Links)
		}
	}
	if c.now().Stats.Bytes["peer"] == 0 {
		t.Error("what was held before is given by none")
	}
	s.w.run(150 * time.Second)
	s.check()
}

// TestATombstoneHoldsAgainstASeedThatDoesNotKnow: one that was cut off goes on certifying, and no viewer takes it.
func TestATombstoneHoldsAgainstASeedThatDoesNotKnow(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	a := s.viewer(fast, nil)
	s.w.run(10 * time.Second)
	tomb := certificate.Tombstone("test", "/media/", s.w.now.Add(time.Hour))
	s.tracker.everyone(&signal.Revoke{Revocations: []signal.Revocation{{Site: tomb.Site, Prefix: tomb.Prefix, MinIssuedAt: tomb.MinIssuedAt.UnixMilli()}}})
	s.w.run(100 * time.Millisecond)
	held, taken := len(a.title.engine.store.ids()), a.now().Stats.Bytes["seed"]
	s.seed.certs = map[segment.ID][]byte{} // it issues anew
	s.w.run(80 * time.Second)
	s.check()
	sum := a.now()
	if held != 0 || len(a.title.engine.store.ids()) != 0 || sum.Stats.Bytes["seed"] != taken {
		t.Errorf("%d segments were held, %d now; %d bytes of the seed before, %d after", held, len(a.title.engine.store.ids()), taken, sum.Stats.Bytes["seed"])
	}
	if sum.Ended != "end" || sum.Stats.Stalls > 0 || sum.Banned > 0 {
		t.Errorf("%+v", sum)
	}
}

func TestTwoCertificatesForOneNameWithdrawIt(t *testing.T) {
	s := newScene(t, fourSeconds(5, 500_000))
	a := s.viewer(fast, nil)
	s.w.run(3 * time.Second)
	e := a.title.engine
	var held *seg
	for _, x := range e.segments.all() {
		if x.cert != nil {
			held = x
		}
	}
	if held == nil {
		t.Fatal("nothing is certified")
	}
	other := slices.Clone(s.film.files[string(held.name)])
	other[9] ^= 1
	raw := issue(s.w, held.name, other)
	from := e.peers.inOrder()[0]
	held.certPeers = append(held.certPeers, from.id)
	e.verification.certificate(from, held.id, raw)
	if held.disputed == nil || held.cert != nil || e.store.get(held.id) != nil || a.now().Stats.Contradictions != 1 || a.now().Stats.Disputes != 1 {
		t.Errorf("%+v", held)
	}
	id := certificate.KeyIDOf(&testKey().PublicKey)
	e.verification.revoke([]certificate.Revocation{{KeyID: id}})
	if held.disputed != nil {
		t.Error("a revocation of the older one does not end the dispute")
	}
	s.w.run(60 * time.Second)
	s.check()
}

func TestTheSwarmPlaysOnWithoutTheOrigin(t *testing.T) {
	s := newScene(t, fourSeconds(30, 500_000))
	first := s.viewer(fast, nil)
	s.w.run(40 * time.Second)
	late := s.viewer(fast, func(c *Config) { c.Buffer = 8 * time.Second })
	s.w.run(5 * time.Second)
	s.film.broken = true
	s.w.run(20 * time.Second)
	sum := late.now()
	if sum.Stats.Stalls > 0 || sum.Errors > 0 {
		t.Errorf("%d stalls, %d errors while another viewer held everything", sum.Stats.Stalls, sum.Errors)
	}
	s.film.broken = false
	s.w.run(150 * time.Second)
	s.check()
	_ = first
}

func TestALiarIsDroppedAtItsFirstLie(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	liar := s.viewer(fast, nil)
	s.w.run(12 * time.Second)
	victim := s.viewer(fast, nil)
	s.w.run(1200 * time.Millisecond)
	e := liar.title.engine
	for _, id := range e.store.ids() { // it has told what it holds, and will not say that it is gone
		e.store.drop(id)
	}
	s.w.run(100 * time.Second)
	s.check()
	if sum := victim.now(); sum.LinksClosed[peer.CloseFalse] != 1 || sum.Banned != 1 || sum.Stats.Stalls > 0 {
		t.Errorf("closed %v, %d banned, %d stalls", sum.LinksClosed, sum.Banned, sum.Stats.Stalls)
	}
}

// TestASmallStoreIsNoLie has viewers that give up segments and say so: no viewer blames them.
func TestASmallStoreIsNoLie(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	for range 3 {
		s.viewer(fast, func(c *Config) { c.StoreBytes = 1_300_000 })
		s.w.run(9 * time.Second)
	}
	s.w.run(100 * time.Second)
	s.check()
	for i, a := range s.viewers {
		if sum := a.now(); sum.Banned > 0 || sum.Stats.Stalls > 0 {
			t.Errorf("viewer %d: %d banned, %v, %d stalls", i, sum.Banned, sum.LinksClosed, sum.Stats.Stalls)
		}
	}
	if n := s.bytes("peer"); n < 1_000_000 {
		t.Errorf("only %d bytes are of viewers", n)
	}
}
