package viewer

import (
	"fmt"
	"testing"
	"time"
)

const (
	fallAfter = 4 * time.Second // after the first picture
	fallFor   = 15 * time.Second
)

// felt is what a viewer felt of the fall of its line.
type felt struct {
	stall, startup time.Duration
	ahead          time.Duration // in hand at the fall
	filled         time.Duration // when 10 s were in hand first, since the start
	asked          int           // pieces, of the peers
}

// fall plays a film, the last piece of whose segments has so many bytes, on a line of 20 Mbit/s that falls to 0.2 four seconds after the
// first picture, for 15 s. So many viewers announce everything and send a kilobyte a second, in bursts.
func fall(t *testing.T, last, slow int) felt {
	s := newScene(t, func(w *world) *film { return newFilm(w, 60, 4*time.Second, 42*16384+last) })
	s.tracker.seed = nil
	all := &strangers{}
	for range slow {
		s.hostile(1000, all).bursts = true
	}
	a := s.viewer(access{up: 625_000, down: 2_500_000, delay: 15 * time.Millisecond}, func(c *Config) { c.Buffer = time.Minute })
	begun := s.w.now
	f := felt{}
	look := func(d time.Duration) {
		for until := s.w.now.Add(d); s.w.now.Before(until); {
			s.w.run(10 * time.Millisecond)
			if _, ready := a.player.playhead(); f.filled == 0 && ready >= 10*time.Second {
				f.filled = s.w.now.Sub(begun)
			}
		}
	}
	for s.w.run(0); !a.player.started; {
		look(10 * time.Millisecond)
	}
	f.startup = s.w.now.Sub(begun)
	look(fallAfter)
	_, f.ahead = a.player.playhead()
	a.node.down.Rate = 25_000
	look(fallFor)
	a.node.down.Rate = 2_500_000
	look(30 * time.Second)
	f.stall, f.asked = time.Duration(a.now().Stats.StallMs)*time.Millisecond, all.asked
	t.Logf("%+v", f)
	return f
}

// TestViewersThatAreFarTooSlowAreNotWaitedFor: the buffer grows nearly as by the origin alone, so that it outlasts the fall of the line.
// A short last piece is there at once and is verified, and what comes behind it is soon paid for.
func TestViewersThatAreFarTooSlowAreNotWaitedFor(t *testing.T) {
	for _, last := range []int{100, 576, 1800, 5000} {
		alone := fall(t, last, 0)
		for _, n := range []int{1, 4} {
			t.Run(fmt.Sprintf("last %d, %d viewers", last, n), func(t *testing.T) {
				slow := fall(t, last, n)
				if slow.asked == 0 {
					t.Error("no piece was asked of a peer")
				}
				if slow.stall > alone.stall {
					t.Errorf("%v of stalls, %v by the origin alone", slow.stall, alone.stall)
				}
				if more := slow.startup - alone.startup; more > 50*time.Millisecond {
					t.Errorf("the first picture %v later than by the origin alone", more)
				}
				if more := slow.filled - alone.filled; slow.filled == 0 || more > creditTime+250*time.Millisecond {
					t.Errorf("10 s in hand %v later than by the origin alone", more)
				}
				if slow.ahead < alone.ahead-3*4*time.Second {
					t.Errorf("%v in hand at the fall, %v by the origin alone", slow.ahead, alone.ahead)
				}
			})
		}
	}
}
