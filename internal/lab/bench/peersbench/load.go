package peersbench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/sleep"
)

// connections are how many the client fetches over at a time, each file after file.
var connections = []int{1, 5, 10, 20, 50}

const (
	loadWarm = 2 * time.Second
	loadRun  = 8 * time.Second
)

// loading is the case of one pair and rate.
func loading(k kinds, rate int) bench.Case {
	c := bench.Case{
		Name:  fmt.Sprintf("H4/%s-%dmbit", k.name, rate),
		About: fmt.Sprintf("%s: processor time of the client that fetches files of 1 MB in a loop over 1 to 50 connections through %d Mbit/s.", k.about, rate),
		Needs: k.needs(), Extra: true,
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			return loads(ctx, r, k, int64(rate)*mega)
		},
	}
	first, last := connections[0], connections[len(connections)-1]
	side, what := "C", "Chrome 39 on a telephone"
	if k.clientFirefox {
		side, what = "F", "Firefox 33 on a telephone"
	}
	for _, n := range connections {
		c.Figures = append(c.Figures, bench.Figure{Name: fmt.Sprintf("cpu_%d", n), Unit: "%", Reference: papers["H4"].number(fmt.Sprintf("%s-%d", side, rate), fmt.Sprint(n), what)},
			bench.Figure{Name: fmt.Sprintf("line_%d", n)}, bench.Figure{Name: fmt.Sprintf("cpu_per_gb_%d", n), Unit: "s/GB"})
	}
	c.Figures = append(c.Figures, bench.Figure{Name: fmt.Sprintf("cpu_%d_vs_%d", last, first)}, bench.Figure{Name: "cpu_each_more", Unit: "%"})
	return c
}

// load is what a client cost while it fetched.
type load struct {
	cpu  float64 // of one processor
	line float64 // of the line's rate
	gb   float64 // seconds of processor time for 10⁹ bytes on the wire
}

// loadOf is a load from seconds of processor time, bytes of the bottleneck, and the time that both took.
func loadOf(cpu, bytes float64, rate int64, took time.Duration) load {
	return load{cpu / took.Seconds(), bytes * 8 / float64(rate) / took.Seconds(), cpu / bytes * 1e9}
}

// loads measures all numbers of connections once.
func loads(ctx context.Context, r *bench.Run, k kinds, rate int64) (sample bench.Sample, err error) {
	narrow := wlan
	narrow.path.Down = netlab.Link{Rate: rate, Delay: wlan.path.Down.Delay, Queue: slots}
	s, err := build(uint64(r.Number)+1, wide, narrow, pc)
	if err != nil {
		return sample, err
	}
	defer s.lab.Close()
	sample.Values = map[string]float64{}
	var xs, ys []float64
	for _, n := range connections {
		l, void, err := s.load(ctx, r, k, n, rate)
		if err != nil {
			return sample, fmt.Errorf("%d connections: %w", n, err)
		}
		if void != "" {
			sample.Void = void
		}
		r.Logf("  %d connections: %.1f %% of a processor, %.3f of the line, %.1f s/GB", n, 100*l.cpu, l.line, l.gb)
		maps.Copy(sample.Values, map[string]float64{
			fmt.Sprintf("cpu_%d", n): 100 * l.cpu, fmt.Sprintf("line_%d", n): l.line, fmt.Sprintf("cpu_per_gb_%d", n): l.gb,
		})
		xs, ys = append(xs, float64(n)), append(ys, 100*l.cpu)
	}
	last := len(ys) - 1
	sample.Values[fmt.Sprintf("cpu_%d_vs_%d", connections[last], connections[0])] = ys[last] / ys[0]
	sample.Values["cpu_each_more"] = slope(xs, ys)
	return sample, nil
}

// slope is that of the line with the least squares of distances.
func slope(xs, ys []float64) float64 {
	x, _ := spread(xs)
	y, _ := spread(ys)
	var both, square float64
	for i := range xs {
		both += (xs[i] - x) * (ys[i] - y)
		square += (xs[i] - x) * (xs[i] - x)
	}
	return both / square
}

// load measures one number of connections to one server.
func (s *stage) load(ctx context.Context, r *bench.Run, k kinds, n int, rate int64) (out load, void string, err error) {
	listener, err := s.listen(ctx)
	if err != nil {
		return out, "", err
	}
	places := s.places(ctx)
	ends, err := openSession(ctx, r, k, k.plan(), listener, places[0], places[1])
	if err != nil {
		return out, "", err
	}
	defer ends.close()
	j := job{Bytes: math.MaxInt32 / largestItem * largestItem, Item: largestItem, Ahead: 1} // more than any run gets
	for link := range n {
		if _, err := ends.link(ctx, link, 1, func(int) int { return 1 }); err != nil {
			return out, "", err
		}
		j.Lanes = append(j.Lanes, lane{Link: link})
	}
	if err := ends.ends[client].Send(message{Type: "job", Job: &j}); err != nil {
		return out, "", err
	}
	if !sleep.For(ctx, loadWarm) {
		return out, "", ctx.Err()
	}
	if err := s.lab.Mark(); err != nil {
		return out, "", err
	}
	before, bytes, at := used(ends.ends[client].PID()), s.lines[0].Down, time.Now()
	from, err := bytes.Counters()
	if err != nil {
		return out, "", err
	}
	if err := ends.await(ctx, loadRun, 1, "", func(e event) bool { return e.Type == "done" }); err == nil {
		return out, "", fmt.Errorf("a loop of %d bytes came to its end", j.Bytes)
	} else if !errors.Is(err, errLate) {
		return out, "", err
	}
	to, err := bytes.Counters()
	if err != nil {
		return out, "", err
	}
	out = loadOf(used(ends.ends[client].PID())-before, float64(to.SentBytes-from.SentBytes), rate, time.Since(at))
	void, err = s.lab.Void()
	return out, void, err
}

// used is the processor time of a process and what it started, seconds.
func used(root int) float64 {
	sum := 0.0
	for _, pid := range proc.Family(root) {
		if seconds, err := proc.CPU(pid); err == nil { // another has ended just now
			sum += seconds
		}
	}
	return sum
}
