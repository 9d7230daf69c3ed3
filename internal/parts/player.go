package parts

import (
	"cmp"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Wanted says what the player's request for a part bears.
type Wanted struct {
	Deadline int64 // when the playhead gets to the part
	RTT      int64 // to the origin
	Rate     int64 // of the origin, bytes/s; 0: not known
	Packaged bool  // a packager's key is known, so its certificates may be loaded
	At       int64 // when it is expected; 0: now
}

// player is what the player waits for, and what it has in hand.
type player struct {
	stream *Stream
	asked  *asked
	short  bool  // so is the buffer
	flows  bool  // the origin sends what the player waits for
	idle   int64 // when the stream is, if its playlist lists nothing more
}

// asked is the part that the player waits for.
type asked struct {
	Wanted
	turn uint32
	at   int64
}

// Ask says that the player asks for a part that is listed. What it asked for before is not waited for any more. Fetch says what the
// origin is to be asked for, at once and later, Ready that all has come. A part that is not among the latest is the origin's alone.
func (s *Stream) Ask(now int64, turn uint32, w Wanted) {
	s.player.asked = nil
	if !s.shelf.near(turn) {
		s.node.do(Fetch{Stream: s.id, Turn: turn})
		return
	}
	s.player.asked = &asked{w, turn, cmp.Or(w.At, now)}
	p := s.shelf.part(turn)
	p.whole = false
	for i := range p.pieces {
		p.pieces[i].asked = false
	}
	s.player.look(now)
	s.flush(now)
}

// Idle says whether the playlist has listed nothing more for so long that the stream is to be left: what peers push would soon be too far
// ahead of it. It is told with what the player asks for.
func Idle(s *Stream, now int64) bool { return now >= s.player.idle }

// Leave says that the player does not wait for a part any more.
func (s *Stream) Leave() { s.player.asked = nil }

// Origin takes a piece that the origin sent, verified or not. The length of the part is to be known: Listed says it.
func (s *Stream) Origin(now int64, turn uint32, i int, data []byte) {
	p := s.shelf.parts[turn]
	if p == nil || i >= len(p.pieces) {
		return
	}
	pc := &p.pieces[i]
	if pc.origin = true; !pc.verified {
		if pc.data = data; p.content != nil {
			s.check(ID{}, p, i, data)
		}
	}
	s.player.look(now)
}

// Buffer says how much the playhead has in hand, µs, and whether the player has all parts that are listed. While it has little, peers
// push nothing: what they push would share the line with the bytes that playback waits for.
func (s *Stream) Buffer(now, left int64, all bool) {
	switch {
	case left < s.set.Part/4:
		s.player.short = true
	case left >= s.set.Part && all:
		s.player.short = false
	}
	s.player.look(now)
	s.flush(now)
}

// hold tells the peers that push whether they are to.
func (s *Stream) hold() {
	if s.player.short {
		for _, id := range mesh.Kept(s.mesh) {
			if !s.holds[id] {
				s.holds[id] = true
				s.node.say(id, peer.Hold{Stream: s.id, On: true})
			}
		}
		return
	}
	for _, id := range s.node.order {
		if s.holds[id] {
			delete(s.holds, id)
			s.node.say(id, peer.Hold{Stream: s.id})
		}
	}
}

// look gives the part to the player that it waits for, if it is there, and asks the origin for what it is to send.
func (y *player) look(now int64) {
	a := y.asked
	if a == nil {
		return
	}
	p := y.stream.shelf.part(a.turn)
	if y.ready(p) {
		return
	}
	if due, waits := y.due(); waits && now >= due {
		y.isDue(now, p)
		return
	}
	if y.flows && p.content != nil {
		y.stream.enough(p)
	}
	if p.length == 0 {
		if y.short || y.flows || !y.awaitsAny() {
			y.fetchWhole(now, p)
		} else {
			wantCertificate(y.stream, now, p, nil) // it says how long the part is, so what this node is the source of need not wait until it is due
		}
		return
	}
	y.fetch(now, p, func(i int) bool { return y.short || y.flows || y.stream.mesh.Parent(p.stripe(i)) == (ID{}) })
}

// unsure says whether the part need not be there yet: no playlist lists it, and no peer has told it. The packager may be late, too.
func (p *part) unsure() bool { return p.content == nil && p.fits != nil }

func (y *player) awaitsAny() bool {
	for stripe := range stripes {
		if y.stream.mesh.Parent(stripe) != (ID{}) {
			return true
		}
	}
	return false
}

// ready says whether all of the part has come that the player waits for.
func (y *player) ready(p *part) bool {
	origin := p.whole
	for i := range p.pieces {
		if p.pieces[i].data == nil {
			return false
		}
		origin = origin || p.pieces[i].origin
	}
	if p.length == 0 {
		return false
	}
	y.asked = nil
	y.stream.node.do(Ready{y.stream.id, p.turn})
	if origin {
		y.stream.enough(p)
	}
	return true
}

// due is when the origin is asked for what peers have not sent of the part that the player waits for.
func (y *player) due() (at int64, waits bool) {
	a := y.asked
	if a == nil {
		return 0, false
	}
	p := y.stream.shelf.part(a.turn)
	missing := 0
	for i := range p.pieces {
		if p.pieces[i].lacks() {
			missing += segment.PieceLen(int64(p.length), i)
		}
	}
	if p.whole || p.length > 0 && missing == 0 {
		return 0, false
	}
	if p.length == 0 {
		missing = y.stream.shelf.usual()
	}
	origin := a.RTT
	if a.Rate > 0 {
		origin += int64(missing) * 1_000_000 / a.Rate
	}
	since := a.at
	if p.unsure() {
		since += y.stream.set.Part / 2
	}
	return mesh.Due(max(since, p.progress), a.Deadline, origin, y.stream.set.Part), true
}

// isDue asks the origin for what has not come, and takes it back from the parents. Those that had time have missed the part.
func (y *player) isDue(now int64, p *part) {
	had := now-max(y.asked.at, p.progress) >= y.stream.set.Part/4 && !p.unsure()
	for stripe := range stripes {
		if had && !p.missed[stripe] && y.lacks(p, stripe) {
			p.missed[stripe] = true
			y.stream.mesh.Missed(now, stripe)
		}
	}
	if p.length == 0 {
		y.fetchWhole(now, p)
	} else {
		y.fetch(now, p, func(int) bool { return true })
	}
	y.stream.enough(p)
}

// lacks says whether pieces of a stripe have not come; of a part of unknown length, all.
func (y *player) lacks(p *part, stripe int) bool {
	for i := range p.pieces {
		if p.stripe(i) == stripe && p.pieces[i].lacks() {
			return true
		}
	}
	return p.length == 0
}

// came says that a verified piece of a stripe came from a peer. What a parent has missed is forgiven with the last piece of its stripe of a
// part that it has not missed: one that begins each part and leaves the rest to the origin is waited for in vain each time.
func came(s *Stream, now int64, from ID, p *part, stripe int) {
	if s.mesh.Parent(stripe) != from || !p.missed[stripe] && !s.player.lacks(p, stripe) {
		s.mesh.Arrived(now, from, stripe)
	}
}

func (y *player) fetchWhole(now int64, p *part) {
	if !p.whole {
		p.whole = true
		y.stream.node.do(Fetch{Stream: y.stream.id, Turn: p.turn})
		wantCertificate(y.stream, now, p, nil)
	}
}

// fetch asks the origin for the runs of pieces that have not come and are wanted of it.
func (y *player) fetch(now int64, p *part, want func(i int) bool) {
	if p.whole {
		return
	}
	var runs []Run
	for i := range p.pieces {
		pc := &p.pieces[i]
		if !pc.lacks() || !want(i) {
			continue
		}
		pc.asked = true
		if len(runs) > 0 && runs[len(runs)-1].Last == i-1 {
			runs[len(runs)-1].Last = i
		} else {
			runs = append(runs, Run{i, i})
		}
	}
	if runs != nil {
		y.stream.node.do(Fetch{Stream: y.stream.id, Turn: p.turn, Runs: runs})
		wantCertificate(y.stream, now, p, runs)
	}
}

// turn is that of the part that the player waits for; -1: none.
func (y *player) turn() int64 {
	if y.asked == nil {
		return -1
	}
	return int64(y.asked.turn)
}

// enough tells the parents, once, that nothing more of a part is wanted.
func (s *Stream) enough(p *part) {
	id := p.named
	if p.content != nil {
		id = p.content.Segment
	}
	if p.enough || id == (segment.ID{}) {
		return
	}
	p.enough = true
	for _, to := range mesh.Kept(s.mesh) { // of a peer on trial a piece is awaited
		s.node.say(to, peer.Enough{Stream: s.id, Segment: id})
	}
}
