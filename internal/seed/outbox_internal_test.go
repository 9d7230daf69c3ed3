package seed

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/stream"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// wires is a bus that keeps what is published.
type wires struct {
	Bus
	mu   sync.Mutex
	said []string // guarded by mu: subjects
	data [][]byte // guarded by mu
	gone bool     // guarded by mu: the bus is
}

func (w *wires) Connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.gone
}

func (w *wires) set(gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = gone
}

func (w *wires) Publish(subject string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said, w.data = append(w.said, subject), append(w.data, data)
	return nil
}

func (w *wires) first() (subject string, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[0], w.data[0]
}

func (w *wires) last() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.data[len(w.data)-1]
}

func (w *wires) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.said)
}

func TestASignalIsSaidUntilATrackerHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self, tracker, gone := signal.ID{1}, signal.ID{2}, signal.ID{3}
		known, w := newTrackers(), &wires{}
		known.heard(&bus.TrackerBeat{Tracker: tracker}, time.Now())
		var lost []*bus.Signal
		o := newOutbox(self, w, known, func(m *bus.Signal) { lost = append(lost, m) }, metric.Discard, silent, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go o.streams.Run(ctx)
		m := &bus.Signal{Signal: signal.Signal{Swarm: signal.ID{6}, From: self, To: signal.ID{4}, Link: signal.ID{5}, Kind: "end", Role: "seed"}}

		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }

		o.signal(tracker, m)
		var d bus.Delivery
		if subject, data := w.first(); subject != bus.SubjectSeedSignal(tracker) || bus.Decode(data, &d) != nil || d.Signal.To != m.To || d.Stream.From != self {
			t.Fatalf("said at %s: %+v", subject, d)
		}
		pass(time.Second)
		if w.count() < 2 {
			t.Error("what no tracker has acknowledged is not said again")
		}
		ack, err := bus.Encode(&bus.Ack{From: tracker, Next: d.Stream.N + 1})
		if err != nil {
			t.Fatal(err)
		}
		o.onAck([]byte("rubbish"))
		o.onAck(ack)
		said := w.count()
		pass(10 * time.Second)
		if w.count() != said || len(lost) != 0 {
			t.Errorf("said %d times after the acknowledgement, %d lost", w.count()-said, len(lost))
		}
		w.set(true)
		o.publish(bus.SubjectSeedBeat, &bus.SeedBeat{Seed: self})
		o.signal(tracker, m)
		pass(time.Second)
		if w.count() != said {
			t.Errorf("%d messages are kept for the time when the bus is back", w.count()-said)
		}
		w.set(false)
		pass(stream.Step)
		if w.count() != said+1 {
			t.Errorf("%d messages when the bus is back, want the signal alone", w.count()-said)
		}
		d = bus.Delivery{}
		if err := bus.Decode(w.last(), &d); err != nil {
			t.Fatal(err)
		}
		if ack, err = bus.Encode(&bus.Ack{From: tracker, Next: d.Stream.N + 1}); err != nil {
			t.Fatal(err)
		}
		o.onAck(ack)
		o.signal(gone, m)
		pass(10 * time.Second)
		if len(lost) != 1 || lost[0].To != m.To {
			t.Errorf("%d are lost that went to a tracker that is gone", len(lost))
		}
	})
}
