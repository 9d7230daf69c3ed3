package ledbat

// What tunes the controller: spec/background-transport.md has the rules, docs/experiments/background-transport.md the measurements.
const (
	bucketTime     = 60_000_000  // µs, one bucket of the base history
	bucketPatience = 360_000_000 // µs, a bucket in which the delay never was below the target
	bucketSamples  = 120         // samples without which no bucket is closed
	baseBuckets    = 10          // with the open one
	maxSkew        = 12_000      // µs a bucket that one-way delays may fall while round trips do not: 200 ppm
	freshTime      = 1_000_000   // µs that a sample speaks for the host, or two round trips if longer

	startPart = 2 // slow start grows by this part of what is acked, or by GAIN's if that is less

	slowdownWindow = 2 * Packet
	slowdownDepth  = 8          // the window falls to this part in a slowdown
	slowdownFactor = 19         // times its duration, or a round trip, until the next: it may cost 5 %
	slowdownMost   = 30_000_000 // µs at most until the next

	smoothTarget = 10_000    // µs: what a host bears, unless a third of the base is more
	leastTarget  = 3_000     // µs: what a host bears at least, however far it was pushed back or short the queue is
	leastPackets = 4         // or the time that this many packets take at the largest window
	eagerTarget  = 35_000    // µs: what foreground bears; other programs share the uplink of a home
	recallTime   = 1_000_000 // µs: the largest window of this and of the same time before is what it was pushed back from

	fastAfter = 16 // round trips without queue or loss after which growth is a part of the window
	fastPart  = 8  // that part, by how far the queue is below the target

	lossLeast = 50  // permille of the window, without a queue
	lossMost  = 200 // permille, from half the target on

	roomTime = 10_000_000 // µs for which a queue that overflowed is known to be that short
	roomPart = 90         // percent of it that are borne then

	fewPackets = 4      // in a message that may take half as long again as the queue that stands
	fewTime    = 10_000 // µs at most for it
	fewPart    = 6      // and this part of the window

	lostAfter  = 3          // newer messages acked after which a missing one is lost
	maxPending = 4096       // messages in flight on a link
	timeoutMin = 1e6        // µs
	timeoutMax = 8e6        // µs
	idleMin    = 1e6        // µs
	pacingGain = 1125       // permille of window ÷ round trip in steady state
	burstTime  = 4_000      // µs that pacing may be late without losing its turn
	firstRTT   = 100_000    // µs that a round trip is taken for before the first is known
	leastRTT   = 100        // µs: a shorter one is counted as this
	mostRTT    = 60_000_000 // µs: a longer one is no sample
)

// Spacing of acks.
const (
	ackGap   = 2_000     // µs at least between two
	rateTime = 200_000   // µs over which the rate of arrival is taken
	fastRate = 2_500_000 // bytes/s
	// From this rate on, foreground is acknowledged as seldom. Below it acks are few, and a peer that serves several links in turn is
	// near the rate at which it counts as stalled.
	rareRate = 65_536 // bytes/s
)

// maxRequestInterval is the longest time (µs) between requests of a receiver whose window is below one request.
const maxRequestInterval = 4_000_000
