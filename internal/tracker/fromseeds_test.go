package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// sayAs publishes a message as a replica that may publish anything.
func (w *world) sayAs(subject string, m bus.Message) {
	w.t.Helper()
	b, err := bus.Encode(m)
	if err == nil {
		err = w.bus.Send(subject, b)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) refused(reason string) float64 { return w.metrics.Value(defSeedRefused, reason) }

// TestASeedSaysOnlyWhatASeedMay: on the subjects that seeds may publish on, a tracker takes signals and acknowledgements of seeds that
// beat and of no other program, and nothing else that a delivery can be.
func TestASeedSaysOnlyWhatASeedMay(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	other := w.tracker(nil)
	seed, _ := w.seed()
	v := n.viewer("")
	swarm := v.join().Swarm
	testkit.Eventually(t, "both are known", func() bool { return n.isSeed(seed) && n.roster.lives(other.ID()) })
	stranger := newID()
	signalOf := func(from signal.ID) *bus.Signal {
		return &bus.Signal{Signal: signal.Signal{Swarm: swarm, From: from, To: v.id, Role: "seed", Link: newID(), Kind: "fail", Reason: "busy"}}
	}
	stream := func(from signal.ID, n uint64) *bus.Stream { return &bus.Stream{From: from, N: n, Base: n} }
	asViewer := signalOf(seed)
	asViewer.Role = "viewer"
	hopped := signalOf(seed)
	hopped.Hops = 1
	for name, c := range map[string]struct {
		reason string
		d      *bus.Delivery
	}{
		"an introduction": {seedForeign, &bus.Delivery{
			Kind: bus.KindIntroduce, Session: v.id, Swarm: swarm, Peers: []bus.Target{{Peer: stranger, Role: "viewer", Tracker: n.ID()}}, Stream: stream(seed, 1),
		}},
		"the end of a session":       {seedForeign, &bus.Delivery{Kind: bus.KindReplaced, Session: v.id, Tracker: other.ID(), Stream: stream(seed, 1)}},
		"a signal without a stream":  {seedForeign, &bus.Delivery{Kind: bus.KindSignal, Signal: signalOf(seed)}},
		"a signal of another":        {seedForeign, &bus.Delivery{Kind: bus.KindSignal, Signal: signalOf(stranger), Stream: stream(seed, 1)}},
		"a signal of a viewer":       {seedForeign, &bus.Delivery{Kind: bus.KindSignal, Signal: asViewer, Stream: stream(seed, 1)}},
		"a signal that is passed on": {seedForeign, &bus.Delivery{Kind: bus.KindSignal, Signal: hopped, Stream: stream(seed, 1)}},
		"a signal of a stranger":     {seedStranger, &bus.Delivery{Kind: bus.KindSignal, Signal: signalOf(stranger), Stream: stream(stranger, 1)}},
		"the stream of a tracker":    {seedStranger, &bus.Delivery{Kind: bus.KindSignal, Signal: signalOf(other.ID()), Stream: stream(other.ID(), 1)}},
	} {
		before := w.refused(c.reason)
		w.sayAs(bus.SubjectSeedSignal(n.ID()), c.d)
		testkit.Eventually(t, name+" is refused", func() bool { return w.refused(c.reason) == before+1 })
	}
	// The ID of a tracker in a beat of seeds makes it no seed.
	w.beatSeed(other.ID())
	testkit.Eventually(t, "the beat is heard", func() bool { return n.roster.serves(other.ID()) })
	before := w.refused(seedStranger)
	w.sayAs(bus.SubjectSeedAck(n.ID()), &bus.Ack{From: other.ID(), Next: 1 << 40})
	testkit.Eventually(t, "an acknowledgement in a tracker's name is refused", func() bool { return w.refused(seedStranger) == before+1 })
	if err := w.bus.Send(bus.SubjectSeedAck(n.ID()), []byte("{")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "what is no message is counted", func() bool { return w.refused(seedMalformed) == 1 })
	// What a seed may say arrives, and it is the first thing that the viewer hears.
	good := signalOf(seed)
	w.sayAs(bus.SubjectSeedSignal(n.ID()), &bus.Delivery{Kind: bus.KindSignal, Signal: good, Stream: stream(seed, 1)})
	if m := expect[*signal.Signal](v); m.From != seed || m.Link != good.Link {
		t.Errorf("the viewer heard %+v", m)
	}
}

// TestSeedsRevokeOnlyForTrackersThatAreNew: what a seed kept is taken from it where no tracker knows better, for a while, and passed on to all.
func TestSeedsRevokeOnlyForTrackersThatAreNew(t *testing.T) {
	w := newWorld(t)
	kept := &bus.RevokeMessage{Revocations: longRevocations(1)}
	first := w.tracker(nil)
	second := w.tracker(nil) // finds the first: it believes no seed
	v := second.viewer("")
	w.sayAs(bus.SubjectRevokeKept, kept)
	testkit.Eventually(t, "both trackers know it, the second from the first", func() bool {
		return len(first.trust.revoked.all()) == 1 && len(second.trust.revoked.all()) == 1
	})
	if r := expect[*signal.Revoke](v).Revocations; len(r) != 1 {
		t.Errorf("pushed %+v", r)
	}
	late := w.refused(seedLate)
	w.clock.Move(keptFor + time.Second)
	more := longRevocations(2)[1:]
	more[0].MinIssuedAt = w.clock.Now().UnixMilli()
	w.sayAs(bus.SubjectRevokeKept, &bus.RevokeMessage{Revocations: more, Switches: []bus.Switch{{Site: "demo", Reason: "operator", Off: true, At: 1}}})
	testkit.Eventually(t, "both refuse", func() bool { return w.refused(seedLate) == late+2 })
	if len(first.trust.revoked.all()) != 1 || first.off("demo") {
		t.Error("a tracker that is not new took a revocation from a seed")
	}
}
