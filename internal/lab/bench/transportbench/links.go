package transportbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// links is a flow over links: a sender and its receivers, or a receiver and its senders, each in a process of its own
// inside its host. Link i of the one is the only one of the i-th of the others.
type links struct {
	flow      flow
	tell      teller
	senders   []*bench.Process
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
	l := &links{flow: f, tell: tell, failed: make(chan error, len(at.near)+len(at.far)), opened: make(chan struct{})}
	for i, h := range at.near {
		p, err := l.begin(ctx, r, fmt.Sprintf("%s-sender%d", label, i), h, setup{Send: true, Page: f.near})
		if err != nil {
			return l, err
		}
		l.senders = append(l.senders, p)
	}
	for i, h := range at.far {
		p, err := l.begin(ctx, r, fmt.Sprintf("%s-receiver%d", label, i), h, setup{Links: len(at.near), Page: f.far})
		if err != nil {
			return l, err
		}
		l.receivers = append(l.receivers, p)
	}
	for i, p := range l.senders {
		l.wg.Go(func() { l.relay(p, i, len(l.senders), l.receivers) })
	}
	for i, p := range l.receivers {
		l.wg.Go(func() { l.relay(p, i, len(l.receivers), l.senders) })
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
func (l *links) begin(ctx context.Context, r *bench.Run, label string, h *netlab.Host, s setup) (*bench.Process, error) {
	inside := func(name string, arg ...string) (*exec.Cmd, func() error) {
		c := h.Command(ctx, name, arg...)
		return c.Cmd, c.Start
	}
	child, err := r.Start(inside, Bench.Name, roleEnd, label)
	if err != nil {
		return nil, err
	}
	s.Kind, s.Addr, s.Paced = l.flow.kind, h.Addr().String(), l.flow.near != noPage
	if err := child.Send(s); err != nil {
		return nil, errors.Join(err, child.Stop())
	}
	return child, nil
}

// relay passes on what an end says, until it ends: it is number i of so many on its side.
func (l *links) relay(from *bench.Process, i, of int, to []*bench.Process) {
	for {
		var m message
		if err := from.Receive(&m); err != nil {
			l.failed <- err
			return
		}
		switch {
		case m.Type == saySignal:
			link := m.Link
			if of > 1 {
				link = i
			}
			other := to[0]
			m.Link = link
			if len(to) > 1 {
				other, m.Link = to[link], 0
			}
			_ = other.Send(m)
		case m.Type == sayOpen:
			l.mu.Lock()
			if l.open++; l.open == 2*max(len(l.receivers), len(l.senders)) {
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
	var err error
	for _, p := range l.beginners() {
		err = errors.Join(err, p.Send(message{Type: sayStart}))
	}
	return err
}

// beginners are the ends that are told to start.
func (l *links) beginners() []*bench.Process {
	switch l.flow.kind {
	case idle:
		return nil
	case asked:
		return l.receivers
	}
	return l.senders
}

// ticks are the kernel's units of processor time, a second of it.
const ticks = 100

// cpu reads what the processes have used, user and system (proc(5): fields 14 and 15, counted behind the name).
func (l *links) cpu() float64 {
	sum := 0
	for _, p := range append(slices.Clone(l.senders), l.receivers...) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(after)
		for _, i := range []int{11, 12} {
			if i < len(fields) {
				n, _ := strconv.Atoi(fields[i]) // 0 for what is no number
				sum += n
			}
		}
	}
	return float64(sum) / ticks
}

// stop does not wait: what a process still has to say goodbye to is on the line.
func (l *links) stop() error {
	go func() { _ = l.close() }()
	return nil
}

// close ends the processes, senders first.
func (l *links) close() error {
	l.ending.Do(func() {
		l.mu.Lock()
		for _, t := range l.timers {
			t.Stop()
		}
		l.mu.Unlock()
		for _, child := range append(slices.Clone(l.senders), l.receivers...) {
			l.ended = errors.Join(l.ended, child.Stop())
		}
		l.wg.Wait()
	})
	return l.ended
}
