package viewer

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// apart starts a viewer that meets others of the kind by a relay alone.
func (s *scene) apart() *actor {
	a := s.viewer(fast, nil)
	a.node.apart = true
	return a
}

func TestARelayIsAskedOnlyWhileNoOtherPeerCanServe(t *testing.T) {
	s := newScene(t, fourSeconds(60, 750_000))
	first := s.apart()
	s.w.run(20 * time.Second)
	calm := s.apart()
	s.w.run(20 * time.Second)
	sum := calm.now()
	if sum.Linked["viewer/relay"] != 1 || sum.Linked["seed/direct"] != 1 || sum.Stats.Bytes["peer_relay"] > 0 || sum.Stats.Stalls > 0 {
		t.Errorf("with seed and origin at hand: links %v, bytes %v", sum.Linked, sum.Stats.Bytes)
	}
	s.tracker.seed, s.film.outage = nil, true
	late := s.apart()
	s.w.run(30 * time.Second)
	sum = late.now()
	if sum.Stats.Bytes["peer_relay"] == 0 || sum.Stats.StartupMs == 0 || sum.Stats.StartupMs > 5000 || sum.Stats.Stalls > 0 || late.wrong > 0 {
		t.Errorf("without: links %v, %+v", sum.Linked, sum.Stats)
	}
	if sum.Offload != 0 || sum.Stats.Bytes["peer"] > 0 {
		t.Errorf("what relays bring counts as offload: %g, bytes %v", sum.Offload, sum.Stats.Bytes)
	}
	if first.now().Stats.Uploaded["relay"]+calm.now().Stats.Uploaded["relay"] == 0 {
		t.Error("no viewer has sent by the relay")
	}
	// The origin is asked again after a while, and serves from then on.
	s.film.outage = false
	s.w.run(originRest)
	before := late.now().Stats.Bytes
	s.w.run(40 * time.Second)
	after := late.now().Stats.Bytes
	if after["peer_relay"] > before["peer_relay"] || after["origin"] <= before["origin"] {
		t.Errorf("the origin is back, and bytes went from %v to %v", before, after)
	}
	s.w.run(200 * time.Second)
	s.check()
}

func TestWhereViewersMeetByRelaysAloneTheyAreAskedAsOthers(t *testing.T) {
	s := newScene(t, fourSeconds(20, 750_000))
	s.tracker.policy.Role = "relay-only"
	for range 2 {
		s.apart()
		s.w.run(10 * time.Second)
	}
	s.w.run(100 * time.Second)
	s.check()
	if sum := s.viewers[1].now(); sum.Stats.Bytes["peer_relay"] == 0 || sum.Offload != 0 {
		t.Errorf("bytes %v, offload %g", sum.Stats.Bytes, sum.Offload)
	}
}

// What is on its way from a relay when nothing more is asked of it is waited for, and asked for nowhere else.
func TestWhatIsOnItsWayFromARelayIsNotAskedForTwice(t *testing.T) {
	s := newScene(t, fourSeconds(30, 750_000))
	s.apart()
	s.w.run(30 * time.Second)
	s.tracker.seed, s.film.outage = nil, true
	late := s.apart()
	for range 400 {
		s.w.run(10 * time.Millisecond)
		if e := late.title.engine; e != nil && slices.ContainsFunc(e.peers.inOrder(), func(r *remote) bool { return len(r.download.Orders()) > 0 }) {
			break
		}
	}
	e := late.title.engine
	e.line.failing = false
	in := e.view.input(schedule.Input{}, false)
	if len(in.Peers) != 1 || len(in.Requests) == 0 || len(in.Peers[0].Holds) > 0 || in.Peers[0].Slots != 0 {
		t.Fatalf("%d peers, %d requests: %+v", len(in.Peers), len(in.Requests), in.Peers)
	}
	for _, r := range e.peers.inOrder() {
		e.drop(r, peer.CloseIdle, peer.ByeIdle)
	}
	if in := e.view.input(schedule.Input{}, false); len(in.Peers) > 0 {
		t.Errorf("peers that are gone are shown: %+v", in.Peers)
	}
}

func TestLinksToSeedsHaveNoRelay(t *testing.T) {
	got := withoutRelays([]ICEServer{
		{URLs: []string{"stun:a", "turn:a?transport=udp"}, Username: "u"}, {URLs: []string{"turns:b"}}, {URLs: []string{"turn:c"}},
	})
	if len(got) != 1 || !slices.Equal(got[0].URLs, []string{"stun:a"}) || got[0].Username != "u" {
		t.Errorf("%+v", got)
	}
}

// failures is a title that takes down why links failed.
type failures struct {
	linkEvents
	reasons []string
}

func (f *failures) linkFailed(reason string) { f.reasons = append(f.reasons, reason) }
func (f *failures) linksChanged()            {}

func TestALinkThatFailedHasAReason(t *testing.T) {
	for _, c := range []struct {
		said, counted string
		blame         schedule.Reason
	}{{"timeout", "udp-blocked", schedule.UDPBlocked}, {"busy", "busy", ""}} {
		events := &failures{}
		l := newLinks(newWorld(), nil, events, nil)
		l.terms.servers = []ICEServer{{URLs: []string{"stun:a"}}}
		a := l.newLink(signal.ID{1}, signal.ID{2}, "seed", true)
		l.add(a)
		a.facts.local("candidate:1 1 udp 1 10.0.0.1 5000 typ host", false)
		a.facts.local("", true) // and nothing from the server
		a.receive(&signal.Signal{Kind: "fail", Reason: c.said})
		if len(events.reasons) != 1 || events.reasons[0] != c.counted || l.blame.reason != c.blame {
			t.Errorf("the other side says %s: counted as %v, blamed on %q", c.said, events.reasons, l.blame.reason)
		}
	}
}
