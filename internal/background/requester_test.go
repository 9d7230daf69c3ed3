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

// TestManySendersToOneHostAreOneFlow has eight hosts send over one line to a viewer that asks within its window: what is
// asked for follows the line, and the queue stays near one target instead of eight.
func TestManySendersToOneHostAreOneFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders, rate, delay = 8, 1_250_000, 40 * time.Millisecond
		ctx, cancel := context.WithCancel(context.Background())
		shared, requester := &testkit.Line{Rate: float64(rate)}, NewRequester(ledbat.Config{}, time.Now)
		type sending struct {
			store  *store
			lane   *Lane
			demand *Demand
		}
		var all []*sending
		var receivers []*Receiver
		woken, got := make(chan struct{}, 1), atomic.Int64{}
		for range senders {
			s := &sending{store: &store{}, demand: requester.Add()}
			sender, w := NewSender(ledbat.Config{}, time.Now), &testkit.Link{Delay: delay, Line: shared}
			go sender.Run(ctx)
			r := NewReceiver(w, s.demand, time.Now)
			w.Deliver = func(b []byte) {
				d, _, _ := r.Data(b)
				got.Add(int64(len(d.Payload)))
				select {
				case woken <- struct{}{}:
				default:
				}
			}
			w.Acked = func(b []byte) { s.lane.Ack(b) }
			s.lane = sender.Add(w, s.store, 0)
			all, receivers = append(all, s), append(receivers, r)
		}
		begun, most := time.Now(), int64(0)
		for next := 0; time.Since(begun) < 20*time.Second; {
			ok, again := requester.May(peer.PieceSize)
			if !ok {
				select {
				case <-woken:
				case <-time.After(min(again, time.Second)):
				}
				continue
			}
			s := all[next%senders]
			next++
			s.demand.Requested(peer.PieceSize)
			time.AfterFunc(delay/2, func() { // the request's way
				s.store.mu.Lock()
				s.store.left += peer.PieceSize
				s.store.mu.Unlock()
				s.lane.Wake()
			})
			if time.Since(begun) > 5*time.Second {
				most = max(most, requester.Stats().Flight)
			}
		}
		st := requester.Stats()
		cancel()
		for i, s := range all {
			s.lane.Close()
			receivers[i].Close()
			s.demand.Close()
		}
		if got.Load() < rate*20*6/10 {
			t.Errorf("%d bytes in 20 s of a line of %d bytes/s", got.Load(), rate)
		}
		if st.Base <= 0 || st.Target <= 0 {
			t.Errorf("the viewer measured nothing: %+v", st)
		}
		if bound := int64(rate/1000*40) + 4*st.Target*rate/1_000_000 + 4*peer.PieceSize; most > bound {
			t.Errorf("%d bytes were asked for at once, on a line that holds %d", most, rate/1000*40)
		}
		if after := requester.Stats(); after.Flight != 0 {
			t.Errorf("%d bytes are owed by links that are closed", after.Flight)
		}
	})
}
