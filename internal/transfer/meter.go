package transfer

import "time"

// unknownRTT is what a round trip is taken for before anything was measured.
const unknownRTT = 50 * time.Millisecond

// Least time or bytes for a sample of the rate.
const (
	rateTime  = 50 * time.Millisecond
	rateBytes = 131_072
)

// meter watches how quick the other side is: the rate of arrival while something is outstanding, and the round trip.
type meter struct {
	rate  int64 // bytes per second, 0 unknown
	rtt   time.Duration
	last  time.Time // of the last data
	since time.Time // begin of the sample; zero while idle
	bytes int64     // of the sample
}

// arrived notes data: waited is the time since its request, idle says that nothing more is outstanding. The first
// message of a burst only starts the watch, and is the answer to a request: pings do not go out while there is traffic.
func (m *meter) arrived(bytes int, now time.Time, waited time.Duration, idle bool) {
	m.last = now
	if m.since.IsZero() {
		m.since = now
		m.roundTrip(waited)
	} else {
		m.bytes += int64(bytes)
		elapsed := now.Sub(m.since)
		if elapsed >= rateTime || m.bytes >= rateBytes && elapsed >= time.Microsecond {
			sample := m.bytes * int64(time.Second/time.Microsecond) / elapsed.Microseconds()
			if m.rate > 0 {
				sample = (7*m.rate + 3*sample) / 10
			}
			m.rate, m.since, m.bytes = sample, now, 0
		}
	}
	if idle {
		m.since, m.bytes = time.Time{}, 0
	}
}

func (m *meter) roundTrip(sample time.Duration) {
	if m.rtt == 0 {
		m.rtt = max(sample, time.Microsecond)
	} else {
		m.rtt = (7*m.rtt + sample) / 8
	}
}

// RoundTrip takes a sample: a pong came back.
func (d *Download) RoundTrip(sample time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.meter.roundTrip(sample)
}

// Rate is what the other side sends while it is asked, in bytes per second; 0 unknown.
func (d *Download) Rate() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.meter.rate
}

// RTT is the round trip, a guess while unknown.
func (d *Download) RTT() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.meter.rtt == 0 {
		return unknownRTT
	}
	return d.meter.rtt
}

// LastData is when data came last, the zero time before any did.
func (d *Download) LastData() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.meter.last
}
