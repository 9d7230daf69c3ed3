package ledbat

// delays filters what the acks of one link say: current delay, base delay, smoothed round-trip time.
type delays struct {
	srtt, rttvar int64 // µs; srtt 0: no sample yet
	sampledAt    int64

	owdZero    uint32 // the first one-way delay; the others are counted from it, so that clocks that differ do not matter
	owdKnown   bool
	owdSkewed  bool // the clocks run apart: one-way delays say nothing
	prev, half pair // minima of the last two half round trips
	halfAt     int64

	closed   []pair // base history: minima of closed buckets, oldest first
	open     pair
	openedAt int64
	samples  int64
	refuted  bool // claims a queue where another link saw none
	low      bool // the open bucket saw a queuing delay below the target
}

// pair is a round-trip time and a one-way delay.
type pair struct{ rtt, owd int64 }

var unknown = pair{never, never}

func (p pair) min(q pair) pair { return pair{min(p.rtt, q.rtt), min(p.owd, q.owd)} }

func newDelays(now, base int64) delays {
	d := delays{prev: unknown, half: unknown, halfAt: now, open: unknown, openedAt: now}
	if base > 0 {
		d.open.rtt = base
	}
	return d
}

// sample takes in a round-trip time and a one-way delay as the clocks show it (wrapping).
func (d *delays) sample(now, rtt int64, owd uint32) {
	if !d.owdKnown {
		d.owdZero, d.owdKnown = owd, true
	}
	s := pair{rtt, int64(int32(owd - d.owdZero))}
	d.smooth(now, rtt)
	d.turn(now)
	d.half = d.half.min(s)
	d.open = d.open.min(s)
	d.samples++
	d.sampledAt = now
	if d.queuing() < d.target() {
		d.low = true
	}
	d.close(now)
}

// smooth is TCP's filter, which supposes several samples in a round trip. Where they are rarer each weighs more: else a
// host at the floor would know its round trip only after ten of them.
func (d *delays) smooth(now, rtt int64) {
	if d.srtt == 0 {
		d.srtt, d.rttvar = max(leastRTT, rtt), rtt/2
		return
	}
	weight := int64(8)
	if 2*(now-d.sampledAt) >= d.srtt {
		weight = 2
	}
	diff := d.srtt - rtt
	if diff < 0 {
		diff = -diff
	}
	d.rttvar = (3*d.rttvar + diff) / 4
	d.srtt = max(leastRTT, ((weight-1)*d.srtt+rtt)/weight)
}

// turn moves the window of the current delay on: it always covers between half and one smoothed round trip.
func (d *delays) turn(now int64) {
	span := now - d.halfAt
	if 2*span < d.srtt {
		return
	}
	d.prev = d.half
	if span >= d.srtt {
		d.prev = unknown
	}
	d.half, d.halfAt = unknown, now
}

// close ends a bucket of the base history. One with few samples stays open: at the floor, samples are rare and none of
// them sees the empty path. One in which the delay was never below the target is a queue of others, most likely, and
// stays open six times as long.
func (d *delays) close(now int64) {
	age := now - d.openedAt
	if age < bucketTime || d.samples < bucketSamples || !d.low && age < bucketPatience {
		return
	}
	if n := len(d.closed); n > 0 {
		last := d.closed[n-1]
		fell := last.owd - d.open.owd - max(0, last.rtt-d.open.rtt)
		d.owdSkewed = fell > maxSkew*(age/bucketTime)
		if n == baseBuckets-1 {
			copy(d.closed, d.closed[1:])
			d.closed = d.closed[:n-1]
		}
	}
	d.closed = append(d.closed, d.open)
	d.open, d.openedAt, d.samples, d.low = unknown, now, 0, false
}

func (d *delays) base() pair {
	b := d.open
	for _, c := range d.closed {
		b = b.min(c)
	}
	return b
}

// queuing is the filtered queuing delay: the lesser of what round trips and one-way delays say, for both bound the
// queue ahead from above.
func (d *delays) queuing() int64 {
	if d.srtt == 0 {
		return 0
	}
	base, now := d.base(), d.prev.min(d.half)
	q := now.rtt - base.rtt
	if !d.owdSkewed {
		q = min(q, now.owd-base.owd)
	}
	return max(0, q)
}

func (d *delays) baseDelay() int64 {
	if b := d.base().rtt; b != never {
		return max(1, b)
	}
	return 0
}

func (d *delays) target() int64 { return targetOf(d.baseDelay()) }

func targetOf(base int64) int64 { return min(max(base/2, MinTarget), MaxTarget) }

// fresh says whether the link has been heard of lately enough to speak for the host.
func (d *delays) fresh(now int64) bool {
	return d.srtt > 0 && now-d.sampledAt <= max(2*d.srtt, freshTime)
}

// current says whether the link's queuing delay is of now: its samples cover the last round trip.
func (d *delays) current(now int64) bool { return now-d.sampledAt <= max(d.srtt, firstRTT) }
