package ledbat

// pending is what a link has in flight: its messages in the order of their sequences.
type pending struct {
	list   []message // from first on
	first  int64     // sequence of list[0], unwrapped
	flight int64     // bytes neither acked nor lost
	lastAt int64     // when the newest was sent, or the last ack came that moved anything

	highest int64 // highest sequence acked, unwrapped; -1: none
	started bool
}

type message struct {
	sentAt, size int64
	gone         bool // acked or lost
	blind        bool // waited in our own buffer: gives no delay sample
}

func (p *pending) next() int64 { return p.first + int64(len(p.list)) }
func (p *pending) len() int    { return len(p.list) }

func (p *pending) add(now, size int64, blind bool) uint32 {
	if !p.started {
		p.started, p.highest = true, -1
	}
	p.list = append(p.list, message{sentAt: now, size: size, blind: blind})
	p.flight += size
	p.lastAt = now
	return uint32(p.next() - 1)
}

// ack takes in an ack. newest is its highest message when that is higher than any acked before: only such a one gives a
// delay sample, for one that SCTP sent again was on the way longer than the path is.
func (p *pending) ack(a Ack) (out Outcome, newest *message) {
	highest := p.next() - 1 - int64(int32(uint32(p.next()-1)-a.Highest))
	cumulative := highest + 1 - int64(int32(a.Highest+1-a.Cumulative))
	switch {
	case highest < 0 || highest >= p.next():
		return Outcome{Problem: ProblemFuture}, nil
	case cumulative > highest+1 || cumulative < 0:
		return Outcome{Problem: ProblemCumulative}, nil
	}
	if highest > p.highest && highest >= p.first {
		m := p.list[highest-p.first]
		newest = &m
		p.highest = highest
	}
	for i := range p.list {
		seq := p.first + int64(i)
		if seq > highest {
			break
		}
		m := &p.list[i]
		if m.gone || !(seq < cumulative || seq == highest || a.has(highest-seq)) {
			continue
		}
		m.gone = true
		out.Acked += m.size
		out.Messages++
	}
	out.Lost = p.lose()
	p.flight -= out.Acked + out.Lost
	p.trim()
	return out, newest
}

// lose counts what is missing below lostAfter newer acked messages as lost.
func (p *pending) lose() (bytes int64) {
	newer := int64(0)
	for i := p.highest - p.first; i >= 0; i-- {
		m := &p.list[i]
		switch {
		case m.gone:
			newer++
		case newer >= lostAfter:
			m.gone = true
			bytes += m.size
		}
	}
	return bytes
}

// trim lets go of what is done with.
func (p *pending) trim() {
	n := 0
	for n < len(p.list) && p.list[n].gone {
		n++
	}
	p.first += int64(n)
	p.list = append(p.list[:0], p.list[n:]...)
}

// olderThan says whether anything in flight was sent so long ago, and was not heard of since.
func (p *pending) olderThan(age, now int64) bool {
	return p.flight > 0 && now-p.list[0].sentAt > age
}

// giveUp takes all that is in flight for lost.
func (p *pending) giveUp() {
	p.first = p.next()
	p.list, p.flight = p.list[:0], 0
}
