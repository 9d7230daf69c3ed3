package tracker

import (
	"github.com/leeway-video/leeway/internal/courier"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// parcel is what goes to another replica: to a tracker or to a seed.
type parcel struct {
	to      signal.ID
	tracker *bus.Delivery
	seed    *bus.SeedDelivery
}

// newCourier carries deliveries to trackers and seeds, and those of both to this tracker.
func newCourier(t *Tracker) *courier.Courier[parcel, *bus.Delivery] {
	return courier.New[parcel, *bus.Delivery](courier.Config[parcel]{
		Self: t.id, Now: t.cfg.Now, Connected: t.bus.Connected,
		Lives: func(id signal.ID) bool { return t.roster.lives(id) || t.roster.serves(id) },
		Say: func(to signal.ID, p parcel, at *bus.Stream) {
			if p.seed != nil {
				numbered := *p.seed
				numbered.Stream = at
				t.publish(bus.SubjectSeedDeliver(to), &numbered)
				return
			}
			numbered := *p.tracker
			numbered.Stream = at
			t.publish(bus.SubjectDeliver(to), &numbered)
		},
		Ack:   func(to signal.ID, a *bus.Ack) { t.publish(bus.SubjectAck(to), a) },
		Lost:  t.undelivered,
		Count: func(outcome string) { t.cfg.Metrics.Add(defDeliveries, 1, outcome) },
	})
}

// send brings a delivery to a tracker, this one perhaps.
func (t *Tracker) send(to signal.ID, d *bus.Delivery) {
	if to == t.id {
		t.handleDelivery(d)
		return
	}
	t.courier.Send(to, parcel{to: to, tracker: d})
}

func (t *Tracker) onAck(data []byte, _ func([]byte) error) {
	var a bus.Ack
	if t.decode(data, &a) {
		t.courier.Acked(&a)
	}
}

// onDelivery is for a session held here.
func (t *Tracker) onDelivery(data []byte, _ func([]byte) error) {
	d := &bus.Delivery{}
	if !t.decode(data, d) {
		return
	}
	if d.Stream == nil {
		t.handleDelivery(d) // said once
		return
	}
	for _, d := range t.courier.Take(d.Stream, d) {
		t.handleDelivery(d)
	}
}

func (t *Tracker) handleDelivery(d *bus.Delivery) {
	switch d.Kind {
	case bus.KindIntroduce:
		if s := t.session(d.Session); s != nil {
			s.introduce(d.Swarm, d.Peers)
		}
	case bus.KindReplaced:
		if s := t.session(d.Session); s != nil {
			s.replaced()
		}
	case bus.KindSignal:
		t.deliver(d.Signal)
	case bus.KindTorrent:
		t.onTorrent(d.Torrent)
	}
}

// undelivered tells who offered or answered that it came to nothing.
func (t *Tracker) undelivered(p parcel) {
	switch {
	case p.seed != nil:
		t.sendSeedGone(p.seed.Signal)
	case p.tracker.Kind == bus.KindSignal:
		t.sendGone(p.tracker.Signal)
	case p.tracker.Kind == bus.KindTorrent:
		t.differ(p.to)
	}
}
