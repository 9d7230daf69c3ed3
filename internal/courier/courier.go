// Package courier carries messages between replicas as streams: numbered, acknowledged, said again when they were lost
// (spec/cluster.md, "Signals"). What a stream is cluster says; here are its clock and its lock.
package courier

import (
	"context"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Step is how often a courier looks at what is under way, while anything is: acknowledgements wait that long.
const Step = 20 * time.Millisecond

// Outcomes are what Count is told of.
var Outcomes = []string{"sent", "again", "lost"}

// Config is what a courier needs of the replica that it works for. No lock is held while one of these is called.
type Config[Out any] struct {
	Self      signal.ID
	Now       func() time.Time
	Connected func() bool                  // says whether the bus is there
	Lives     func(replica signal.ID) bool // whose streams are kept
	Say       func(to signal.ID, m Out, at *bus.Stream)
	Ack       func(to signal.ID, a *bus.Ack)
	Lost      func(m Out) // is told of what was given up
	Count     func(outcome string)
}

// Courier is a replica's streams to and from others: it sends messages of one type and receives those of another.
type Courier[Out, In any] struct {
	cfg  Config[Out]
	wake chan struct{} // something is under way

	mu    sync.Mutex
	out   map[signal.ID]*cluster.Outbox[Out] // guarded by mu, by receiver
	in    map[signal.ID]*incoming[In]        // guarded by mu, by sender
	spent uint64                             // guarded by mu: the highest number of a stream that has been forgotten
}

// incoming is a stream of another replica. Guarded by Courier.mu.
type incoming[In any] struct {
	cluster.Inbox[In]
	owed bool      // an acknowledgement
	at   time.Time // of the latest message
}

// New makes a courier; Run works it.
func New[Out, In any](cfg Config[Out]) *Courier[Out, In] {
	return &Courier[Out, In]{
		cfg: cfg, wake: make(chan struct{}, 1), out: map[signal.ID]*cluster.Outbox[Out]{}, in: map[signal.ID]*incoming[In]{},
	}
}

// Send brings a message to a replica. What does not arrive comes to Lost.
func (c *Courier[Out, In]) Send(to signal.ID, m Out) {
	c.mu.Lock()
	o := c.out[to]
	if o == nil {
		// The receiver may remember a stream that was forgotten here, and would take low numbers for messages that it has already.
		o = cluster.OutboxAfter[Out](c.spent)
		c.out[to] = o
	}
	n, ok := o.Add(m, c.cfg.Now())
	base := o.Base()
	c.mu.Unlock()
	if !ok {
		c.cfg.Count("lost")
		c.cfg.Lost(m)
		return
	}
	c.cfg.Count("sent")
	c.say(to, m, n, base)
	c.stir()
}

func (c *Courier[Out, In]) say(to signal.ID, m Out, n, base uint64) {
	if c.cfg.Connected() { // or it is said again when the bus is back, if that is soon
		c.cfg.Say(to, m, &bus.Stream{From: c.cfg.Self, N: n, Base: base})
	}
}

func (c *Courier[Out, In]) stir() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Take takes in a message of a stream and returns those whose turn it is.
func (c *Courier[Out, In]) Take(at *bus.Stream, m In) []In {
	c.mu.Lock()
	i := c.in[at.From]
	if i == nil {
		i = &incoming[In]{}
		c.in[at.From] = i
	}
	ready := i.Take(at.N, at.Base, m)
	i.owed, i.at = true, c.cfg.Now()
	c.mu.Unlock()
	c.stir()
	return ready
}

// Acked takes in an acknowledgement.
func (c *Courier[Out, In]) Acked(a *bus.Ack) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.out[a.From]; o != nil {
		o.Acked(a.Next, c.cfg.Now())
	}
}

// Run acknowledges and says again, until ctx ends.
func (c *Courier[Out, In]) Run(ctx context.Context) {
	step := time.NewTicker(Step)
	defer step.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		step.Reset(Step)
		for busy := true; busy; {
			select {
			case <-ctx.Done():
				return
			case <-step.C:
				busy = c.step(c.cfg.Now())
			}
		}
		step.Stop()
	}
}

// step does what is due and says whether anything is still under way.
func (c *Courier[Out, In]) step(now time.Time) (busy bool) {
	type again struct {
		to   signal.ID
		base uint64
		cluster.Numbered[Out]
	}
	var due []again
	var lost []Out
	acks := map[signal.ID]uint64{}
	connected := c.cfg.Connected()
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
		switch {
		case i.owed && connected:
			acks[from], i.owed = i.Next(), false
		case now.Sub(i.at) > cluster.GiveUp: // and so has the sender
			i.owed = false
		}
		busy = busy || i.owed
	}
	c.mu.Unlock()
	for to, next := range acks {
		c.cfg.Ack(to, &bus.Ack{From: c.cfg.Self, Next: next})
	}
	for _, m := range due {
		c.cfg.Count("again")
		c.say(m.to, m.M, m.N, m.base)
	}
	for _, m := range lost {
		c.cfg.Count("lost")
		c.cfg.Lost(m)
	}
	return busy
}

// Maintain forgets streams of replicas that live no more.
func (c *Courier[Out, In]) Maintain() {
	for _, id := range c.others() {
		if c.cfg.Lives(id) {
			continue
		}
		c.mu.Lock()
		// What was not acknowledged is said again for a while, and was acted on already.
		if i := c.in[id]; i != nil && c.cfg.Now().Sub(i.at) > cluster.GiveUp {
			delete(c.in, id)
		}
		if o := c.out[id]; o != nil && o.Waiting() == 0 {
			c.spent = max(c.spent, o.Last())
			delete(c.out, id)
		}
		c.mu.Unlock()
	}
}

// others lists the replicas that there are streams with.
func (c *Courier[Out, In]) others() (all []signal.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.out {
		all = append(all, id)
	}
	for id := range c.in {
		if c.out[id] == nil {
			all = append(all, id)
		}
	}
	return all
}
