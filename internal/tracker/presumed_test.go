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

func TestMembersThatFellSilentAreForgotten(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.BeatEvery = time.Hour }) // no beat has the session join again
	v := n.viewer("")
	swarm := v.join().Swarm
	w.clock.Move(time.Minute)
	n.home.maintain(w.clock.Now())
	if got := n.members(swarm); got != 0 {
		t.Errorf("the home has %d members that said nothing for a minute", got)
	}
	v.send(&signal.Update{Swarm: swarm, Want: 4}) // the session joins again by itself
	testkit.Eventually(t, "member again", func() bool {
		n.home.mu.Lock()
		defer n.home.mu.Unlock()
		s := n.home.swarms[swarm]
		return s != nil && s.Len() == 1
	})
}
