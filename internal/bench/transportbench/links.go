package transportbench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
)

// links is a flow over links: a sender and its receivers, each in a process of its own inside its host. Link i of the
// sender is the only one of receiver i.
type links struct {
	flow      flow
	tell      teller
	sender    *bench.Process
	receivers []*bench.Process
	failed    chan error
	wg        sync.WaitGroup

	mu     sync.Mutex
	open   int           // guarded by mu: ends of links that are open
	opened chan struct{} // closed when all are
	timers []*time.Timer // guarded by mu
	ending sync.Once
	ended  error // once ending has run
}

func newLinks(ctx context.Context, r *bench.Run, label string, f flow, at site, tell teller) (*links, error) {
	l := &links{flow: f, tell: tell, failed: make(chan error, len(at.far)+1), opened: make(chan struct{})}
	var err error
	if l.sender, err = l.begin(ctx, r, label+"-sender", at.near, true); err != nil {
		return l, err
	}
	for i, h := range at.far {
		p, err := l.begin(ctx, r, fmt.Sprintf("%s-receiver%d", label, i), h, false)
		if err != nil {
			return l, err
		}
		l.receivers = append(l.receivers, p)
	}
	l.wg.Go(func() { l.relay(l.sender, -1) })
	for i, p := range l.receivers {
		l.wg.Go(func() { l.relay(p, i) })
	}
	late := time.NewTimer(ready)
	defer late.Stop()
	select {
	case <-l.opened:
		return l, nil
	case err := <-l.failed:
		return l, err
	case <-ctx.Done():
		return l, ctx.Err()
	case <-late.C:
		return l, fmt.Errorf("the links did not open within %s", ready)
	}
}

// begin starts one end inside a host.
func (l *links) begin(ctx context.Context, r *bench.Run, label string, h *netlab.Host, send bool) (*bench.Process, error) {
	inside := func(name string, arg ...string) (*exec.Cmd, func() error) {
		c := h.Command(ctx, name, arg...)
		return c.Cmd, c.Start
	}
	child, err := r.Start(inside, Bench.Name, roleEnd, label)
	if err != nil {
		return nil, err
	}
	if err := child.Send(setup{Kind: l.flow.kind, Send: send, Addr: h.Addr().String()}); err != nil {
		return nil, errors.Join(err, child.Stop())
	}
	return child, nil
}

// relay passes on what an end says, until it ends; the sender is receiver -1.
func (l *links) relay(from *bench.Process, receiver int) {
	for {
		var m message
		if err := from.Receive(&m); err != nil {
			l.failed <- err
			return
		}
		switch {
		case m.Type == saySignal && receiver >= 0:
			m.Link = receiver
			_ = l.sender.Send(m)
		case m.Type == saySignal:
			to := l.receivers[m.Link]
			m.Link = 0
			_ = to.Send(m)
		case m.Type == sayOpen:
			l.mu.Lock()
			if l.open++; l.open == 2*len(l.receivers) {
				close(l.opened)
			}
			l.mu.Unlock()
		case m.Type == sayState:
			l.tell.state(*m.State)
		case m.Type == sayTook:
			l.tell.burst(*m.Took)
		}
	}
}

func (l *links) start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.flow.bursts {
		l.timers = append(l.timers, time.AfterFunc(b.at-l.flow.from, func() {
			_ = l.receivers[0].Send(message{Type: sayBurst, Bytes: b.bytes})
		}))
	}
	if l.flow.kind == idle {
		return nil
	}
	return l.sender.Send(message{Type: sayStart})
}

// stop does not wait: what a process still has to say goodbye to is on the line.
func (l *links) stop() error {
	go func() { _ = l.close() }()
	return nil
}

// close ends the processes, the sender first.
func (l *links) close() error {
	l.ending.Do(func() {
		l.mu.Lock()
		for _, t := range l.timers {
			t.Stop()
		}
		l.mu.Unlock()
		for _, child := range append([]*bench.Process{l.sender}, l.receivers...) {
			if child != nil {
				l.ended = errors.Join(l.ended, child.Stop())
			}
		}
		l.wg.Wait()
	})
	return l.ended
}
