package stream

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// pair is two replicas on a bus that a test can cut, lose from, and have them think each other dead.
type pair struct {
	a, b *Streams[int, int]

	mu     sync.Mutex
	cut    bool // nothing passes, and both know it
	lose   int  // so many of the next messages
	alone  bool // b is off the bus, and a does not know
	looks  int  // of b at the bus
	dead   bool // neither believes that the other lives
	got    []int
	lost   []int
	counts map[string]int
}

var idA, idB = signal.ID{1}, signal.ID{2}

// set changes the world, or looks at it.
func (p *pair) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// replica is one of the two. The streams call it and each other from goroutines of their own.
func (p *pair) replica(self signal.ID, other func() *Streams[int, int]) *Streams[int, int] {
	return New[int, int](Config[int]{
		Self: self, Now: time.Now,
		Connected: func() (up bool) {
			p.set(func() {
				up = !p.cut && !(p.alone && self == idB)
				if self == idB {
					p.looks++
				}
			})
			return up
		},
		Lives: func(signal.ID) (lives bool) {
			p.set(func() { lives = !p.dead })
			return lives
		},
		Say: func(_ signal.ID, m int, at *bus.Stream) {
			passes := false
			p.set(func() {
				if passes = p.lose == 0 && !p.alone && !p.cut; p.lose > 0 {
					p.lose--
				}
			})
			if passes {
				ready := other().Take(at, m)
				p.set(func() { p.got = append(p.got, ready...) })
			}
		},
		Ack: func(_ signal.ID, a *bus.Ack) {
			passes := false
			p.set(func() { passes = !p.cut && !(p.alone && self == idB) })
			if passes {
				other().Acked(a)
			}
		},
		Lost:  func(m int) { p.set(func() { p.lost = append(p.lost, m) }) },
		Count: func(outcome string) { p.set(func() { p.counts[outcome]++ }) },
	})
}

// between runs f with a pair, in time of its own.
func between(t *testing.T, f func(p *pair, after func(time.Duration, func()))) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{counts: map[string]int{}}
		p.a = p.replica(idA, func() *Streams[int, int] { return p.b })
		p.b = p.replica(idB, func() *Streams[int, int] { return p.a })
		ctx, cancel := context.WithCancel(t.Context())
		go p.a.Run(ctx)
		go p.b.Run(ctx)
		f(p, func(d time.Duration, look func()) {
			<-time.After(d)
			synctest.Wait()
			p.set(look)
		})
		cancel()
		synctest.Wait()
	})
}

func TestWhatIsLostIsSaidAgainInOrder(t *testing.T) {
	between(t, func(p *pair, after func(time.Duration, func())) {
		p.set(func() { p.lose = 3 })
		for m := range 5 {
			p.a.Send(idB, m)
		}
		said := 0
		after(time.Second, func() {
			said = p.counts["again"]
			if !slices.Equal(p.got, []int{0, 1, 2, 3, 4}) || len(p.lost) > 0 || p.counts["sent"] != 5 || said == 0 {
				t.Errorf("came %v, lost %v, counted %v", p.got, p.lost, p.counts)
			}
		})
		after(time.Minute, func() {
			if p.counts["again"] != said {
				t.Errorf("%d were said again after they had arrived", p.counts["again"]-said)
			}
		})
	})
}

func TestWhatCannotBeSaidIsGivenUp(t *testing.T) {
	between(t, func(p *pair, after func(time.Duration, func())) {
		p.set(func() { p.cut = true })
		p.a.Send(idB, 1)
		after(4*time.Second, func() {
			if len(p.lost) > 0 {
				t.Error("given up too early")
			}
			p.cut = false
		})
		after(900*time.Millisecond, func() { p.cut = true })
		p.a.Send(idB, 2)
		after(6*time.Second, func() {
			if !slices.Equal(p.got, []int{1}) || !slices.Equal(p.lost, []int{2}) {
				t.Errorf("came %v, lost %v", p.got, p.lost)
			}
		})
	})
}

// TestWhatArrivedIsNotGivenUp: a replica that is back on the bus acknowledges what it has, because it may not be sent again before it is given up.
func TestWhatArrivedIsNotGivenUp(t *testing.T) {
	between(t, func(p *pair, after func(time.Duration, func())) {
		p.a.Send(idB, 1)
		p.set(func() { p.alone = true })
		after(4700*time.Millisecond, func() { p.alone = false })
		after(time.Minute, func() {
			if !slices.Equal(p.got, []int{1}) || len(p.lost) > 0 {
				t.Errorf("came %v, lost %v", p.got, p.lost)
			}
		})
	})
}

func TestOnlyTheSenderWaitsForAnAcknowledgement(t *testing.T) {
	between(t, func(p *pair, after func(time.Duration, func())) {
		p.a.Send(idB, 1)
		p.set(func() { p.alone = true })
		after(10*time.Second, func() { p.looks = 0 })
		after(time.Minute, func() {
			if p.looks > 0 {
				t.Errorf("%d looks for something to do", p.looks)
			}
		})
	})
}

// TestAReplicaThoughtDeadHearsOn: one replica takes the other for dead and forgets its stream, the other does not and waits for
// the number that comes next.
func TestAReplicaThoughtDeadHearsOn(t *testing.T) {
	between(t, func(p *pair, after func(time.Duration, func())) {
		for m := range 7 {
			p.a.Send(idB, m)
		}
		after(time.Second, func() { p.dead = true })
		p.a.Maintain()
		p.set(func() { p.dead = false })
		p.a.Send(idB, 7)
		p.a.Send(idB, 8)
		after(time.Second, func() {
			if !slices.Equal(p.got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) || len(p.lost) > 0 {
				t.Errorf("came %v, lost %v", p.got, p.lost)
			}
		})
	})
}

func TestTooManyAtATimeAreLostAtOnce(t *testing.T) {
	between(t, func(p *pair, after func(time.Duration, func())) {
		p.set(func() { p.cut = true })
		for m := range 2000 {
			p.a.Send(idB, m)
		}
		p.set(func() {
			if p.counts["lost"] != 2000-1024 || len(p.lost) != 2000-1024 || p.lost[0] != 1024 {
				t.Errorf("%v", p.counts)
			}
			p.cut = false
		})
		after(10*time.Second, func() {
			if len(p.got) != 1024 {
				t.Errorf("%d came", len(p.got))
			}
		})
	})
}
