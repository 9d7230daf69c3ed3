package tracker

import (
	"context"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// courierStep is how often the courier looks at what is under way, while anything is.
const courierStep = 20 * time.Millisecond

// courier carries deliveries to other trackers: numbered, acknowledged, said again when they were lost (spec/cluster.md,
// "Signals").
type courier struct {
	t    *Tracker
	wake chan struct{} // something is under way

	mu  sync.Mutex
	out map[signal.ID]*cluster.Outbox[*bus.Delivery] // guarded by mu, by who is to receive
	in  map[signal.ID]*incoming                      // guarded by mu, by who sent
}

// incoming is a stream of another tracker. Guarded by courier.mu.
type incoming struct {
	cluster.Inbox[*bus.Delivery]
	owed bool // an acknowledgement
}

func newCourier(t *Tracker) *courier {
	return &courier{
		t: t, wake: make(chan struct{}, 1),
		out: map[signal.ID]*cluster.Outbox[*bus.Delivery]{}, in: map[signal.ID]*incoming{},
	}
}

// send brings a delivery to a tracker. What does not arrive comes to undelivered.
func (c *courier) send(to signal.ID, d *bus.Delivery) {
	if to == c.t.id {
		c.t.handleDelivery(d)
		return
	}
	c.mu.Lock()
	o := c.out[to]
	if o == nil {
		o = &cluster.Outbox[*bus.Delivery]{}
		c.out[to] = o
	}
	n, ok := o.Add(d, c.t.cfg.Now())
	base := o.Base()
	c.mu.Unlock()
	if !ok {
		c.t.cfg.Metrics.Add(defDeliveries, 1, "lost")
		c.t.undelivered(d)
		return
	}
	c.t.cfg.Metrics.Add(defDeliveries, 1, "sent")
	c.say(to, d, n, base)
	c.stir()
}

func (c *courier) say(to signal.ID, d *bus.Delivery, n, base uint64) {
	if !c.t.bus.Connected() {
		return // it is said again when the bus is back, if that is soon
	}
	numbered := *d
	numbered.Stream = &bus.Stream{From: c.t.id, N: n, Base: base}
	c.t.publish(bus.SubjectDeliver(to), &numbered)
}

func (c *courier) stir() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take takes in a delivery of a stream and returns those whose turn it is.
func (c *courier) take(d *bus.Delivery) []*bus.Delivery {
	c.mu.Lock()
	i := c.in[d.Stream.From]
	if i == nil {
		i = &incoming{}
		c.in[d.Stream.From] = i
	}
	ready := i.Take(d.Stream.N, d.Stream.Base, d)
	i.owed = true
	c.mu.Unlock()
	c.stir()
	return ready
}

func (c *courier) onAck(data []byte, _ func([]byte) error) {
	var a bus.Ack
	if !c.t.decode(data, &a) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.out[a.Tracker]; o != nil {
		o.Acked(a.Next, c.t.cfg.Now())
	}
}

// run acknowledges and says again, until ctx ends.
func (c *courier) run(ctx context.Context) {
	step := time.NewTicker(courierStep)
	defer step.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		step.Reset(courierStep)
		for busy := true; busy; {
			select {
			case <-ctx.Done():
				return
			case <-step.C:
				busy = c.step(c.t.cfg.Now())
			}
		}
		step.Stop()
	}
}

// step does what is due and says whether anything is still under way.
func (c *courier) step(now time.Time) (busy bool) {
	type again struct {
		to   signal.ID
		base uint64
		cluster.Numbered[*bus.Delivery]
	}
	var due []again
	var lost []*bus.Delivery
	acks := map[signal.ID]uint64{}
	connected := c.t.bus.Connected()
	c.mu.Lock()
	for to, o := range c.out {
		more, gone := o.Due(now, connected)
		for _, m := range more {
			due = append(due, again{to, o.Base(), m})
		}
		lost = append(lost, gone...)
		busy = busy || o.Waiting() > 0
	}
	for from, i := range c.in {
		if i.owed && connected {
			acks[from], i.owed = i.Next(), false
		}
	}
	c.mu.Unlock()
	for to, next := range acks {
		c.t.publish(bus.SubjectAck(to), &bus.Ack{Tracker: c.t.id, Next: next})
	}
	for _, d := range due {
		c.t.cfg.Metrics.Add(defDeliveries, 1, "again")
		c.say(d.to, d.M, d.N, d.base)
	}
	for _, d := range lost {
		c.t.cfg.Metrics.Add(defDeliveries, 1, "lost")
		c.t.undelivered(d)
	}
	return busy
}

// maintain forgets streams of trackers that live no more.
func (c *courier) maintain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for to, o := range c.out {
		if o.Waiting() == 0 && !c.t.roster.lives(to) {
			delete(c.out, to)
		}
	}
	for from := range c.in {
		if !c.t.roster.lives(from) {
			delete(c.in, from)
		}
	}
}

// onDelivery is for a session held here.
func (t *Tracker) onDelivery(data []byte, _ func([]byte) error) {
	d := &bus.Delivery{}
	if !t.decode(data, d) {
		return
	}
	if d.Stream == nil {
		t.handleDelivery(d) // of a seed
		return
	}
	for _, d := range t.courier.take(d) {
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
func (t *Tracker) undelivered(d *bus.Delivery) {
	if d.Kind == bus.KindSignal {
		t.sendGone(d.Signal)
	}
}
