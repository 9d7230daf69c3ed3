package netstat

import "slices"

// drift is the bound on how far two clocks move apart: one microsecond in so many.
const drift = 10_000

// Jitter is RFC 3550's interarrival jitter of a record's arrivals, in microseconds.
func (p Pattern) Jitter() float64 {
	j := 0.0
	for i := 1; i < len(p.first); i++ {
		a, b := p.first[i-1], p.first[i]
		d := (b.Received - a.Received) - (b.Sent - a.Sent)
		if d < 0 {
			d = -d
		}
		j += (float64(d) - j) / 16
	}
	return j
}

// DelayRange is the largest less the smallest delay, in microseconds. It needs no common clock.
func (p Pattern) DelayRange() int64 {
	delays := p.Delays(0)
	if len(delays) == 0 {
		return 0
	}
	return delays[len(delays)-1] - delays[0]
}

// Delays are received − sent − offset of the arrivals, in ascending order, where offset is the receiver's clock less the
// sender's.
func (p Pattern) Delays(offset int64) []int64 {
	delays := make([]int64, len(p.first))
	for i, a := range p.first {
		delays[i] = a.Received - a.Sent - offset
	}
	slices.Sort(delays)
	return delays
}

// Percentile is a value of an ascending list, by nearest rank; 0 of an empty list.
func Percentile(ascending []int64, p int64) int64 {
	n := int64(len(ascending))
	if n == 0 {
		return 0
	}
	return ascending[min(n, max(1, (p*n+99)/100))-1]
}

// Exchange is an echo's four times: sent and returned by the client's clock, received and echoed by the server's.
type Exchange struct {
	Sent, Received, Echoed, Returned int64 // µs
}

// RTT is the exchange's round-trip time without the server's part.
func (e Exchange) RTT() int64 { return (e.Returned - e.Sent) - (e.Echoed - e.Received) }

// Offset is what two clocks are apart, and how well that is known.
type Offset struct {
	Clock int64 // µs, the server's clock less the client's
	Delay int64 // round-trip time of the exchange that it comes from
	At    int64 // µs, the client's clock
}

// Clocks finds the offset by the exchange with the smallest round-trip time. ok is false without an exchange.
func Clocks(exchanges []Exchange) (best Offset, ok bool) {
	for _, e := range exchanges {
		delay := e.RTT()
		if delay < 0 || ok && delay >= best.Delay {
			continue
		}
		best, ok = Offset{
			Clock: half((e.Received - e.Sent) + (e.Echoed - e.Returned)), Delay: delay, At: half(e.Sent + e.Returned),
		}, true
	}
	return best, ok
}

// Uncertainty is by how much the offset may be wrong at a time of the client's clock, in microseconds.
func (o Offset) Uncertainty(at int64) int64 {
	away := at - o.At
	if away < 0 {
		away = -away
	}
	return o.Delay/2 + away/drift
}

// OneWay says whether a delay may be reported, which is known up to an uncertainty.
func OneWay(delay, uncertainty int64) bool { return delay > 0 && 2*uncertainty <= delay }

// half rounds down.
func half(n int64) int64 { return n >> 1 }
