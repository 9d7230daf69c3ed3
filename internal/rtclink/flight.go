package rtclink

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// The bound of what a link has in flight follows what the path delivers. SCTP's own window is no brake: slow start
// doubles it until the path's queue overflows by as much as was in it, hundreds of packets at once, and recovering them
// takes seconds in which nothing new arrives. So a link hands SCTP no more than
//
//	delivery rate × gain × base round-trip time + one message
//
// bytes, sent or not, and a little more on the shortest paths. Without the message, what is handed over in whole messages
// is below the product by half a message in the mean, which a thin line with a long way feels. The rate is the highest of
// the last rounds; while it still grows, the gain is large enough to find the path's rate within a few round trips and
// small enough that a queue of one bandwidth-delay product holds the rest. SCTP's window stays in force below the bound:
// it answers to loss.
//
// A thin path, one on which the product is less than a piece, has packets under way and not pieces: eight links with a
// piece each on 1 Mbit/s have three times what the line and its queue hold. What is lost then is lost again, and SCTP
// waits 1, 2 and 4 seconds for it. So messages are short there (message), and few packets are the least.
const (
	startGain   = 1.8
	steadyGain  = 1.4
	leastDelay  = 8 * time.Millisecond // on the shortest paths acknowledgements wait for batches and for a core
	nearFlight  = 768 << 10            // bytes, of leastDelay at most: pion's ICE drops what waits beyond a megabyte
	firstFlight = 18 << 10             // bytes, before anything is known: a piece and what is said with it
	leastFlight = 17 << 10             // bytes: a piece and its headers, unless the path is thin
	thinPackets = 3                    // on a thin path: two would wait for the receiver's delayed acknowledgement
	leastRound  = 5 * time.Millisecond
	rateRounds  = 10 // rounds that a rate counts for
	stalled     = 3  // rounds without growth that end the start
	growth      = 1.25
)

// flight is the bound of one link. It is pure: time and what SCTP says are arguments.
type flight struct {
	least, most int // bytes
	cut         int // bytes of a message of half a piece, or what the plan makes of it

	begun   time.Time // of the round; zero before the first
	acked   int64     // bytes, when it began
	limited bool      // the bound held something back in this round

	rates   [rateRounds]float64 // bytes per second
	round   int
	best    float64 // highest when growth was last seen
	steady  bool
	without int // rounds without growth

	base  base
	wake  wake
	moved bool // SCTP's round-trip time is of an earlier path, too, and says nothing of this one's base
}

// base is the lowest round-trip times, one a bucket; 0 is none.
type base struct {
	low  [baseBuckets]time.Duration
	at   int
	ends time.Time // when the bucket does
}

// wake is a message whose acknowledgement is waited for: the first behind a pause, or one of each round trip once the path is another one.
type wake struct {
	at     time.Time // when it was handed over; zero where there is none
	before int64     // bytes, handed over until then
}

// The base round-trip time is the lowest of the last five minutes: longer than any transfer fills a queue of its own,
// short enough to follow a change of path of which nothing tells.
const (
	baseBuckets = 10
	baseBucket  = 30 * time.Second
)

// newFlight makes the bound of a link that takes messages of message bytes: one of the largest must fit, and two of
// those that a piece is cut into, so that one is on its way while the other is acknowledged.
func newFlight(most, message int) *flight {
	cut := peer.CutSize(peer.PieceSize, message) + peer.DataHeader
	return &flight{least: max(leastFlight, 2*cut, message), most: most, cut: cut}
}

// sample takes a round-trip time; 0 is none.
func (f *flight) sample(now time.Time, rtt time.Duration) {
	if rtt <= 0 {
		return
	}
	if now.After(f.base.ends) {
		f.base.ends = now.Add(baseBucket)
		f.base.at = (f.base.at + 1) % baseBuckets
		f.base.low[f.base.at] = 0
	}
	if b := &f.base.low[f.base.at]; *b == 0 || rtt < *b {
		*b = rtt
	}
}

// woke notes that a message is handed over behind the bytes written before, while nothing is in flight or the flight asks.
func (f *flight) woke(now time.Time, written int64) { f.wake = wake{now, written} }

