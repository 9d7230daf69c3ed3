package background

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// asking is a viewer that asks some hosts for pieces, in turn and within its window, over one line of its own.
type asking struct {
	senders     int
	rate        int64         // of the line, bytes/s
	delay, late time.Duration // round trip of the empty line, and what a request waits besides
}

// answer is what came of 20 s.
type answer struct {
	got, most int64         // bytes that came, and that were asked for at once after 5 s
	queue     time.Duration // longest wait in the line after 5 s
	stats     ledbat.Stats
	owed      int64 // bytes, once all links are closed
}

// sending is one of the hosts.
type sending struct {
	store    *store
	lane     *Lane
	demand   *Demand
	receiver *Receiver
}

func (a asking) run() (out answer) {
	ctx, cancel := context.WithCancel(context.Background())
	shared, requester := &testkit.Line{Rate: float64(a.rate)}, NewRequester(ledbat.Config{}, time.Now)
	var all []*sending
	woken, got := make(chan struct{}, 1), atomic.Int64{}
	for range a.senders {
		s := &sending{store: &store{}, demand: requester.Add()}
		sender, w := NewSender(ledbat.Config{}, time.Now), &testkit.Link{Delay: a.delay, Line: shared}
		go sender.Run(ctx)
		s.receiver = NewReceiver(w, s.demand, time.Now)
		w.Deliver = func(b []byte) {
			d, _, _ := s.receiver.Data(b)
			got.Add(int64(len(d.Payload)))
			select {
			case woken <- struct{}{}:
			default:
			}
		}
		w.Acked = func(b []byte) { s.lane.Ack(b) }
		s.lane = sender.Add(w, s.store, 0)
		all = append(all, s)
	}
	begun := time.Now()
	for next := 0; time.Since(begun) < 20*time.Second; {
		ok, again := requester.May(peer.PieceSize)
		if !ok {
			select {
			case <-woken:
			case <-time.After(min(again, time.Second)):
			}
			continue
		}
		all[next%a.senders].ask(a.delay/2 + a.late)
		next++
		if time.Since(begun) > 5*time.Second {
			out.most, out.queue = max(out.most, requester.Stats().Flight), max(out.queue, shared.Wait(time.Now()))
		}
	}
	out.got, out.stats = got.Load(), requester.Stats()
	cancel()
	for _, s := range all {
		s.lane.Close()
		s.receiver.Close()
		s.demand.Close()
	}
	out.owed = requester.Stats().Flight
	return out
}

// ask has the host hear of a request after a time.
func (s *sending) ask(after time.Duration) {
	s.demand.Requested(peer.PieceSize)
	time.AfterFunc(after, func() {
		s.store.mu.Lock()
		s.store.left += peer.PieceSize
		s.store.mu.Unlock()
		s.lane.Wake()
	})
}

// TestManySendersToOneHostAreOneFlow has eight hosts send over one line to a viewer that asks within its window: what is
// asked for follows the line, and the queue stays near one target instead of eight. What waits at the hosts is in no queue, so
// that it is what comes that bounds it: twice that of 200 ms, and the piece by which a window may be passed.
func TestManySendersToOneHostAreOneFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 1_250_000
		out := asking{senders: 8, rate: rate, delay: 40 * time.Millisecond}.run()
		if out.got < rate*20*6/10 {
			t.Errorf("%d bytes in 20 s of a line of %d bytes/s", out.got, rate)
		}
		if out.stats.Base <= 0 || out.stats.Target <= 0 {
			t.Errorf("the viewer measured nothing: %+v", out.stats)
		}
		if bound := int64(2*rate/5 + peer.PieceSize); out.most > bound {
			t.Errorf("%d bytes were asked for at once, more than %d", out.most, bound)
		}
		if target := time.Duration(out.stats.Target) * time.Microsecond; out.queue > 4*target {
			t.Errorf("what is sent waited for %s in the line, with a target of %s", out.queue, target)
		}
		if out.owed != 0 {
			t.Errorf("%d bytes are owed by links that are closed", out.owed)
		}
	})
}

// TestRequestsThatWaitForATurnUseTheLine: a window that went by what comes in a round trip would leave most of the line.
func TestRequestsThatWaitForATurnUseTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 2_500_000
		out := asking{senders: 2, rate: rate, delay: 20 * time.Millisecond, late: 150 * time.Millisecond}.run()
		if t.Logf("%.3f of the line was used", float64(out.got)/rate/20); out.got < rate*20*4/10 {
			t.Errorf("%d bytes in 20 s of a line of %d bytes/s", out.got, rate)
		}
	})
}
