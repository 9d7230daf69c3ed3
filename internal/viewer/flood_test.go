package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// turnedDown takes down what each peer was told.
type turnedDown struct {
	failures
	told []signal.ID
}

func (r *turnedDown) signalTo(to, _ signal.ID, _ signal.Signal) { r.told = append(r.told, to) }

// full is links of a viewer that takes no more of them, and offers of a peer to it.
func full() (w *world, l *links, events *turnedDown, offer func(peer, link int)) {
	w, events = newWorld(), &turnedDown{}
	l = newLinks(w, nil, events, nil)
	l.terms.role = "full"
	l.begin()
	return w, l, events, func(peer, link int) {
		l.signal(&signal.Signal{
			From: signal.ID{1, byte(peer >> 8), byte(peer)}, Link: signal.ID{2, byte(link >> 8), byte(link)}, Role: "viewer",
			Kind: "offer", SDP: "v=0", Plan: &signal.Plan{V: 1, Data: 2, Message: 8192},
		})
	}
}

func TestRepeatedOffersAreNotAnswered(t *testing.T) {
	w, _, events, offer := full()
	for i := range 50 {
		offer(1, 1)
		offer(1, i)
		w.run(10 * time.Millisecond)
	}
	if len(events.told) != 1 {
		t.Errorf("100 offers of one peer in half a second have %d answers", len(events.told))
	}
	w.run(offersTime)
	offer(1, 1)
	if len(events.told) != 2 {
		t.Error("not heard again afterwards")
	}
}

func TestAFloodOfOffersIsNotHeard(t *testing.T) {
	w, l, events, offer := full()
	for i := range 50 {
		offer(i, i)
	}
	if len(events.told) != 50 {
		t.Errorf("%d of 50 newcomers are answered", len(events.told))
	}
	for i := range 5000 {
		offer(100+i, i)
		w.run(time.Millisecond)
	}
	if most := offersAtOnce + 5*offersPerSecond + 1; len(events.told) > most {
		t.Errorf("%d of 5050 offers are answered, at most %d expected", len(events.told), most)
	}
	if len(l.told.until) > 2*manyRemembered || len(l.avoided.until) > 2*manyRemembered {
		t.Errorf("%d peers remembered", len(l.told.until)+len(l.avoided.until))
	}
}

// TestAnUpdateDoesNotWaitForSignals: strangers have this viewer say more than it may; what is its own goes first.
func TestAnUpdateDoesNotWaitForSignals(t *testing.T) {
	p := newScript(greet)
	p.w.run(time.Millisecond)
	for range 400 {
		p.send(&signal.Signal{Swarm: signal.ID{1}, To: signal.ID{2}, Link: signal.ID{3}, Kind: "end"})
	}
	p.w.run(300 * time.Millisecond)
	began := p.w.now
	p.send(&signal.Update{Swarm: signal.ID{1}, Want: 3})
	p.w.run(100 * time.Second)
	s := p.sockets[0]
	perSecond := map[int64]int{}
	signals, updated := 0, time.Duration(-1)
	for i, m := range s.sent {
		perSecond[s.at[i].Unix()]++
		switch m.(type) {
		case *signal.Update:
			updated = s.at[i].Sub(began)
		case *signal.Signal:
			signals++
		}
	}
	if updated != 0 || signals != 400 {
		t.Errorf("the update left after %v; %d signals", updated, signals)
	}
	for _, n := range perSecond {
		if n > 12 { // the rate is 10; hello and the second's edge
			t.Errorf("%d messages in a second", n)
		}
	}
}
