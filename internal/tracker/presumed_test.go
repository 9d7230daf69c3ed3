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

func beats(subject string) bool { return subject == bus.SubjectTrackerBeat }

// TestASessionThoughtDeadHearsSignals: one tracker does not hear the other's beats for a while and takes it for dead; the other
// notices nothing, and goes on where it was.
func TestASessionThoughtDeadHearsSignals(t *testing.T) {
	w := newWorld(t)
	line := &testbus.Lossy{Bus: w.bus}
	w.through = line
	quiet := w.tracker(calm)
	w.through = nil
	other := w.tracker(calm)
	know(t, quiet, other)
	a, b := quiet.viewer(""), other.viewer("")
	a.join()
	swarm := b.join().Swarm
	expect[*signal.Introduce](b)
	link := newID()
	say := func(n int) {
		t.Helper()
		b.send(&signal.Signal{Swarm: swarm, To: a.id, Link: link, Kind: "candidate", Candidate: strings.Repeat("c", n), Mid: "0"})
		if s := expect[*signal.Signal](a); len(s.Candidate) != n {
			t.Fatalf("signal %d came as %+v", n, s)
		}
	}
	for n := range 5 {
		say(n + 1)
	}
	line.Lose(beats)
	testkit.Eventually(t, "it is taken for dead", func() bool { return other.roster.live() == 1 })
	// What is under way keeps a stream alive; it is forgotten at a beat at which nothing is.
	other.streams.Maintain()
	line.Lose(nil)
	know(t, quiet, other)
	for n := range 5 {
		say(n + 6)
	}
}

// calm are beats that a busy machine does not miss.
func calm(c *Config) { c.BeatEvery = 400 * time.Millisecond }
