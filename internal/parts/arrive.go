package parts

import (
	"bytes"
	"errors"
	"slices"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

type state uint8

const (
	judging state = iota // its certificate is being verified, or waits until a turn is listed
	good
	refused // its data is of no use, and for a while no fault
)

// push is one that a peer has announced.
type push struct {
	partID
	id    uint32
	state state
	at    int64  // when it was announced
	raw   []byte // its certificate
	got   []bool // pieces that have come whole
	spare int    // bytes that came although it is refused
}

// early is data that came ahead of a verified certificate.
type early struct {
	push  uint32
	bytes int // kept or not
	data  []peer.Data
}

// opened is a piece that is there in part.
type opened struct {
	push   *push
	piece  int
	length int
	peer.Assembly
}

// announced takes a push that a peer announces. A peer tells each part once, and only a seed tells those that did not subscribe.
func (l *link) announced(now int64, m peer.Part) {
	n := l.node
	s := n.streams[m.Stream]
	left := s == nil && n.left[m.Stream] > now
	sends := left || s != nil && (l.seed || l.sends(now, m.Stream))
	if !sends || l.pushes[m.Push] != nil || l.knows(partID{m.Stream, m.Turn}) {
		l.unsolicited(len(m.Raw))
		return
	}
	u := l.announce(now, m)
	if left || !s.shelf.near(m.Turn) {
		if !left && len(s.shelf.listed) > 0 {
			l.unsolicited(len(m.Raw))
			if !l.seed {
				u.spare = Backlog
			}
		}
		l.refuse(u, false)
		return
	}
	u.raw = m.Raw
	switch p := s.shelf.parts[m.Turn]; {
	case p != nil && p.content != nil && bytes.Equal(p.content.Raw, m.Raw):
		l.settle(now, u, true, false)
	case l.seed || p != nil && p.fits != nil || slices.Contains(s.shelf.listed, m.Turn):
		l.verify(s, u)
	}
}

// knows says whether the peer has told a part. It may tell it once more if the first was refused.
func (l *link) knows(key partID) bool {
	times := 0
	for _, u := range l.pushes {
		if u.partID == key && u.state != refused {
			return true
		}
		if u.partID == key {
			times++
		}
	}
	return times >= 2
}

func (l *link) announce(now int64, m peer.Part) *push {
	if len(l.pushed) >= mostPushes {
		old := l.pushes[l.pushed[0]]
		l.pushed = l.pushed[1:]
		l.open = slices.DeleteFunc(l.open, func(o *opened) bool { return o.push == old })
		delete(l.pushes, old.id)
	}
	u := &push{partID: partID{m.Stream, m.Turn}, id: m.Push, at: now}
	l.pushes[m.Push] = u
	l.pushed = append(l.pushed, m.Push)
	return u
}

// Certified says that the certificate of a Verify is valid.
func (n *Node) Certified(now int64, v Verify, c Content) { n.judged(now, v, &c) }

// Refused says that it is not.
func (n *Node) Refused(now int64, v Verify) { n.judged(now, v, nil) }

// judged settles the pushes with a certificate: those of other peers as well.
func (n *Node) judged(now int64, v Verify, c *Content) {
	s := n.streams[v.Stream]
	if s == nil {
		return
	}
	lie := false
	if p := s.shelf.parts[v.Turn]; p != nil {
		p.judged = slices.DeleteFunc(p.judged, func(raw []byte) bool { return bytes.Equal(raw, v.Raw) })
		lie = c != nil && p.misfits(c)
	}
	ok := c != nil && s.certify(now, v.Turn, c)
	unjudged(s, func(l *link, u *push) {
		if u.turn == v.Turn && bytes.Equal(u.raw, v.Raw) {
			l.settle(now, u, ok, lie)
		}
	})
	s.flush(now)
}

// settle takes what came of a push while its certificate was verified.
func (l *link) settle(now int64, u *push, ok, lie bool) {
	if !ok {
		l.refuse(u, lie)
		return
	}
	s := l.node.streams[u.stream]
	if u.state = good; l.seed {
		s.heard = now
	}
	u.got = make([]bool, len(s.shelf.parts[u.turn].pieces))
	for _, m := range l.waited(u.id) {
		l.take(now, u, m, u.at)
	}
}

// Data takes the data of a pushed piece. The payload is copied.
func (n *Node) Data(now int64, from ID, m peer.Data) {
	l := n.links[from]
	if l == nil {
		return
	}
	push, _, is := peer.Pushed(m.Request)
	u := l.pushes[push]
	switch {
	case !is || u == nil && !l.sendsAny(now):
		l.unsolicited(len(m.Payload))
	case u == nil || u.state == judging:
		l.keep(push, m)
	case u.state == refused:
		l.drop(u, len(m.Payload))
	default:
		l.take(now, u, m, now)
	}
}

// keep has data wait until its certificate is verified. A push of which none comes was not to be sent.
func (l *link) keep(push uint32, m peer.Data) {
	i := slices.IndexFunc(l.early, func(e *early) bool { return e.push == push })
	if i < 0 {
		if len(l.early) == mostEarly {
			l.unsolicited(l.early[0].bytes)
			l.early = l.early[1:]
		}
		l.early = append(l.early, &early{push: push})
		i = len(l.early) - 1
	}
	kept := 0
	for _, o := range l.early {
		for _, d := range o.data {
			kept += len(d.Payload)
		}
	}
	e := l.early[i]
	switch e.bytes += peer.Unsolicited(len(m.Payload)); {
	case e.bytes > MaxPart:
		l.unsolicited(len(m.Payload))
	case kept+len(m.Payload) > mostAhead || len(e.data) >= mostAhead/1024:
		l.node.Counts.Dropped += int64(len(m.Payload))
	default:
		m.Payload = bytes.Clone(m.Payload)
		e.data = append(e.data, m)
	}
}

// take takes data of a part whose certificate is verified, by the subscriptions of a time: what waited may have outlived them.
func (l *link) take(now int64, u *push, m peer.Data, by int64) {
	_, i, _ := peer.Pushed(m.Request)
	s := l.node.streams[u.stream]
	if s == nil || s.shelf.parts[u.turn] == nil || s.shelf.parts[u.turn].content == nil {
		l.drop(u, len(m.Payload)) // on its way when the part was given up
		return
	}
	p := s.shelf.parts[u.turn]
	if i >= len(p.pieces) || u.got[i] || l.subscribed[stripeID{s.id, p.stripe(i)}] <= by {
		l.unsolicited(len(m.Payload))
		return
	}
	o := l.opened(u, i, segment.PieceLen(int64(p.length), i))
	if why := o.add(m); why != "" {
		l.node.do(Blame{From: l.id, Why: why})
		return
	}
	if o.Received < o.length {
		return
	}
	l.open = slices.DeleteFunc(l.open, func(other *opened) bool { return other == o })
	u.got[i] = true
	s.arrived(now, l, p, i, o.Data)
}

// opened is the piece that data is of. An honest peer sends one after the other, and has as many under way as there are channels.
func (l *link) opened(u *push, piece, length int) *opened {
	if i := slices.IndexFunc(l.open, func(o *opened) bool { return o.push == u && o.piece == piece }); i >= 0 {
		return l.open[i]
	}
	if len(l.open) == mostOpen {
		old := l.open[0]
		l.unsolicited(old.Received)
		l.open = l.open[1:]
	}
	o := &opened{push: u, piece: piece, length: length}
	l.open = append(l.open, o)
	return o
}

// add puts data in its place.
func (o *opened) add(m peer.Data) Why {
	switch err := o.Add(m, o.length); {
	case err == nil:
		return ""
	case errors.Is(err, peer.ErrCrumbs):
		return Crumbs
	}
	return Malformed
}

// arrived takes a whole piece of a peer. One that is here already proves itself by being the same.
func (s *Stream) arrived(now int64, l *link, p *part, i int, data []byte) {
	pc := &p.pieces[i]
	p.progress = now
	if !pc.verified {
		pc.checking++
		s.check(l.id, p, i, data)
		return
	}
	if !bytes.Equal(pc.data, data) {
		s.node.do(Blame{From: l.id, Why: BadPiece, Bytes: len(data)})
		return
	}
	s.node.Counts.Dropped += int64(len(data))
	came(s, now, l.id, p, p.stripe(i))
	s.flush(now)
}
