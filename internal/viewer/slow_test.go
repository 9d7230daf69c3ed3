package viewer

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const lookEvery = 500 * time.Millisecond

// besieged is a viewer on a line, with a seed, that meets a hostile peer; every lookEvery its buffer is looked at.
type besieged struct {
	*scene
	all     *strangers
	victim  *actor
	buffers []time.Duration // from the first picture on
}

func besiege(t testing.TB, seconds int, mbit float64, attack func(*scene, *strangers)) *besieged {
	s := newScene(t, func(w *world) *film {
		return newFilm(w, 240/seconds, time.Duration(seconds)*time.Second, seconds*250_000) // 2 Mbit/s
	})
	b := &besieged{scene: s, all: &strangers{}}
	attack(s, b.all)
	b.victim = s.viewer(access{up: mbit * 125_000, down: mbit * 125_000}, nil)
	for range 2 * time.Minute / lookEvery {
		s.w.run(lookEvery)
		if b.victim.player.started {
			_, ready := b.victim.player.playhead()
			b.buffers = append(b.buffers, ready)
		}
	}
	return b
}

// after is the buffer so long after the first picture.
func (b *besieged) after(d time.Duration) time.Duration { return b.buffers[d/lookEvery] }

// TestASilentOrSlowViewerHoldsNoOtherUp: with segments of two seconds a request was taken back, since a seed or the origin was quicker,
// before its stall time was over; so a viewer that sent nothing, or next to nothing, was asked first for every segment of the film, and each was
// held until its last moment: the buffer stayed at 1.5 to 3.5 s.
func TestASilentOrSlowViewerHoldsNoOtherUp(t *testing.T) {
	testkit.InOneGoroutine(t)
	for _, c := range []struct {
		name  string
		rate  int
		piece bool
		busy  bool // it says so just before a stall time is over; with piece, behind a piece of each request
		asked int  // at most, in all
	}{
		{"silent", 0, false, false, 20},
		{"a piece, then silent", 0, true, false, 30},
		{"drip", 5600, false, false, 35},
		{"a piece, then a drip", 5600, true, false, 35},
		{"busy", 0, false, true, 100},
	} {
		for _, seconds := range []int{2, 4} {
			for _, mbit := range []float64{10, 20, 50} {
				t.Run(fmt.Sprintf("%s, %d s, %v Mbit/s", c.name, seconds, mbit), func(t *testing.T) {
					b := besiege(t, seconds, mbit, func(s *scene, all *strangers) {
						h := s.hostile(c.rate, all)
						if h.piece, h.each = c.piece, c.busy; c.busy {
							h.busy = 900 * time.Millisecond
						}
					})
					sum := b.victim.now()
					t.Logf("asked %d times, closed %v, a buffer of %v after 5 s, %v after 10 s", b.all.asked, sum.LinksClosed, b.after(5*time.Second), b.after(10*time.Second))
					if b.all.asked == 0 || b.all.asked > c.asked {
						t.Errorf("it was asked %d times", b.all.asked)
					}
					if got := b.after(20 * time.Second); got < 20*time.Second || sum.Stats.Stalls > 0 {
						t.Errorf("after 20 s a buffer of %v, %d stalls", got, sum.Stats.Stalls)
					}
					if out := b.all.ended.Sub(b.all.since); c.rate == 0 && !c.busy && (out < 0 || out > 30*time.Second || sum.LinksClosed[peer.CloseStalled] != 1) {
						t.Errorf("out after %v, closed %v", out, sum.LinksClosed)
					}
					if sum.Banned > 0 || c.rate > 0 && len(sum.LinksClosed) > 0 { // a slow line is honest
						t.Errorf("%d banned, closed %v", sum.Banned, sum.LinksClosed)
					}
				})
			}
		}
	}
}

// TestSilentViewersThatComeBackCostASecond: until a peer brings a verified piece, requests wait for a second in all, however many
// names they come back under. Once one has, each new name holds up a segment for at most as long as it plays, and nothing stalls:
// that is what it costs (SECURITY.md).
func TestSilentViewersThatComeBackCostASecond(t *testing.T) {
	for _, c := range []struct {
		name  string
		piece bool // each brings one piece
	}{
		{"nothing is verified", false},
		{"each brings a piece", true},
	} {
		for _, mbit := range []float64{10, 20, 50} {
			t.Run(fmt.Sprintf("%s, %v Mbit/s", c.name, mbit), func(t *testing.T) {
				run := func(n int) *besieged {
					return besiege(t, 2, mbit, func(s *scene, all *strangers) {
						s.tracker.seed = nil
						for range n {
							h := s.hostile(0, all)
							h.back, h.piece = true, c.piece
						}
					})
				}
				alone, b := run(0), run(5)
				if b.all.identities < 50 {
					t.Errorf("%d names", b.all.identities)
				}
				// A second and a half later it is where it would have been.
				const lag, one = 1500 * time.Millisecond, 2 * time.Second // a segment more or less
				low := time.Hour
				for i, got := range b.buffers[lag/lookEvery : 200] {
					if low = min(low, got); !c.piece && got < alone.buffers[i]-lag-one {
						t.Fatalf("%v after the first picture a buffer of %v", time.Duration(i)*lookEvery+lag, got)
					}
				}
				if sum := b.victim.now(); low < 4*time.Second || sum.Stats.Stalls > 0 || sum.Banned > 0 {
					t.Errorf("a buffer of %v, %d stalls, %d banned", low, sum.Stats.Stalls, sum.Banned)
				}
			})
		}
	}
}
