package viewer

import (
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestCertificatesAreShownAsFastAsThePeerReads: in turn, and what is asked for beyond the bound is refused at once.
func TestCertificatesAreShownAsFastAsThePeerReads(t *testing.T) {
	room := 0
	var shown, refused []segment.ID
	q := certificateQueue{
		room:   func() bool { return room > 0 },
		answer: func(id segment.ID) peer.Message { return peer.Certificate{Segment: id} },
	}
	q.send = func(m peer.Message) {
		switch m := m.(type) {
		case peer.Certificate:
			room--
			shown = append(shown, m.Segment)
		case peer.CertificateNone:
			if m.Reason != peer.NoneBudget {
				t.Errorf("refused with %v", m.Reason)
			}
			refused = append(refused, m.Segment)
		}
	}
	ids := make([]segment.ID, peer.MaxAsked+2)
	for i := range ids {
		ids[i] = segment.ID{byte(i), byte(i >> 8), 1}
	}
	q.ask(ids)
	if len(shown) != 0 || len(refused) != 2 || refused[0] != ids[peer.MaxAsked] {
		t.Fatalf("%d shown without room, %d refused", len(shown), len(refused))
	}
	room = 3
	q.pump()
	if len(shown) != 3 || shown[0] != ids[0] || shown[2] != ids[2] {
		t.Fatalf("shown %v", shown)
	}
	// The three places are free again, and what was asked first comes first.
	q.ask(ids[peer.MaxAsked:])
	if len(refused) != 2 {
		t.Errorf("%d refused with room in the queue", len(refused))
	}
	room = 2 * peer.MaxAsked
	q.pump()
	if n := len(shown); n != peer.MaxAsked+2 || shown[n-1] != ids[peer.MaxAsked+1] || q.asked != nil {
		t.Errorf("%d shown, %d left", n, len(q.asked))
	}
}