// heard takes how many bytes are acknowledged. The first behind a pause have met no queue of the link's own, and often none of
// others. Without them the base of a link that was made while others filled the path would stay what it was then: the bound
// that follows from it keeps a queue as long.
func (f *flight) heard(now time.Time, acked int64) {
	if f.wake.at.IsZero() || acked <= f.wake.before {
		return
	}
	f.sample(now, now.Sub(f.wake.at))
	f.wake = wake{}
}

// move forgets what was measured: packets take another way now. SCTP's round-trip time follows it slowly. On a longer way the first that it
// says would be taken for the base, and what may be in flight would be a part of what the way holds, for as long as the base counts.
func (f *flight) move() {
	*f = flight{least: f.least, most: f.most, cut: f.cut, begun: f.begun, acked: f.acked, moved: true}
}

// asks says whether the next message is to tell the round-trip time: none does.
func (f *flight) asks() bool { return f.moved && f.wake.at.IsZero() }

// baseRTT is 0 while unknown.
func (f *flight) baseRTT() time.Duration {
	var low time.Duration
	for _, b := range f.base.low {
		if b > 0 && (low == 0 || b < low) {
			low = b
		}
	}
	return low
}

// held notes that the bound kept something from being sent.
func (f *flight) held() { f.limited = true }

// due says whether a round is over: it is time for advance.
func (f *flight) due(now time.Time) bool {
	return now.Sub(f.begun) >= max(f.baseRTT(), leastRound)
}

// advance ends a round: acked is the bytes acknowledged since the link opened, rtt the smoothed round-trip time.
func (f *flight) advance(now time.Time, acked int64, rtt time.Duration) {
	took := now.Sub(f.begun)
	came, limited := acked-f.acked, f.limited
	first := f.begun.IsZero()
	f.begun, f.acked, f.limited = now, acked, false
	if first || took > 4*max(rtt, f.baseRTT(), leastRound) {
		return // a pause of the application says nothing of the path
	}
	rate := float64(came) / took.Seconds()
	if !limited {
		// The application had no more to send: the path may have carried more.
		if rate > f.rate() {
			f.rates[f.round] = rate
		}
		return
	}
	if !f.moved {
		f.sample(now, rtt)
	}
	f.round = (f.round + 1) % rateRounds
	f.rates[f.round] = rate
	switch {
	case rate > f.best*growth:
		f.best, f.without = rate, 0
	case f.without < stalled:
		f.without++
		f.steady = f.steady || f.without == stalled
	}
}

// rate is the highest of the last rounds, bytes per second.
func (f *flight) rate() float64 {
	high := 0.0
	for _, r := range f.rates {
		high = max(high, r)
	}
	return high
}

// path is what the path holds, bytes: what is delivered in a base round trip; and near, what is on the shortest paths in
// the time that acknowledgements take.
func (f *flight) path() (product, near float64) {
	rate := f.rate()
	return rate * f.baseRTT().Seconds(), min(rate*leastDelay.Seconds(), nearFlight)
}

// thin says whether a path of such a product holds less than a piece.
func thin(product, near float64) bool {
	held := max(steadyGain*product, near)
	return held > 0 && held < leastFlight
}

// thin says whether the path holds less than a piece.
func (f *flight) thin() bool { return thin(f.path()) }

// message is the length in bytes of the messages that suit the path.
func (f *flight) message(thin bool) int {
	if thin {
		return min(packetPayload, f.cut)
	}
	return f.cut
}

// bound is how many bytes SCTP may hold, sent or not, unless it holds none. It is asked for before every message, which has next
// bytes: where a path looks thin, one that is longer than those that suit it must not go out alone, each waiting for the last
// one's acknowledgement. Its rate would be a message a round trip, and the path look thin for good.
func (f *flight) bound(next int) int {
	product, near := f.path()
	if product == 0 {
		return min(max(firstFlight, f.least), f.most)
	}
	gain := startGain
	if f.steady {
		gain = steadyGain
	}
	least, narrow := f.least, thin(product, near)
	if narrow {
		least = thinPackets * packetPayload
	}
	return min(max(int(max(gain*product, near))+max(f.message(narrow), next), least), f.most)
}
