package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// lossy is a bus between two replicas in virtual time. It loses, repeats, delays and is gone for a while.
type lossy struct {
	r           *rand.Rand
	now         time.Time
	lose, twice float64
	from, to    time.Duration // that a message is on its way
	gone, back  time.Duration // of the bus, from the beginning
	known       bool          // both replicas see that it is gone
	restart     time.Duration // when the receiver begins anew, without a memory
	pace        time.Duration // that the bus needs for a message; it has room for half a second of them

	free time.Time // when the bus has carried what it has

	on              []flight
	sent, acks      int
	came, abandoned []arrival
	started         time.Time
}

type flight struct {
	at time.Time
	f  func()
}

type arrival struct {
	m    int
	took time.Duration
}

func (l *lossy) away() bool {
	since := l.now.Sub(l.started)
	return since >= l.gone && since < l.back
}

func (l *lossy) carry(f func()) {
	if l.away() {
		return
	}
	if l.pace > 0 {
		l.free = latest(l.free, l.now).Add(l.pace)
		if l.free.Sub(l.now) > 500*time.Millisecond {
			l.free = l.free.Add(-l.pace)
			return
		}
		l.on = append(l.on, flight{l.free.Add(l.from), f})
		return
	}
	for range 2 {
		if l.r.Float64() >= l.lose {
			l.on = append(l.on, flight{l.now.Add(l.from + time.Duration(l.r.Int64N(int64(l.to-l.from+1)))), f})
		}
		if l.r.Float64() >= l.twice {
			return
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (l *lossy) deliver() {
	slices.SortStableFunc(l.on, func(a, b flight) int { return a.at.Compare(b.at) })
	for len(l.on) > 0 && !l.on[0].at.After(l.now) {
		f := l.on[0].f
		l.on = l.on[1:]
		f()
	}
}

// play sends messages for a minute, some at a time, and returns what came of them.
func (l *lossy) play() {
	l.started = time.Unix(1_800_000_000, 0)
	l.now = l.started
	const all = time.Minute
	var born []time.Time
	var a, b *Streams[int, int]
	end := func(self signal.ID, other func() *Streams[int, int]) *Streams[int, int] {
		return New[int, int](Config[int]{
			Self: self, Now: func() time.Time { return l.now },
			Connected: func() bool { return !l.known || !l.away() },
			Lives:     func(signal.ID) bool { return true },
			Say: func(_ signal.ID, m int, at *bus.Stream) {
				l.sent++
				said := *at
				l.carry(func() {
					for _, m := range other().Take(&said, m) {
						l.came = append(l.came, arrival{m, l.now.Sub(born[m])})
					}
				})
			},
			Ack: func(_ signal.ID, x *bus.Ack) {
				l.acks++
				l.carry(func() { other().Acked(x) })
			},
			Lost:  func(m int) { l.abandoned = append(l.abandoned, arrival{m, l.now.Sub(born[m])}) },
			Count: func(string) {},
		})
	}
	a = end(idA, func() *Streams[int, int] { return b })
	b = end(idB, func() *Streams[int, int] { return a })
	const tick = 2 * time.Millisecond
	for ; l.now.Sub(l.started) < all+10*time.Second; l.now = l.now.Add(tick) {
		since := l.now.Sub(l.started)
		if since < all && l.r.IntN(50) == 0 { // ten batches a second
			for range 1 + l.r.IntN(8) {
				born = append(born, l.now)
				a.Send(idB, len(born)-1)
			}
		}
		if l.restart > 0 && since == l.restart {
			b = end(idB, func() *Streams[int, int] { return a })
		}
		l.deliver()
		if since%Step == 0 {
			a.step(l.now)
			b.step(l.now)
		}
	}
}

// BenchmarkStreamElsewhere carries messages over buses that did not choose the rules of a stream. tools/ablation runs it with and without each
// (docs/experiments/ablation-schedule.md).
func BenchmarkStreamElsewhere(b *testing.B) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		lossy
	}{
		{"clean", lossy{from: ms, to: 3 * ms}},
		{"ocean", lossy{from: 90 * ms, to: 140 * ms, lose: 0.005, twice: 0.01}},
		{"lossy", lossy{from: ms, to: 30 * ms, lose: 0.08, twice: 0.05}},
		{"break", lossy{from: ms, to: 10 * ms, gone: 20 * time.Second, back: 22500 * ms}},
		{"pause", lossy{from: ms, to: 10 * ms, gone: 20 * time.Second, back: 22500 * ms, known: true}},
		{"outage", lossy{from: ms, to: 10 * ms, gone: 20 * time.Second, back: 40 * time.Second, known: true}},
		{"far", lossy{from: 350 * ms, to: 500 * ms, lose: 0.01}},
		{"full", lossy{from: 5 * ms, pace: 18 * ms}},
		{"restart", lossy{from: ms, to: 10 * ms, lose: 0.02, restart: 30 * time.Second}},
	} {
		for seed := range uint64(3) {
			b.Run(fmt.Sprintf("%s/%d", c.name, seed), func(b *testing.B) {
				for b.Loop() {
					l := c.lossy
					l.r = rand.New(rand.NewPCG(seed, 77))
					l.play()
					l.report(b)
				}
			})
		}
	}
}

func (l *lossy) report(b *testing.B) {
	times := map[int]int{}
	var took []time.Duration
	twice, disorder := 0, 0
	for i, m := range l.came {
		if times[m.m]++; times[m.m] > 1 {
			twice++
		}
		if i > 0 && m.m < l.came[i-1].m {
			disorder++
		}
		took = append(took, m.took)
	}
	wrong := 0 // given up though they came
	for _, m := range l.abandoned {
		if times[m.m] > 0 {
			wrong++
		}
	}
	slices.Sort(took)
	all := float64(len(times) + len(l.abandoned) - wrong)
	b.ReportMetric(100*float64(len(times))/all, "arrived-%")
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
	b.ReportMetric(float64(l.sent)/all, "said/message")
	b.ReportMetric(float64(l.acks)/all, "acks/message")
	b.ReportMetric(float64(twice), "twice")
	b.ReportMetric(float64(disorder), "out-of-order")
	b.ReportMetric(float64(wrong), "wrongly-given-up")
}
