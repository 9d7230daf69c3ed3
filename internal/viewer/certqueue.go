package viewer

import (
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// certificateQueue are the certificates that one peer waits for, shown in turn as fast as it reads them.
type certificateQueue struct {
	room   func() bool
	answer func(segment.ID) peer.Message
	send   func(peer.Message)
	asked  []segment.ID
}

// ask takes a request for certificates. What is too much is refused.
func (q *certificateQueue) ask(ids []segment.ID) {
	room := min(len(ids), peer.MaxAsked-len(q.asked))
	q.asked = append(q.asked, ids[:room]...)
	for _, id := range ids[room:] {
		q.send(peer.CertificateNone{Segment: id, Reason: peer.NoneBudget})
	}
	q.pump()
}

// pump shows what the peer has room for.
func (q *certificateQueue) pump() {
	for len(q.asked) > 0 && q.room() {
		id := q.asked[0]
		if q.asked = q.asked[1:]; len(q.asked) == 0 {
			q.asked = nil
		}
		q.send(q.answer(id))
	}
}
