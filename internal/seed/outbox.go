package seed

import (
	"log/slog"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/stream"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// outbox is what a seed says on the bus: messages, which may get lost, and signals, which are said again until a tracker has them.
type outbox struct {
	bus     Bus
	log     *slog.Logger
	streams *stream.Streams[*bus.Signal, *bus.SeedDelivery]
}

// newOutbox makes one. lost is called with a signal that no tracker has acknowledged.
func newOutbox(self signal.ID, b Bus, known *trackers, lost func(*bus.Signal), sink metric.Sink, log *slog.Logger, now func() time.Time) *outbox {
	o := &outbox{bus: b, log: log}
	o.streams = stream.New[*bus.Signal, *bus.SeedDelivery](stream.Config[*bus.Signal]{
		Self: self, Now: now, Connected: b.Connected, Lives: known.lives, Lost: lost,
		Say: func(to signal.ID, m *bus.Signal, at *bus.Stream) {
			o.publish(bus.SubjectSeedSignal(to), &bus.Delivery{Kind: bus.KindSignal, Signal: m, Stream: at})
		},
		Ack:   func(to signal.ID, a *bus.Ack) { o.publish(bus.SubjectSeedAck(to), a) },
		Count: func(outcome string) { sink.Add(mSignals, 1, outcome) },
	})
	return o
}

// publish says something if the bus is there. What the bus keeps meanwhile would come when it is no longer true.
func (o *outbox) publish(subject string, m bus.Message) {
	if !o.bus.Connected() {
		return
	}
	b, err := bus.Encode(m)
	if err == nil {
		err = o.bus.Publish(subject, b)
	}
	if err != nil {
		o.log.Warn("a message did not go out", "subject", bus.Kind(subject), "error", err)
	}
}

// signal sends one to the tracker that holds the viewer.
func (o *outbox) signal(tracker signal.ID, m *bus.Signal) { o.streams.Send(tracker, m) }

// onAck takes in what a tracker has.
func (o *outbox) onAck(data []byte) {
	var a bus.Ack
	if bus.Decode(data, &a) == nil {
		o.streams.Acked(&a)
	}
}
