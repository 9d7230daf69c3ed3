package transferbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/procstat"
	"github.com/leeway-video/leeway/internal/sleep"
)

// end is the role of a child process: one end of the measured links.
func end(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var s setup
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("transfer end: setup: %w", err)
	}
	m := &meter{}
	opened := make(chan int, 64)
	stack, err := newStack(host{
		setup:  s,
		signal: func(link int, sig signal) { _ = out.Write(message{Type: "signal", Link: link, Signal: &sig}) },
		open:   func(link int) { opened <- link },
		got:    m.add,
	})
	if err != nil {
		return err
	}
	c := &child{setup: s, out: out, stack: stack, meter: m}
	c.wg.Go(func() { c.announce(ctx, opened) })
	for i := range s.Links {
		if err := stack.begin(i); err != nil {
			return errors.Join(err, stack.close())
		}
	}
	err = bench.Obey(in, func(m message) error { return c.do(ctx, m) })
	err = errors.Join(err, stack.close())
	close(opened)
	c.wg.Wait()
	return err
}

type child struct {
	setup setup
	out   *bench.Writer
	stack stack
	meter *meter
	links []int // that are to be started
	wg    sync.WaitGroup
}

// announce tells of links that are open.
func (c *child) announce(ctx context.Context, opened <-chan int) {
	for {
		select {
		case link, ok := <-opened:
			if !ok {
				return
			}
			_ = c.out.Write(message{Type: "open", Link: link})
		case <-ctx.Done():
			return
		}
	}
}

// do is what the parent says.
func (c *child) do(ctx context.Context, m message) error {
	switch m.Type {
	case "signal":
		if err := c.stack.handle(m.Link, *m.Signal); err != nil {
			return fmt.Errorf("transfer end: link %d: %w", m.Link, err)
		}
	case "open": // the parent repeats what is to be started
		c.links = append(c.links, m.Link)
	case "go":
		c.wg.Go(func() { c.measure(ctx) })
		for _, link := range c.links {
			c.stack.start(link)
		}
	}
	return nil
}

// elsewhere is a stack whose end is in another process, which counts what arrives by itself.
type elsewhere interface {
	// measure returns what arrived between warm-up and end.
	measure(ctx context.Context, warm, run time.Duration) (report, error)
	// spent is what the other process has used until now.
	spent() spent
}

// measure reports what happened between warm-up and end.
func (c *child) measure(ctx context.Context) {
	warm, run := time.Duration(c.setup.WarmMS)*time.Millisecond, time.Duration(c.setup.RunMS)*time.Millisecond
	other, is := c.stack.(elsewhere)
	if is {
		c.wg.Go(func() { c.measureThere(ctx, other, warm, run) })
		return
	}
	if !sleep.For(ctx, warm) {
		return
	}
	before, cpu, bytes := time.Now(), procstat.CPU().Seconds(), c.meter.begin()
	if !sleep.For(ctx, run) {
		return
	}
	total, silence := c.meter.end()
	_ = c.out.Write(message{Type: "report", Report: &report{
		Bytes: total - bytes, Seconds: time.Since(before).Seconds(), CPU: procstat.CPU().Seconds() - cpu,
		Silence: silence.Seconds(), Buffers: c.stack.buffers(),
	}})
}

// measureThere is measure for an end in another process; CPU time is taken beside it, over the same time.
func (c *child) measureThere(ctx context.Context, other elsewhere, warm, run time.Duration) {
	used := make(chan spent, 1)
	c.wg.Go(func() {
		defer close(used)
		if !sleep.For(ctx, warm) {
			return
		}
		before := other.spent()
		if sleep.For(ctx, run) {
			used <- other.spent().since(before)
		}
	})
	r, err := other.measure(ctx, warm, run)
	cost, ok := <-used
	if err != nil || !ok {
		return // the parent does not wait for ever
	}
	r.CPU, r.Wakes, r.Threads = cost.all, cost.wakes, cost.threads
	_ = c.out.Write(message{Type: "report", Report: &r})
}

// meter counts what arrives, and the longest time in which nothing did.
type meter struct {
	bytes atomic.Int64
	last  atomic.Int64 // Unix time of the last arrival, ns; 0 before the first
	quiet atomic.Int64 // ns
}

func (m *meter) add(n int) {
	m.bytes.Add(int64(n))
	m.note(time.Now().UnixNano())
}

func (m *meter) note(now int64) {
	if last := m.last.Swap(now); last != 0 {
		for {
			longest := m.quiet.Load()
			if now-last <= longest || m.quiet.CompareAndSwap(longest, now-last) {
				return
			}
		}
	}
}

func (m *meter) begin() int64 { return m.bytes.Load() }

func (m *meter) end() (int64, time.Duration) {
	if m.last.Load() != 0 {
		m.note(time.Now().UnixNano()) // a silence that lasts
	}
	return m.bytes.Load(), time.Duration(m.quiet.Load())
}
