package rtclink

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// pipe is a path with one drop-tail queue, in steps of a millisecond: what is sent waits for its turn at the rate, is
// acknowledged a round trip later, and is lost where the queue is full.
type pipe struct {
	rate  float64 // bytes per second
	rtt   time.Duration
	queue int // bytes

	now    time.Time
	cwnd   int // the transport's window: doubles every round trip
	inPipe []chunk
	acked  int64
	sent   int64
	lost   int
	free   time.Time // when the bottleneck is
}

type chunk struct {
	bytes int
	ackAt time.Time
}

// step lets a millisecond pass and sends what window and bound allow; it returns the smoothed round-trip time.
func (p *pipe) step(bound int) time.Duration {
	p.now = p.now.Add(time.Millisecond)
	for len(p.inPipe) > 0 && !p.inPipe[0].ackAt.After(p.now) {
		p.acked += int64(p.inPipe[0].bytes)
		p.cwnd += p.inPipe[0].bytes
		p.inPipe = p.inPipe[1:]
	}
	const packet = 1200
	for int(p.sent-p.acked)+packet <= min(bound, p.cwnd) {
		start := p.free
		if start.Before(p.now) {
			start = p.now
		}
		if p.rate*start.Sub(p.now).Seconds() > float64(p.queue) {
			p.lost++
			return 0
		}
		p.free = start.Add(time.Duration(packet / p.rate * float64(time.Second)))
		p.inPipe = append(p.inPipe, chunk{packet, p.free.Add(p.rtt)})
		p.sent += packet
	}
	return p.rtt + max(p.free.Sub(p.now), 0)
}

func TestFlightFillsAPathAndDoesNotOverflowIt(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64 // Mbit/s
		rtt  time.Duration
	}{
		{"100 Mbit/s, 50 ms", 100, 50 * time.Millisecond}, {"100 Mbit/s, 100 ms", 100, 100 * time.Millisecond},
		{"20 Mbit/s, 40 ms", 20, 40 * time.Millisecond}, {"1 Gbit/s, 10 ms", 1000, 10 * time.Millisecond},
	} {
		rate := c.rate * 1e6 / 8
		p := &pipe{rate: rate, rtt: c.rtt, queue: int(rate * c.rtt.Seconds()), now: time.Unix(0, 0), cwnd: minCwnd}
		f := newFlight(DefaultInFlight, 16384)
		f.sample(p.now, c.rtt)
		var rtt time.Duration
		const seconds = 10
		var late int64
		for i := range seconds * 1000 {
			rtt = p.step(f.bound(0))
			f.held()
			if f.due(p.now) {
				f.advance(p.now, p.acked, rtt)
			}
			if i == seconds*500 {
				late = p.acked
			}
		}
		if p.lost > 0 {
			t.Errorf("%s: %d packets lost to an overflowing queue", c.name, p.lost)
		}
		if got := float64(p.acked-late) / (seconds / 2); got < 0.9*rate {
			t.Errorf("%s: %.0f of %.0f bytes per second", c.name, got, rate)
		}
		if most := int(2 * rate * c.rtt.Seconds()); f.bound(0) > most {
			t.Errorf("%s: %d bytes in flight on a path of %d", c.name, f.bound(0), most/2)
		}
	}
}

func TestFlightFollowsASlowerPath(t *testing.T) {
	p := &pipe{rate: 12.5e6, rtt: 40 * time.Millisecond, queue: 500_000, now: time.Unix(0, 0), cwnd: minCwnd}
	f := newFlight(DefaultInFlight, 16384)
	f.sample(p.now, p.rtt)
	for i := range 10_000 {
		if i == 4000 {
			p.rate /= 10
		}
		rtt := p.step(f.bound(0))
		f.held()
		if f.due(p.now) {
			f.advance(p.now, p.acked, rtt)
		}
	}
	if most := int(2 * p.rate * p.rtt.Seconds()); f.bound(0) > most {
		t.Errorf("%d bytes in flight after the path became ten times slower, expected below %d", f.bound(0), most)
	}
}

