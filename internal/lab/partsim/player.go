package partsim

// player is a low-latency player: it holds a request for the playlist open until the next part is in it, asks for one part after the
// other, and begins three parts behind the edge. After a stall it goes on where it was.
type player struct {
	w         *world
	s         *stream
	load      func(part int, deadline int64) // asks for a part
	ask       func(part int, listed func(edge int))
	first     int // part that it loads first
	next      int // part that it loads, or will ask for next
	edge      int // parts that it knows of
	asking    bool
	joined    bool
	playing   bool
	begun     bool
	gone      bool
	pos       float64 // of the playhead in the stream, µs
	since     int64   // when it was there
	stalledAt int64

	startup, stalled, played int64
	stalls                   int
	joinedAt                 int64
	lags                     float64 // sum of what it is behind the clock, µs, at parts
	lagged                   int
}

func (p *player) start() {
	p.joinedAt = p.w.now
	p.reload(0)
}

// reload asks for a playlist that has a part.
func (p *player) reload(part int) {
	p.ask(part, func(edge int) {
		if p.gone {
			return
		}
		if !p.joined {
			p.joined = true
			part := int(p.s.part)
			at := max(0, (edge-holdBack)*part)
			p.pos = float64(at)
			p.first = at / part / p.s.perSegment * p.s.perSegment
			p.next = p.first
		}
		p.edge = max(p.edge, edge)
		p.more()
		p.reload(p.edge)
	})
}

func (p *player) more() {
	if !p.asking && p.joined && p.next < p.edge {
		p.asking = true
		p.load(p.next, p.deadline(p.next))
	}
}

// deadline is when the playhead gets to a part.
func (p *player) deadline(part int) int64 {
	p.advance()
	return p.w.now + max(0, int64(float64(part)*float64(p.s.part)-p.pos))
}

func (p *player) advance() {
	if p.playing {
		to := p.pos + float64(p.w.now-p.since)
		if end := float64(p.next) * float64(p.s.part); to > end {
			p.playing = false
			p.stalls++
			p.stalledAt = p.since + int64(end-p.pos)
			p.played += int64(end - p.pos)
			p.pos = end
		} else {
			p.played += p.w.now - p.since
			p.pos = to
		}
	}
	p.since = p.w.now
}

// loaded takes the part that was asked for.
func (p *player) loaded() {
	if p.gone {
		return
	}
	p.advance()
	p.asking = false
	p.next++
	if !p.playing && float64(p.next)*float64(p.s.part) > p.pos {
		if p.begun {
			p.stalled += p.w.now - p.stalledAt
		} else {
			p.begun, p.startup = true, p.w.now-p.joinedAt
		}
		p.playing, p.since = true, p.w.now
	}
	if p.begun {
		p.lags += float64(p.w.now) - p.pos
		p.lagged++
	}
	p.more()
}

func (p *player) leave() {
	p.advance()
	if p.begun && !p.playing {
		p.stalled += p.w.now - p.stalledAt
	}
	p.gone = true
}
