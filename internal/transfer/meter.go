package transfer

import (
	"cmp"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// unknownRTT is what a round trip is taken for before anything was measured.
const unknownRTT = 50 * time.Millisecond

// longestRTT bounds what is measured: it is the other side that makes it long, and stall times grow with it.
const longestRTT = time.Second

// byteWorth is the waiting time that a byte pays for (spec/schedule.md): a peer that sends less than 5 kB/s stalls, however
// often it sends.
const byteWorth = 183 * time.Microsecond

// Least time or bytes for a sample of the rate.
const (
	rateTime  = 50 * time.Millisecond
	rateBytes = 131_072
)

// A sample of a rate that is lower, bytes per second, takes half a second, or as long as something is outstanding: the time before one
// message says little of such a peer.
const (
	slowRate = 16_384
	slowTime = 500 * time.Millisecond
)

// What is outstanding for so long in all bounds the rate by its mean; both halves of the mean are halved beyond meanMost.
const (
	meanLeast = time.Second
	meanMost  = 4 * time.Second
)

// A rate below what an unknown one is taken for (spec/schedule.md) is believed for so long without data. Otherwise a peer
// that was slow once, perhaps for lack of processor time, would never be asked again and would stay slow.
const (
	rateAge     = 10 * time.Second
	unknownPace = 65_536
)

// meter watches how quick the other side is: the rate of arrival while something is outstanding, and the round trip.
//
// A peer that serves its links in turn gives each of them its whole line during its turn. So the mean that includes the time
// between turns bounds the rate (spec/schedule.md).
type meter struct {
	burst int64 // bytes per second, 0 unknown
	rtt   time.Duration
	paid  time.Time // up to when data pay for silence
	total int64     // bytes of requests, canceled ones too
	since time.Time // begin of the sample; zero while idle
	bytes int64     // of the sample
	first int64     // of them, of the message at its begin, which is not counted
	last  time.Time // when something came
	heard time.Time // likewise, of canceled requests too
	due   struct {  // of the mean
		time  time.Duration // in which an answer or further data were due
		bytes int64
	}
}

// arrived notes data: waited is the time since its request, idle says that nothing more is outstanding. The first
// message of a burst only starts the watch, and is the answer to a request: pings do not go out while there is traffic.
func (m *meter) arrived(bytes int, now time.Time, waited time.Duration, idle bool) {
	if m.stale(now) {
		m.burst, m.due.time, m.due.bytes = 0, 0, 0
	}
	m.average(bytes, now, waited)
	if m.since.IsZero() {
		m.since, m.first = now, int64(bytes)
		m.roundTrip(waited)
	} else {
		m.bytes += int64(bytes)
		elapsed, least := now.Sub(m.since), rateTime
		if m.burst > 0 && m.burst < slowRate && !idle {
			least = slowTime
		}
		if elapsed >= least || m.bytes >= rateBytes && elapsed >= time.Microsecond {
			if m.burst == 0 { // what came at its begin or at its end: which of them the time was for depends on the sender
				m.bytes = min(m.bytes, m.bytes-int64(bytes)+m.first)
			}
			sample := m.bytes * int64(time.Second/time.Microsecond) / elapsed.Microseconds()
			if m.burst > 0 {
				sample = (7*m.burst + 3*sample) / 10
			}
			m.burst, m.since, m.bytes = max(1, sample), now, 0
		}
	}
	if idle {
		m.idle()
	}
}

func (m *meter) average(bytes int, now time.Time, waited time.Duration) {
	gap := max(0, waited-m.rtt)
	if !m.since.IsZero() {
		gap = now.Sub(m.last)
	}
	m.last = now
	m.due.time += gap
	m.due.bytes += int64(bytes)
	if m.due.time > meanMost {
		m.due.time, m.due.bytes = m.due.time/2, m.due.bytes/2
	}
}

// stale says that the rate is measured anew.
func (m *meter) stale(now time.Time) bool {
	return m.burst > 0 && m.measured() < unknownPace && now.Sub(m.last) >= rateAge
}

// rate is in bytes per second, 0 unknown.
func (m *meter) rate(now time.Time) int64 {
	if m.stale(now) {
		return 0
	}
	return m.measured()
}

func (m *meter) measured() int64 {
	if m.burst == 0 || m.due.time < meanLeast {
		return m.burst
	}
	return max(1, min(m.burst, m.due.bytes*int64(time.Second/time.Microsecond)/m.due.time.Microseconds()))
}

// idle says that nothing is outstanding: the time until the next request is not the other side's fault.
func (m *meter) idle() { m.since, m.bytes = time.Time{}, 0 }

// pay notes data of what was asked for at a time, the zero time if it was canceled since.
func (m *meter) pay(bytes int, now, asked time.Time) {
	m.total += int64(bytes)
	m.heard = now
	from := m.paid
	if asked.After(from) {
		from = asked
	}
	if from = from.Add(time.Duration(bytes) * byteWorth); from.After(now) {
		from = now
	}
	m.paid = from
}

func (m *meter) roundTrip(sample time.Duration) {
	sample = min(sample, longestRTT)
	if m.rtt == 0 {
		m.rtt = max(sample, time.Microsecond)
	} else {
		m.rtt = (7*m.rtt + sample) / 8
	}
}

// gauge is the meter of a download, under a lock of its own.
type gauge struct {
	clock func() time.Time

	mu    sync.Mutex
	meter meter // guarded by mu
}

// came notes data of an order that was made at a time. Data of the background says nothing about how quick the other side is, since it
// gives way. idle says that nothing more is outstanding in the foreground.
func (g *gauge) came(bytes int, now, asked time.Time, lane peer.Lane, idle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meter.pay(bytes, now, asked)
	switch {
	case lane == peer.Foreground:
		g.meter.arrived(bytes, now, now.Sub(asked), idle)
	case idle:
		g.meter.idle()
	}
}

// late notes data of what was canceled.
func (g *gauge) late(bytes int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meter.pay(bytes, now, time.Time{})
}

// rest ends the watch of the rate: nothing is outstanding in the foreground.
func (g *gauge) rest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meter.idle()
}

// RoundTrip takes a sample: a pong came back.
func (g *gauge) RoundTrip(sample time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meter.roundTrip(sample)
}

// Rate is what the other side sends while it is asked, in bytes per second; 0 unknown.
func (g *gauge) Rate() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.meter.rate(g.clock())
}

// RTT is the round trip, a guess while unknown.
func (g *gauge) RTT() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return cmp.Or(g.meter.rtt, unknownRTT)
}

// Came is how many bytes came of what was asked for, of canceled requests too.
func (g *gauge) Came() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.meter.total
}

// Paid is up to when the data that came pay for silence, the zero time before any did.
func (g *gauge) Paid() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.meter.paid
}

// Heard is when data last came of what was asked for, of canceled requests too; the zero time if none did.
func (g *gauge) Heard() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.meter.heard
}