// TestFlightFollowsAnotherWay: SCTP's round-trip time is still half of the old way when the first bytes come by the new one.
func TestFlightFollowsAnotherWay(t *testing.T) {
	const rate, seconds = 2.5e6, 5
	for _, c := range []struct{ from, to time.Duration }{
		{10 * time.Millisecond, 80 * time.Millisecond}, {80 * time.Millisecond, 10 * time.Millisecond}, {40 * time.Millisecond, 40 * time.Millisecond},
	} {
		p := &pipe{rate: rate, rtt: c.from, queue: 200_000, now: time.Unix(0, 0), cwnd: minCwnd}
		f := newFlight(DefaultInFlight, 16384)
		f.sample(p.now, c.from)
		smoothed, measured, late := c.from, p.now, int64(0)
		for i := range 3 * seconds * 1000 {
			switch i {
			case seconds * 1000:
				p.rtt = c.to
				f.move()
			case 2 * seconds * 1000:
				late = p.acked
			}
			f.heard(p.now, p.acked)
			if p.sent == p.acked || f.asks() {
				f.woke(p.now, p.sent)
			}
			if rtt := p.step(f.bound(0)); rtt > 0 && !p.now.Before(measured) {
				smoothed, measured = (7*smoothed+rtt)/8, p.now.Add(rtt)
			}
			f.held()
			if f.due(p.now) {
				f.advance(p.now, p.acked, smoothed)
			}
		}
		if got := float64(p.acked-late) / seconds; got < 0.9*rate {
			t.Errorf("%s to %s: %.0f of %.0f bytes per second", c.from, c.to, got, rate)
		}
		if base := f.baseRTT(); base < c.to || base > c.to*5/4 {
			t.Errorf("%s to %s: a base of %s", c.from, c.to, base)
		}
	}
}

func TestFlightIsNotFooledByPauses(t *testing.T) {
	f := newFlight(DefaultInFlight, 16384)
	now := time.Unix(0, 0)
	f.sample(now, 20*time.Millisecond)
	acked := int64(0)
	for range 20 { // 10 MB/s
		now = now.Add(20 * time.Millisecond)
		acked += 200_000
		f.held()
		f.advance(now, acked, 25*time.Millisecond)
	}
	before := f.bound(0)
	for range 50 { // a piece a second: the application has no more
		now = now.Add(time.Second)
		acked += 16384
		f.advance(now, acked, 250*time.Millisecond)
	}
	if f.bound(0) != before {
		t.Errorf("the bound went from %d to %d bytes although the path was never asked for more", before, f.bound(0))
	}
	if f.baseRTT() != 20*time.Millisecond {
		t.Errorf("base round-trip time %s", f.baseRTT())
	}
}

// TestAThinPathHasPacketsInFlight: a piece would be a queue of its own once several links share the path.
func TestAThinPathHasPacketsInFlight(t *testing.T) {
	for _, message := range []int{1000, 1200, 16384, peer.PieceSize + peer.DataHeader} {
		f := newFlight(DefaultInFlight, message)
		if whole := peer.CutSize(peer.PieceSize, message) + peer.DataHeader; f.thin() || f.message(f.thin()) != whole {
			t.Errorf("messages of %d bytes at first, expected %d", f.message(f.thin()), whole)
		}
		now := time.Unix(0, 0)
		f.sample(now, 60*time.Millisecond)
		for range 20 { // 15 kB/s
			now = now.Add(200 * time.Millisecond)
			f.held()
			f.advance(now, f.acked+3000, 200*time.Millisecond)
		}
		if !f.thin() || f.message(f.thin()) > packetPayload {
			t.Errorf("messages of %d: cut into %d bytes on a thin path", message, f.message(f.thin()))
		}
		if f.bound(0) < 2*f.message(f.thin()) || f.bound(0) > 4*packetPayload {
			t.Errorf("messages of %d: %d bytes in flight", message, f.bound(0))
		}
	}
}

