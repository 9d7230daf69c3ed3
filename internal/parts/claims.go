package parts

import (
	"bytes"
	"slices"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// verify has the certificate of a push verified, once for all peers that tell it.
func (l *link) verify(s *Stream, u *push) {
	p := s.shelf.part(u.turn)
	if slices.ContainsFunc(p.judged, func(raw []byte) bool { return bytes.Equal(raw, u.raw) }) {
		return
	}
	p.judged = append(p.judged, u.raw)
	l.node.do(Verify{From: l.id, Stream: u.stream, Turn: u.turn, Raw: u.raw})
}

// unjudged does something with the pushes of a stream that are not judged yet.
func unjudged(s *Stream, what func(*link, *push)) {
	for _, id := range s.node.order {
		l := s.node.links[id]
		for _, push := range l.pushed {
			if u := l.pushes[push]; u.stream == s.id && u.state == judging {
				what(l, u)
			}
		}
	}
}

// claims has what viewers told at a turn be judged, since the own playlist lists it. What it has passed, it has not listed: that was no
// part, unless the playlist went on by so much that parts of it were never seen.
func claims(s *Stream, turn uint32, passed bool) {
	unjudged(s, func(l *link, u *push) {
		if u.turn == turn {
			l.verify(s, u)
		} else if !s.shelf.near(u.turn) {
			l.refuse(u, passed)
		}
	})
}

// refuse refuses a push. A viewer's at a turn which the own playlist does not have, or has for another part, is a lie: all of it is charged.
func (l *link) refuse(u *push, lie bool) {
	if lie && !l.seed {
		l.unsolicited(len(u.raw))
		u.spare = Backlog
	}
	u.state = refused
	for _, m := range l.waited(u.id) {
		l.drop(u, len(m.Payload))
	}
}

// waited takes out what waits of a push.
func (l *link) waited(push uint32) []peer.Data {
	i := slices.IndexFunc(l.early, func(e *early) bool { return e.push == push })
	if i < 0 {
		return nil
	}
	data := l.early[i].data
	l.early = slices.Delete(l.early, i, i+1)
	return data
}

// drop counts data of a push that was refused: a certificate of another seed, or a seed's turn that was wrong, is not the peer's fault.
func (l *link) drop(u *push, size int) {
	l.node.Counts.Dropped += int64(size)
	if u.spare += peer.Unsolicited(size); u.spare > Backlog {
		l.unsolicited(size)
	}
}

func (l *link) unsolicited(size int) {
	l.node.do(Blame{From: l.id, Why: Unsolicited, Bytes: size})
}
