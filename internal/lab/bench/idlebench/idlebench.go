// Package idlebench is `leeway-lab bench idle`: what a link costs that does nothing, in memory, goroutines and packets, on
// both of its sides. A seed or a viewer with many peers has mostly such links.
package idlebench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/sleep"
)

const benchName = "idle"

// The two sides of a link.
const (
	offerer  = "offerer"
	answerer = "answerer"
)

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "Memory, goroutines and traffic of links that do nothing, both sides in processes of their own.",
	Roles: map[string]bench.Role{offerer: role(true), answerer: role(false)},
	Cases: []bench.Case{links(1), links(10), links(100), links(1000)},
}

const (
	first    = time.Second      // after the first link has opened: it lets its ICE agent go
	settle   = 10 * time.Second // after the last link has opened: the checks of set-up have ended
	period   = 30 * time.Second // several keepalives long
	patience = time.Minute
	// together is how many links are set up at a time.
	together = 20
	// headers of IPv4 and UDP, bytes a packet.
	headers = 28
)

// links is the case of n links. Goals are stated where a link's share of the process is not lost in its noise.
func links(n int) bench.Case {
	goal := func(s string) string {
		if n < 100 {
			return ""
		}
		return s
	}
	return bench.Case{
		Name:  fmt.Sprintf("links/%d", n),
		About: fmt.Sprintf("%d idle links between two processes; figures are of the side that needs more.", n),
		Figures: []bench.Figure{
			{Name: "rss_bytes_per_link", Unit: "B", Goal: goal("<= 100000")},
			{Name: "rss_bytes_per_link_offerer", Unit: "B"},
			{Name: "rss_bytes_per_link_answerer", Unit: "B"},
			{Name: "goroutines_per_link", Goal: "<= 10"},
			{Name: "goroutines_per_link_offerer"},
			{Name: "goroutines_per_link_answerer"},
			{Name: "packets_per_second_per_link"},
			{Name: "bits_per_second_per_link", Unit: "bit/s", Goal: "<= 1000"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return run(ctx, r, n) },
	}
}

func run(ctx context.Context, r *bench.Run, n int) (bench.Sample, error) {
	p := &pair{ready: make(chan int, 2*n), usages: map[string]chan usage{}, failed: make(chan error, 2)}
	defer p.stop()
	if err := p.start(r); err != nil {
		return bench.Sample{}, err
	}
	// One link more than is counted: what a first one brings to a process is not the cost of a link.
	if err := p.open(ctx, 0, 1); err != nil {
		return bench.Sample{}, err
	}
	if !sleep.For(ctx, first) {
		return bench.Sample{}, ctx.Err()
	}
	before, err := p.usage(ctx)
	if err != nil {
		return bench.Sample{}, err
	}
	for at := 1; at <= n; at += together {
		if err := p.open(ctx, at, min(at+together, n+1)); err != nil {
			return bench.Sample{}, err
		}
	}
	r.Logf("  %d links are open", n)
	if !sleep.For(ctx, settle) {
		return bench.Sample{}, ctx.Err()
	}
	begin, err := p.usage(ctx)
	if err != nil {
		return bench.Sample{}, err
	}
	if !sleep.For(ctx, period) {
		return bench.Sample{}, ctx.Err()
	}
	end, err := p.usage(ctx)
	if err != nil {
		return bench.Sample{}, err
	}
	return bench.Sample{Values: figures(before, begin, end, n)}, nil
}

// figures makes costs a link of usages before the links, with them, and a period later.
func figures(before, begin, end map[string]usage, n int) map[string]float64 {
	v := map[string]float64{}
	most := func(name string, x float64) { v[name] = max(v[name], x) }
	for _, side := range []string{offerer, answerer} {
		rss := float64(end[side].RSS-before[side].RSS) / float64(n)
		goroutines := float64(end[side].Goroutines-before[side].Goroutines) / float64(n)
		v["rss_bytes_per_link_"+side], v["goroutines_per_link_"+side] = rss, goroutines
		most("rss_bytes_per_link", rss)
		most("goroutines_per_link", goroutines)
		for _, dir := range []func(rtclink.Traffic) (packets, bytes int64){
			func(t rtclink.Traffic) (int64, int64) { return t.SentPackets, t.SentBytes },
			func(t rtclink.Traffic) (int64, int64) { return t.ReceivedPackets, t.ReceivedBytes },
		} {
			p0, b0 := dir(begin[side].Traffic)
			p1, b1 := dir(end[side].Traffic)
			perLink := period.Seconds() * float64(n+1)
			most("packets_per_second_per_link", float64(p1-p0)/perLink)
			most("bits_per_second_per_link", float64(b1-b0+headers*(p1-p0))*8/perLink)
		}
	}
	return v
}

// pair is the two processes.
type pair struct {
	sides  [2]*bench.Process // offerer, answerer
	ready  chan int
	usages map[string]chan usage
	failed chan error
}

func (p *pair) start(r *bench.Run) error {
	for i, name := range []string{offerer, answerer} {
		var err error
		if p.sides[i], err = r.Start(nil, benchName, name, name); err != nil {
			return err
		}
		p.usages[name] = make(chan usage, 1)
	}
	go p.relay(0)
	go p.relay(1)
	return nil
}

func (p *pair) relay(i int) {
	for {
		var m message
		if err := p.sides[i].Receive(&m); err != nil {
			p.failed <- err
			return
		}
		switch m.Type {
		case "signal":
			_ = p.sides[1-i].Send(m)
		case "ready":
			p.ready <- m.Link
		case "closed":
			p.failed <- fmt.Errorf("%s: link %d closed", p.sides[i].Name(), m.Link)
		case "usage":
			p.usages[p.sides[i].Name()] <- *m.Usage
		}
	}
}

// open sets up links from up to to and waits until both sides have them.
func (p *pair) open(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		if err := p.sides[0].Send(message{Type: "begin", Link: i}); err != nil {
			return err
		}
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for range 2 * (to - from) {
		select {
		case <-p.ready:
		case err := <-p.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return errors.New("the links did not open in time")
		}
	}
	return nil
}

func (p *pair) usage(ctx context.Context) (map[string]usage, error) {
	out := map[string]usage{}
	for _, side := range p.sides {
		if err := side.Send(message{Type: "usage"}); err != nil {
			return nil, err
		}
		select {
		case out[side.Name()] = <-p.usages[side.Name()]:
		case err := <-p.failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(patience):
			return nil, fmt.Errorf("%s does not answer", side.Name())
		}
	}
	return out, nil
}

func (p *pair) stop() {
	for _, side := range p.sides {
		if side != nil {
			_ = side.Stop()
		}
	}
}
