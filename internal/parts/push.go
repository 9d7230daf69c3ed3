package parts

import (
	"slices"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// head tells a peer the certificate of a part, once, and returns its push ID.
func (s *Stream) head(to ID, p *part) uint32 {
	l, key := s.node.links[to], partID{s.id, p.turn}
	if was, is := l.out.told[key]; is {
		return was
	}
	push := l.out.tell(key)
	s.node.say(to, peer.Part{Stream: s.id, Push: push, Turn: p.turn, Raw: p.content.Raw})
	return push
}

// heads tells a certificate to those that are to have it at once.
func (s *Stream) heads(p *part) {
	to := s.mesh.AllChildren()
	if s.node.cfg.Seed {
		to = nil
		for _, id := range s.node.order {
			if s.node.links[id].following(s.id) {
				to = append(to, id)
			}
		}
	}
	for _, id := range to {
		s.head(id, p)
	}
}

// push has a verified piece sent to a child, behind what waits for it.
func (s *Stream) push(now int64, to ID, p *part, piece int) {
	l := s.node.links[to]
	if l == nil || p.without[to] || l.held[s.id] {
		return
	}
	id := s.head(to, p)
	if id == closed {
		return
	}
	if l.out.waits > Backlog {
		for _, q := range l.out.forget(func(q queued) bool { return q.stream == s.id && int32(q.turn-p.turn) < 0 }) {
			s.node.Counts.Shed += int64(len(q.data))
			s.mesh.Waited(now, to, q.stripe, now-q.at, s.set.Part)
		}
	}
	data := p.pieces[piece].data
	l.out.waiting = append(l.out.waiting, queued{partID{s.id, p.turn}, p.stripe(piece), p.content.Segment, peer.PushedID(id, piece), data, now})
	l.out.waits += len(data)
	l.hand()
}

// hand gives a link what it may have at a time. The rest waits here, where it can be taken back.
func (l *link) hand() {
	for len(l.out.handed) < mostHanded && len(l.out.waiting) > 0 {
		q := l.out.waiting[0]
		l.out.waiting[0] = queued{}
		l.out.waiting = l.out.waiting[1:]
		l.out.waits -= len(q.data)
		if s := l.node.streams[q.stream]; s == nil || !slices.Contains(s.mesh.Children(q.stripe), l.id) {
			continue // it is no child any more: what comes two seconds later would be charged
		}
		l.node.do(Push{l.id, q.request, q.data})
		q.data = nil
		l.out.handed = append(l.out.handed, q)
	}
}

// Sent says that a link has sent the first of the pushed pieces that it has, or has given it up.
func (n *Node) Sent(now int64, to ID) {
	l := n.links[to]
	if l == nil || len(l.out.handed) == 0 {
		return
	}
	q := l.out.handed[0]
	l.out.handed = l.out.handed[1:]
	if s := n.streams[q.stream]; s != nil {
		s.mesh.Waited(now, to, q.stripe, now-q.at, s.set.Part)
	}
	l.hand()
}

// enoughOf takes back what waits of a part for a peer that wants nothing more of it.
func (s *Stream) enoughOf(now int64, l *link, id segment.ID) {
	for _, p := range s.shelf.parts {
		if p.content != nil && p.content.Segment == id {
			p.without[l.id] = true
		}
	}
	for _, q := range l.out.forget(func(q queued) bool { return q.stream == s.id && q.segment == id }) {
		s.mesh.Waited(now, l.id, q.stripe, now-q.at, s.set.Part)
	}
}
