package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestTheAnnouncerWaitsAndTakesBackOnlyWhatItSaid(t *testing.T) {
	w := newWorld()
	held := map[string]bool{"a": true}
	var said [][]peer.HaveEntry
	a := announcer{
		loop: w, announced: map[string]bool{}, send: func(m peer.Message) { said = append(said, m.(peer.Have).Entries) },
		entryOf: func(id string) (peer.HaveEntry, bool) {
			return peer.HaveEntry{Segment: segment.ID{id[0]}, State: peer.HoldsComplete}, held[id]
		},
	}
	w.run(time.Second)
	a.tell("a")
	a.tell("a")
	a.tell("b") // of which nothing is held, nor was
	held["a"] = false
	if len(said) != 1 {
		t.Fatalf("%d messages at once", len(said))
	}
	w.run(announceEvery)
	if len(said) != 2 || len(said[1]) != 1 || said[1][0].State != peer.HoldsNone || said[1][0].Segment != (segment.ID{'a'}) {
		t.Fatalf("%+v", said)
	}
	a.tell("a")
	a.stop()
	w.run(time.Second)
	if len(said) != 2 {
		t.Error("said something after the end")
	}
}

func TestCertificatesAreShownAsThePeerReads(t *testing.T) {
	room, sent := 2, 0
	q := certificateQueue{
		room:   func() bool { room--; return room >= 0 },
		answer: func(id segment.ID) peer.Message { return peer.CertificateNone{Segment: id, Reason: peer.NoneUnknown} },
		send: func(m peer.Message) {
			if m.(peer.CertificateNone).Reason == peer.NoneUnknown {
				sent++
			}
		},
	}
	q.ask(make([]segment.ID, peer.MaxAsked+5))
	if sent != 2 || len(q.asked) != peer.MaxAsked-2 {
		t.Errorf("%d were shown at once, %d wait", sent, len(q.asked))
	}
	room = peer.MaxAsked
	if q.pump(); sent != peer.MaxAsked || len(q.asked) != 0 {
		t.Errorf("%d were shown, %d wait", sent, len(q.asked))
	}
}
