package peersbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// Patience of the bench with its ends.
const (
	readyPatience = 30 * time.Second // a browser's first start among others
	openPatience  = 30 * time.Second
	jobPatience   = time.Minute
)

// place is where an end runs: an address and a way to start a process there.
type place struct {
	addr    string
	command bench.Command // nil is beside the bench
}

// kinds are what the two sides of a measurement are made of.
type kinds struct {
	name           string // in names of cases
	client, server string // kinds of end
	about          string
	clientFirefox  bool
	serverFirefox  bool
}

// errLate is that what was waited for did not come.
var errLate = errors.New("too late")

// event is what an end said.
type event struct {
	end int
	message
	err error // it says no more
}

// session is the ends of one measurement: a client and those that serve it.
type session struct {
	ends     []*bench.Process
	exchange *exchange
	events   chan event
	wg       sync.WaitGroup
}

// openSession starts the ends. Client and servers have links of so many channels.
func openSession(ctx context.Context, r *bench.Run, k kinds, channels int, signaling net.Listener, from place, to ...place) (_ *session, err error) {
	s := &session{exchange: newExchange(signaling), events: make(chan event, 16*(1+len(to)))}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for i, at := range append([]place{from}, to...) {
		c := setup{Kind: k.client, Firefox: k.clientFirefox, Name: i, Addr: at.addr, Exchange: s.exchange.Addr(), Channels: channels}
		if i != client {
			c.Kind, c.Firefox = k.server, k.serverFirefox
		}
		p, err := r.Start(at.command, benchName, roleEnd, fmt.Sprintf("%s-%d", k.name, i))
		if err != nil {
			return nil, err
		}
		s.ends = append(s.ends, p)
		if err := p.Send(c); err != nil {
			return nil, err
		}
		s.wg.Go(func() { s.listen(i, p) })
	}
	ready := func(e event) bool { return e.Type == "ready" }
	if err := s.await(ctx, readyPatience, len(s.ends), "an end did not come up", ready); err != nil {
		return nil, err
	}
	for range s.ends {
		select {
		case <-s.exchange.joined:
		case <-time.After(readyPatience):
			return nil, errors.New("an end does not signal")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s, nil
}

func (s *session) listen(i int, p *bench.Process) {
	for {
		e := event{end: i}
		e.err = p.Receive(&e.message)
		s.events <- e
		if e.err != nil {
			return
		}
	}
}

// await waits for so many events that are wanted.
func (s *session) await(ctx context.Context, patience time.Duration, n int, late string, wanted func(event) bool) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for n > 0 {
		select {
		case e := <-s.events:
			switch {
			case e.err != nil:
				return fmt.Errorf("end %d: %w", e.end, e.err)
			case e.Type == "failed":
				return fmt.Errorf("end %d: %s", e.end, e.Why)
			case wanted(e):
				n--
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%s within %s: %w", late, patience, errLate)
		}
	}
	return nil
}

// stages are the moments of a link's establishment, ms of Unix time.
type stages struct {
	begun, answered float64
	open            [2]float64 // at the client, at the end that serves
}

// ms is what the client waits for an open channel: signaling and all.
func (s stages) ms() float64 { return s.open[0] - s.begun }

// after is how long after the end of signaling the channels are open at both ends.
func (s stages) after() float64 { return max(s.open[0], s.open[1]) - s.answered }

// link establishes links, each to the end that a function says, and returns what was seen of them in order.
func (s *session) link(ctx context.Context, first, n int, to func(link int) int) ([]stages, error) {
	for link := first; link < first+n; link++ {
		if err := s.ends[client].Send(message{Type: "begin", Link: link, To: to(link)}); err != nil {
			return nil, err
		}
	}
	seen := make([]stages, n)
	err := s.await(ctx, openPatience, 2*n, "the links did not open", func(e event) bool {
		if e.Type != "moment" || e.Link < first || e.Link >= first+n {
			return false
		}
		side := min(e.end, 1)
		at := &seen[e.Link-first]
		switch e.Moment.What {
		case begun:
			at.begun = e.Moment.At
		case answered:
			at.answered = e.Moment.At
		case opened:
			at.open[side] = e.Moment.At
		}
		return e.Moment.What == usable
	})
	return seen, err
}

// drop ends a link at both ends, the client first.
func (s *session) drop(link, server int) error {
	m := message{Type: "drop", Link: link}
	return errors.Join(s.ends[client].Send(m), s.ends[server].Send(m))
}

// fetch has the client do a job, and returns how it went.
func (s *session) fetch(ctx context.Context, j job) (done, error) {
	var out done
	if err := s.ends[client].Send(message{Type: "job", Job: &j}); err != nil {
		return out, err
	}
	err := s.await(ctx, jobPatience, 1, "the items did not all come", func(e event) bool {
		if e.Type == "done" {
			out = *e.Done
		}
		return e.Type == "done"
	})
	return out, err
}

// close ends the ends, and returns when they are gone.
func (s *session) close() {
	rest := make(chan struct{})
	go func() { // what they still say is of no interest
		defer close(rest)
		for range s.events {
		}
	}()
	for _, p := range s.ends {
		_ = p.Stop()
	}
	s.wg.Wait()
	close(s.events)
	<-rest
	s.exchange.close()
}
