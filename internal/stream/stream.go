// Package stream carries messages between replicas as streams: numbered, acknowledged, said again when they were lost
// (spec/cluster.md, "Signals"). What a stream is cluster says; here are its clock and its lock.
package stream

import (
	"context"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Step is how often Streams.Run looks at what is under way, while anything is. An acknowledgement waits at most that long.
const Step = 20 * time.Millisecond

// Outcomes are what Count is told of.
var Outcomes = []string{"sent", "again", "lost"}

// Config is what streams need of their replica. No lock is held while one of these is called.
type Config[Out any] struct {
	Self      signal.ID
	Now       func() time.Time
	Connected func() bool                               // whether the bus is there: messages that are said again and acknowledgements wait for it
	Lives     func(replica signal.ID) bool              // whose streams are kept
	Say       func(to signal.ID, m Out, at *bus.Stream) // keeps nothing for the time when the bus is back
	Ack       func(to signal.ID, a *bus.Ack)            // likewise
	Lost      func(m Out)                               // is told of what was given up
	Count     func(outcome string)
}

// Streams are a replica's streams to and from others. They send messages of one type and receive those of another.
type Streams[Out, In any] struct {
	cfg  Config[Out]
	wake chan struct{} // something is under way

	mu    sync.Mutex
	out   map[signal.ID]*cluster.Outbox[Out] // guarded by mu, by receiver
	in    map[signal.ID]*incoming[In]        // guarded by mu, by sender
	spent uint64                             // guarded by mu: the highest number of a stream that has been forgotten
}

// incoming is a stream of another replica. Guarded by Streams.mu.
type incoming[In any] struct {
	cluster.Inbox[In]
	owed bool      // an acknowledgement
	at   time.Time // of the latest message
}

// New returns the streams of a replica. Run keeps them going.
func New[Out, In any](cfg Config[Out]) *Streams[Out, In] {
	return &Streams[Out, In]{
		cfg: cfg, wake: make(chan struct{}, 1), out: map[signal.ID]*cluster.Outbox[Out]{}, in: map[signal.ID]*incoming[In]{},
	}
}

// Send brings a message to a replica. What does not arrive comes to Lost.
func (s *Streams[Out, In]) Send(to signal.ID, m Out) {
	s.mu.Lock()
	o := s.out[to]
	if o == nil {
		// The receiver may remember a stream that was forgotten here, and would take low numbers for messages that it has already.
		o = cluster.OutboxAfter[Out](s.spent)
		s.out[to] = o
	}
	n, ok := o.Add(m, s.cfg.Now())
	base := o.Base()
	s.mu.Unlock()
	if !ok {
		s.cfg.Count("lost")
		s.cfg.Lost(m)
		return
	}
	s.cfg.Count("sent")
	s.cfg.Say(to, m, &bus.Stream{From: s.cfg.Self, N: n, Base: base})
	s.stir()
}

func (s *Streams[Out, In]) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Take takes in a message of a stream and returns those whose turn it is.
func (s *Streams[Out, In]) Take(at *bus.Stream, m In) []In {
	s.mu.Lock()
	i := s.in[at.From]
	if i == nil {
		i = &incoming[In]{}
		s.in[at.From] = i
	}
	ready := i.Take(at.N, at.Base, m)
	i.owed, i.at = true, s.cfg.Now()
	s.mu.Unlock()
	s.stir()
	return ready
}

// Acked takes in an acknowledgement.
func (s *Streams[Out, In]) Acked(a *bus.Ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.out[a.From]; o != nil {
		o.Acked(a.Next, s.cfg.Now())
	}
}

// Run acknowledges and says again, until ctx ends.
func (s *Streams[Out, In]) Run(ctx context.Context) {
	step := time.NewTicker(Step)
	defer step.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		step.Reset(Step)
		for busy := true; busy; {
			select {
			case <-ctx.Done():
				return
			case <-step.C:
				busy = s.step(s.cfg.Now())
			}
		}
		step.Stop()
	}
}

// step does what is due and says whether anything is still under way.
func (s *Streams[Out, In]) step(now time.Time) (busy bool) {
	type again struct {
		to   signal.ID
		base uint64
		cluster.Numbered[Out]
	}
	var due []again
	var lost []Out
	acks := map[signal.ID]uint64{}
	connected := s.cfg.Connected()
	s.mu.Lock()
	for to, o := range s.out {
		more, gone := o.Due(now, connected)
		for _, m := range more {
			due = append(due, again{to, o.Base(), m})
		}
		lost = append(lost, gone...)
		busy = busy || o.Waiting() > 0
	}
	for from, i := range s.in {
		switch {
		case i.owed && connected:
			acks[from], i.owed = i.Next(), false
		case now.Sub(i.at) > cluster.GiveUp: // and so has the sender
			i.owed = false
		}
		busy = busy || i.owed
	}
	s.mu.Unlock()
	for to, next := range acks {
		s.cfg.Ack(to, &bus.Ack{From: s.cfg.Self, Next: next})
	}
	for _, m := range due {
		s.cfg.Count("again")
		s.cfg.Say(m.to, m.M, &bus.Stream{From: s.cfg.Self, N: m.N, Base: m.base})
	}
	for _, m := range lost {
		s.cfg.Count("lost")
		s.cfg.Lost(m)
	}
	return busy
}

// Maintain forgets streams of replicas that live no more.
func (s *Streams[Out, In]) Maintain() {
	for _, id := range s.others() {
		if s.cfg.Lives(id) {
			continue
		}
		s.mu.Lock()
		// What was not acknowledged is said again for a while, and was acted on already.
		if i := s.in[id]; i != nil && s.cfg.Now().Sub(i.at) > cluster.GiveUp {
			delete(s.in, id)
		}
		if o := s.out[id]; o != nil && o.Waiting() == 0 {
			s.spent = max(s.spent, o.Last())
			delete(s.out, id)
		}
		s.mu.Unlock()
	}
}

// others lists the replicas that there are streams with.
func (s *Streams[Out, In]) others() (all []signal.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.out {
		all = append(all, id)
	}
	for id := range s.in {
		if s.out[id] == nil {
			all = append(all, id)
		}
	}
	return all
}
