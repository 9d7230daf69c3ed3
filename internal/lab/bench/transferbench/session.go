package transferbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// Patience of the parent.
const (
	openPatience   = 30 * time.Second
	reportPatience = 15 * time.Second // beyond warm-up and run
)

// place is where an end runs: an address and a way to start a process there.
type place struct {
	name    string
	addr    string
	command bench.Command // nil is here
}

// load is what one measurement moves.
type load struct {
	kind              string // of both ends
	from, to          string // of the sender and the receivers, where they differ
	firefox           bool   // ends in a browser are in Firefox
	channels, message int
	inFlight          int  // 0 is the library's default
	links             int  // of each receiver
	both              bool // the sender receives, too
	warm, run         time.Duration
}

// outcome is what one measurement saw.
type outcome struct {
	rate    float64               // bytes per second, all receivers together
	cpu     float64               // seconds per 10⁹ bytes, all ends together
	wakes   float64               // times that a thread waited, per 10⁶ bytes; of ends that know it
	silence float64               // seconds, the longest of all receivers
	buffers [2]int                // of the sender's socket
	threads [2]map[string]float64 // like cpu, by thread: of the sender, of the receivers; of ends that know it
	sent    report                // of the sender
	got     report                // of the last receiver
}

// session is one measurement in progress.
type session struct {
	load      load
	sender    *bench.Process
	receivers []*bench.Process

	mu     sync.Mutex
	open   int           // guarded by mu: ends of links that are open
	opened chan struct{} // closed when all are
	sent   chan report
	got    chan report
	failed chan error
}

// move measures load from one place to others.
func move(ctx context.Context, r *bench.Run, l load, from place, to ...place) (*outcome, error) {
	s := &session{
		load: l, opened: make(chan struct{}), sent: make(chan report, 1), got: make(chan report, len(to)), failed: make(chan error, len(to)+1),
	}
	defer s.stop()
	base := setup{
		Channels: l.channels, Message: l.message, InFlight: l.inFlight,
		WarmMS: int(l.warm.Milliseconds()), RunMS: int(l.run.Milliseconds()), Both: l.both, Firefox: l.firefox,
	}
	var err error
	label := fmt.Sprintf("%s%s%s-%dx%d", l.kind, l.from, l.to, l.channels, l.message)
	send := base
	send.Kind, send.Send, send.Addr = cmp.Or(l.from, l.kind), true, from.addr
	if s.sender, err = s.start(r, from, label+"-sender", send); err != nil {
		return nil, err
	}
	for i, at := range to {
		receive := base
		receive.Kind, receive.Addr, receive.Links = cmp.Or(l.to, l.kind), at.addr, l.links
		p, err := s.start(r, at, fmt.Sprintf("%s-receiver%d", label, i), receive)
		if err != nil {
			return nil, err
		}
		s.receivers = append(s.receivers, p)
	}
	go s.relay(s.sender, -1)
	for i, p := range s.receivers {
		go s.relay(p, i)
	}
	return s.measure(ctx)
}

func (s *session) start(r *bench.Run, at place, label string, c setup) (*bench.Process, error) {
	p, err := r.Start(at.command, Bench.Name, roleEnd, label)
	if err != nil {
		return nil, err
	}
	if err := p.Send(c); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// relay passes on what a process says: link i of receiver k is link k × links + i of the sender.
func (s *session) relay(p *bench.Process, receiver int) {
	for {
		var m message
		if err := p.Receive(&m); err != nil {
			s.failed <- err
			return
		}
		switch {
		case m.Type == "signal" && receiver >= 0:
			m.Link += receiver * s.load.links
			_ = s.sender.Send(m)
		case m.Type == "signal":
			to := s.receivers[m.Link/s.load.links]
			m.Link %= s.load.links
			_ = to.Send(m)
		case m.Type == "open":
			s.noteOpen()
		case m.Type == "report" && receiver >= 0:
			s.got <- *m.Report
		case m.Type == "report":
			s.sent <- *m.Report
		}
	}
}

func (s *session) noteOpen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.open == 2*s.load.links*len(s.receivers) {
		close(s.opened)
	}
}

func (s *session) measure(ctx context.Context) (*outcome, error) {
	late := time.NewTimer(openPatience)
	defer late.Stop()
	select {
	case <-s.opened:
	case err := <-s.failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, fmt.Errorf("%s: the links did not open within %s", s.load.kind, openPatience)
	}
	for i, p := range append([]*bench.Process{s.sender}, s.receivers...) {
		links := s.load.links
		if i == 0 {
			links *= len(s.receivers)
		}
		for link := range links {
			if err := p.Send(message{Type: "open", Link: link}); err != nil {
				return nil, err
			}
		}
		if err := p.Send(message{Type: "go"}); err != nil {
			return nil, err
		}
	}
	late.Reset(s.load.warm + s.load.run + reportPatience)
	out := &outcome{}
	var cpu float64
	var bytes int64
	out.threads = [2]map[string]float64{{}, {}}
	for range len(s.receivers) + 1 {
		select {
		case r := <-s.sent:
			cpu += r.CPU
			out.sent, out.buffers = r, r.Buffers
			addTo(out.threads[0], r.Threads)
		case r := <-s.got:
			cpu += r.CPU
			out.got = r
			addTo(out.threads[1], r.Threads)
			bytes += r.Bytes
			out.rate += float64(r.Bytes) / r.Seconds
			out.silence = max(out.silence, r.Silence)
		case err := <-s.failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			return nil, fmt.Errorf("%s: an end did not report in time", s.load.kind)
		}
	}
	if bytes > 0 {
		out.cpu = cpu / float64(bytes) * 1e9
		out.wakes = (out.sent.Wakes + out.got.Wakes) / float64(bytes) * mega
		for _, threads := range out.threads {
			for name := range threads {
				threads[name] *= 1e9 / float64(bytes)
			}
		}
	}
	return out, nil
}

func addTo(sum, more map[string]float64) {
	for name, n := range more {
		sum[name] += n
	}
}

func (s *session) stop() {
	for _, p := range append(s.receivers, s.sender) {
		if p != nil {
			_ = p.Stop()
		}
	}
}
