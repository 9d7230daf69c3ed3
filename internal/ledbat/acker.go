package ledbat

// Acker is the receiving end of a link: it hears of background messages and makes their acks.
type Acker struct {
	// Foreground is set while what comes is foreground, whose senders bear more of a queue: it is acknowledged less often, unless
	// it comes so slowly that acks are few.
	Foreground bool

	came       []uint64 // bitmap of the sequences from cumulative on, least significant bit first
	cumulative int64    // unwrapped
	highest    int64    // unwrapped; -1: none
	highestAt  int64

	due     int64 // when the next ack must go out; 0: nothing to tell
	waiting int64 // messages since the last ack
	sentAt  int64
	bytes   int64 // since ratedAt
	ratedAt int64
	rate    int64 // bytes/s
}

// NewAcker makes the acker of one link and direction.
func NewAcker() *Acker { return &Acker{highest: -1, came: make([]uint64, maxPending/64)} }

// OnData hears of a message. It is false for one that came before or is impossibly far ahead; of the latter nothing is noted.
func (a *Acker) OnData(now, bytes int64, s Stamp) bool {
	seq := a.cumulative + int64(int32(s.Sequence-uint32(a.cumulative)))
	if seq < a.cumulative || seq >= a.cumulative+2*maxPending {
		return false
	}
	for seq >= a.cumulative+maxPending { // a hole that stays: the sender has long counted it as lost
		a.pass()
	}
	word, bit := &a.came[seq/64%int64(len(a.came))], uint64(1)<<(seq%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	if seq > a.highest {
		a.highest, a.highestAt = seq, now
	}
	for a.has(a.cumulative) {
		a.pass()
	}
	a.measure(now, bytes)
	a.waiting++
	every, delay := a.spacing()
	switch {
	case s.AckNow || a.waiting >= every:
		a.due = max(now, a.sentAt+ackGap)
	case a.due == 0:
		a.due = now + delay
	}
	return true
}

// pass moves the cumulative sequence on by one.
func (a *Acker) pass() {
	a.came[a.cumulative/64%int64(len(a.came))] &^= 1 << (a.cumulative % 64)
	a.cumulative++
}

func (a *Acker) has(seq int64) bool {
	if seq < a.cumulative {
		return true
	}
	return seq <= a.highest && a.came[seq/64%int64(len(a.came))]>>(seq%64)&1 == 1
}

// measure keeps the rate at which data come.
func (a *Acker) measure(now, bytes int64) {
	a.bytes += bytes
	if span := now - a.ratedAt; span >= rateTime {
		a.rate = a.bytes * 1e6 / span
		a.bytes, a.ratedAt = 0, now
	}
}

// spacing says after how many messages, or how long, an ack is due.
func (a *Acker) spacing() (every, delay int64) {
	switch {
	case a.rate >= fastRate:
		return 8, 10_000
	case a.Foreground && a.rate >= rareRate:
		return 8, 25_000
	}
	return 2, 25_000
}

// Due is the moment at which the next ack goes out; 0 while there is nothing to tell.
func (a *Acker) Due() int64 { return a.due }

// Make makes the ack that is due; ok is false while there is nothing to tell.
func (a *Acker) Make(now int64) (ack Ack, ok bool) {
	if a.due == 0 {
		return Ack{}, false
	}
	ack = Ack{
		Cumulative: uint32(a.cumulative), Highest: uint32(a.highest),
		ReceivedAt: uint32(a.highestAt), Hold: uint32(now - a.highestAt),
	}
	for i := int64(1); i <= 64 && a.highest-i >= 0; i++ {
		if a.has(a.highest - i) {
			ack.Bitmap |= 1 << (64 - i)
		}
	}
	a.due, a.waiting, a.sentAt = 0, 0, now
	return ack, true
}
