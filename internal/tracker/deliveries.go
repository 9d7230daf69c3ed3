package tracker

import (
	"github.com/leeway-video/leeway/internal/stream"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// parcel is what goes to another replica: to a tracker or to a seed.
type parcel struct {
	to      signal.ID
	tracker *bus.Delivery
	seed    *bus.SeedDelivery
}

// deliveries carries messages to single trackers and seeds, acknowledged and in order, and hands those that come to the part of this
// tracker that they are for.
type deliveries struct {
	*replica
	streams  *stream.Streams[parcel, *bus.Delivery]
	sessions *sessions
	signals  *signals
	torrents Torrents // nil: the WebTorrent protocol is not spoken
}

func newDeliveries(r *replica, ss *sessions) *deliveries {
	ds := &deliveries{replica: r, sessions: ss}
	ds.streams = stream.New[parcel, *bus.Delivery](stream.Config[parcel]{
		Self: r.id, Now: r.cfg.Now, Connected: r.bus.Connected,
		Lives: func(id signal.ID) bool { return r.roster.lives(id) || r.roster.serves(id) },
		Say:   ds.say,
		Ack:   func(to signal.ID, a *bus.Ack) { r.Publish(bus.SubjectAck(to), a) },
		Lost:  ds.undelivered,
		Count: func(outcome string) { r.cfg.Metrics.Add(defDeliveries, 1, outcome) },
	})
	return ds
}

func (ds *deliveries) say(to signal.ID, p parcel, at *bus.Stream) {
	if p.seed != nil {
		numbered := *p.seed
		numbered.Stream = at
		ds.Publish(bus.SubjectSeedDeliver(to), &numbered)
		return
	}
	numbered := *p.tracker
	numbered.Stream = at
	ds.Publish(bus.SubjectDeliver(to), &numbered)
}

// toSeed brings a delivery to a seed.
func (ds *deliveries) toSeed(to signal.ID, d *bus.SeedDelivery) {
	ds.send(parcel{to: to, seed: d}, d)
}

// Send brings a delivery to a tracker, this one perhaps.
func (ds *deliveries) Send(to signal.ID, d *bus.Delivery) {
	if to == ds.id {
		ds.handle(d)
		return
	}
	ds.send(parcel{to: to, tracker: d}, d)
}

// send puts a parcel in its stream, unless the bus takes no such message: what follows in the stream would wait for its number until it is given
// up.
func (ds *deliveries) send(p parcel, m bus.Message) {
	if err := m.Validate(); err != nil {
		ds.cfg.Log.Warn("bus message not sent", "error", err)
		ds.undelivered(p)
		return
	}
	ds.streams.Send(p.to, p)
}

func (ds *deliveries) onAck(data []byte, _ func([]byte) error) {
	var a bus.Ack
	if ds.decode(data, &a) {
		ds.streams.Acked(&a)
	}
}

// onDelivery is for a session held here.
func (ds *deliveries) onDelivery(data []byte, _ func([]byte) error) {
	d := &bus.Delivery{}
	if !ds.decode(data, d) {
		return
	}
	if d.Stream == nil {
		ds.handle(d) // said once
		return
	}
	for _, d := range ds.streams.Take(d.Stream, d) {
		ds.handle(d)
	}
}

func (ds *deliveries) handle(d *bus.Delivery) {
	switch d.Kind {
	case bus.KindIntroduce:
		if s := ds.sessions.session(d.Session); s != nil {
			s.introduce(d.Swarm, d.Peers)
		}
	case bus.KindReplaced:
		if s := ds.sessions.session(d.Session); s != nil {
			s.replaced()
		}
	case bus.KindSignal:
		ds.signals.deliver(d.Signal)
	case bus.KindTorrent:
		if ds.torrents != nil {
			ds.torrents.Hear(d.Torrent)
		}
	}
}

// undelivered tells the sender of an offer or answer that it was not delivered.
func (ds *deliveries) undelivered(p parcel) {
	switch {
	case p.seed != nil:
		ds.signals.seedGone(p.seed.Signal)
	case p.tracker.Kind == bus.KindSignal:
		ds.signals.gone(p.tracker.Signal)
	case p.tracker.Kind == bus.KindTorrent && ds.torrents != nil:
		ds.torrents.Lost(p.to)
	}
}