// TestALongThinPathIsFull plays a line of 1 Mbit/s and 100 ms, to which whole messages are handed.
func TestALongThinPathIsFull(t *testing.T) {
	const rate, rtt = 125_000.0, 100 * time.Millisecond
	p := &pipe{rate: rate, rtt: rtt, queue: 32 << 10, now: time.Unix(0, 0), cwnd: minCwnd}
	f := newFlight(DefaultInFlight, 16384)
	f.sample(p.now, rtt)
	var handed, late int64
	for i := range 20_000 {
		for int(handed-p.acked)+f.message(f.thin()) <= f.bound(0) {
			handed += int64(f.message(f.thin()))
		}
		f.held()
		smoothed := p.step(int(handed - p.acked))
		if f.due(p.now) {
			f.advance(p.now, p.acked, smoothed)
		}
		if i == 10_000 {
			late = p.acked
		}
	}
	if got := float64(p.acked-late) / 10; got < 0.97*rate {
		t.Errorf("%.0f of %.0f bytes per second", got, rate)
	}
	if p.lost > 0 || f.bound(0) > 2*int(rate*rtt.Seconds())+f.cut {
		t.Errorf("%d packets lost, %d bytes in flight", p.lost, f.bound(0))
	}
}

func TestFlightStaysWithinItsLimits(t *testing.T) {
	f := newFlight(100_000, 40_000)
	if f.bound(0) != 40_000 {
		t.Errorf("%d at first: a message must fit", f.bound(0))
	}
	if most := newFlight(DefaultInFlight, 16384).bound(0); most != firstFlight {
		t.Errorf("%d at first", most)
	}
	now := time.Unix(0, 0)
	round := func(bytes int64) {
		now = now.Add(10 * time.Millisecond)
		f.held()
		f.advance(now, f.acked+bytes, time.Millisecond)
	}
	for range 20 {
		round(100)
	}
	if f.bound(0) != thinPackets*packetPayload {
		t.Errorf("%d on a path that carries nothing", f.bound(0))
	}
	round(10_000_000)
	if f.bound(0) != 100_000 {
		t.Errorf("%d on a path that carries all", f.bound(0))
	}
}

// BenchmarkBound is what is asked before every message of a link whose path is known.
func BenchmarkBound(b *testing.B) {
	f := newFlight(DefaultInFlight, 16384)
	now := time.Unix(0, 0)
	for i := range 20 {
		f.held()
		f.advance(now.Add(time.Duration(i)*25*time.Millisecond), int64(i)*250_000, 25*time.Millisecond)
	}
	for b.Loop() {
		if f.bound(0) <= firstFlight {
			b.Fatal("the path is not known")
		}
	}
}

// TestLongMessagesGetAPathGoingThatLookedThin: others had the line when the rate was first seen, and the messages are those of
// half a piece, of which a thin path is to have none. Where the bound held less than two of them, each went out alone and waited
// for its acknowledgement, and 10 Mbit/s carried 1.4.
func TestLongMessagesGetAPathGoingThatLookedThin(t *testing.T) {
	const rate, rtt, seconds = 1.25e6, 40 * time.Millisecond, 5
	p := &pipe{rate: rate, rtt: rtt, queue: 256_000, now: time.Unix(0, 0), cwnd: minCwnd}
	f := newFlight(DefaultInFlight, peer.DefaultPlan.Message)
	long := f.cut
	f.sample(p.now, rtt)
	for range 2 * stalled {
		p.now = p.now.Add(rtt)
		p.sent, p.acked = p.sent+4096, p.acked+4096
		f.held()
		f.advance(p.now, p.acked, rtt)
	}
	if !f.thin() {
		t.Fatalf("a rate of %.0f bytes/s is none of a thin path", f.rate())
	}
	handed, before := p.acked, p.acked
	for range seconds * 1000 {
		for handed-p.acked < 1200 || int(handed-p.acked)+long <= f.bound(long) {
			handed += int64(long)
		}
		f.held()
		smoothed := p.step(int(handed - p.acked))
		if f.due(p.now) {
			f.advance(p.now, p.acked, smoothed)
		}
	}
	if got := float64(p.acked-before) / seconds; got < 0.8*rate {
		t.Errorf("%.0f of %.0f bytes per second", got, rate)
	}
}
