package tracker

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/testkit/testbus"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func seedDeliveries(subject string) bool { return strings.HasPrefix(subject, "leeway.v1.seed.") }

// withSeed is a tracker on a bus that can lose messages, and a viewer that was introduced to a seed.
func withSeed(t *testing.T) (w *world, line *testbus.Lossy, v *viewer, swarm, seed signal.ID, received <-chan bus.SeedDelivery) {
	t.Helper()
	w = newWorld(t)
	line = &testbus.Lossy{Bus: w.bus}
	w.through = line
	n := w.tracker(nil)
	seed, received = w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return len(n.roster.seedsFor("demo", seed)) == 1 })
	v = n.viewer("")
	swarm = v.join().Swarm
	if p := expect[*signal.Introduce](v).Peers; len(p) != 1 || p[0].Peer != seed {
		t.Fatalf("introduced to %+v", p)
	}
	return w, line, v, swarm, seed, received
}

// TestLostSignalsToSeedsAreSaidAgain loses the first four: all arrive, in order, once.
func TestLostSignalsToSeedsAreSaidAgain(t *testing.T) {
	w, line, v, swarm, seed, received := withSeed(t)
	n := 0
	line.Lose(func(subject string) bool {
		if seedDeliveries(subject) {
			n++
		}
		return seedDeliveries(subject) && n <= 4
	})
	link := newID()
	v.send(&signal.Signal{Swarm: swarm, To: seed, Link: link, Kind: "offer", SDP: "v=0", Plan: testPlan})
	for i := range 3 {
		v.send(&signal.Signal{Swarm: swarm, To: seed, Link: link, Kind: "candidate", Candidate: strings.Repeat("c", i+1), Mid: "0"})
	}
	for i := 0; i < 4; {
		d := receive(t, received)
		if d.Kind != bus.KindSignal {
			continue
		}
		if want := []string{"offer", "candidate", "candidate", "candidate"}[i]; d.Signal.Kind != want || len(d.Signal.Candidate) != i {
			t.Fatalf("signal %d came as %+v", i, d.Signal)
		}
		i++
	}
	if again, lost := w.metrics.Value(defDeliveries, "again"), w.metrics.Value(defDeliveries, "lost"); again == 0 || lost != 0 {
		t.Errorf("%v said again, %v given up", again, lost)
	}
}

// TestOffersThatReachNoSeedComeBack: the viewer may offer to another, or again.
func TestOffersThatReachNoSeedComeBack(t *testing.T) {
	w, line, v, swarm, seed, _ := withSeed(t)
	line.Lose(seedDeliveries)
	offer := &signal.Signal{Swarm: swarm, To: seed, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan}
	v.send(offer)
	testkit.Eventually(t, "it is said again", func() bool { return w.metrics.Value(defDeliveries, "again") > 0 })
	w.clock.Move(6 * time.Second)
	if s := expect[*signal.Signal](v); s.Kind != "fail" || s.Reason != "gone" || s.Role != "seed" || s.From != seed || s.Link != offer.Link {
		t.Errorf("%+v", s)
	}
}
