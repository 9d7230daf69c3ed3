package probebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/sleep"
)

// settle is how long a neighbor's flow runs before its rate is taken.
const settle = 5 * time.Second

// waysOf are the phases of the directions.
var waysOf = map[netstat.Direction]netcheck.Phase{netstat.Down: netcheck.Download, netstat.Up: netcheck.Upload}

// givesWay is the check that gives way: on a line that is its own, and beside one flow of a neighbor.
func givesWay(c checker, rate int64, rtt time.Duration) bench.Case {
	name := fmt.Sprintf("gives-way/%dm-%dms", rate/mbit, rtt.Milliseconds())
	if c.name != terminal.name {
		name += "-" + c.name
	}
	return bench.Case{
		Name: name,
		About: fmt.Sprintf("The check that gives way on %d Mbit/s and %d ms: the larger error of both ways on an empty line, and what a neighbor's one TCP flow keeps of its rate beside it, the less of both ways.",
			rate/mbit, rtt.Milliseconds()),
		Needs: c.needs,
		Figures: []bench.Figure{
			{Name: "capacity_error_ratio", Goal: "<= 0.1"}, {Name: "foreground_kept_ratio", Goal: ">= 0.97"},
			{Name: "free_capacity_down", Unit: "bit/s"}, {Name: "free_capacity_up", Unit: "bit/s"},
			{Name: "foreground_kept_ratio_down"}, {Name: "foreground_kept_ratio_up"},
		},
		Run: within(shared(both(rate, rtt)), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			values := map[string]float64{"foreground_kept_ratio": math.Inf(1)}
			got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime, givesWay: true})
			if err != nil {
				return nil, err
			}
			for _, d := range twoWays {
				v, err := got.value(netstat.FreeCapacity, d)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: %.2f of %d Mbit/s on the empty line", d, v/mbit, rate/mbit)
				values["free_capacity_"+string(d)] = v
				values["capacity_error_ratio"] = max(values["capacity_error_ratio"], math.Abs(v/float64(rate)-1))
			}
			for _, d := range twoWays {
				kept, err := keeps(ctx, r, s, c, d)
				if err != nil {
					return nil, err
				}
				values["foreground_kept_ratio_"+string(d)] = kept
				values["foreground_kept_ratio"] = min(values["foreground_kept_ratio"], kept)
			}
			return values, nil
		}),
	}
}

// keeps is what a neighbor's flow has beside the check, from the beginning of its phase on, by what it has alone just before.
func keeps(ctx context.Context, r *bench.Run, s *stage, c checker, d netstat.Direction) (float64, error) {
	f, err := s.flow(ctx, d)
	if err != nil {
		return 0, err
	}
	defer f.stop()
	if !sleep.For(ctx, settle) {
		return 0, ctx.Err()
	}
	alone, ok := f.rate(ctx, longTime)
	if !ok {
		return 0, ctx.Err()
	}
	rates := make(chan float64, 1)
	got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{waysOf[d]}, duration: longTime, givesWay: true, begins: func(p netcheck.Phase) {
		if p == waysOf[d] {
			go func() {
				v, _ := f.rate(ctx, longTime)
				rates <- v
			}()
		}
	}})
	if err != nil {
		return 0, err
	}
	beside := <-rates
	free, err := got.value(netstat.FreeCapacity, d)
	if err != nil {
		return 0, err
	}
	r.Logf("  %s: the flow has %.2f Mbit/s alone and %.2f beside the check, which found %.2f free", d, alone/mbit, beside/mbit, free/mbit)
	if alone <= 0 {
		return 0, errors.New("the flow has carried nothing")
	}
	return beside / alone, nil
}

// flow is a TCP connection of the neighbor that is never without data.
type flow struct {
	came atomic.Int64 // bytes
	stop func()
}

// flow begins one, from or to the server's side.
func (s *stage) flow(ctx context.Context, d netstat.Direction) (*flow, error) {
	from, to := s.distant, s.neighbor
	if d == netstat.Up {
		from, to = to, from
	}
	l, err := to.Listen(ctx, "tcp", net.JoinHostPort(to.Addr().String(), "0"))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	out, err := from.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	in, err := l.Accept()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	f := &flow{}
	var work sync.WaitGroup
	work.Go(func() {
		for b := make([]byte, 64<<10); ; {
			if _, err := out.Write(b); err != nil {
				return
			}
		}
	})
	work.Go(func() { _, _ = io.Copy(f, in) })
	f.stop = func() {
		_, _ = in.Close(), out.Close()
		work.Wait()
	}
	return f, nil
}

// Write implements io.Writer.
func (f *flow) Write(b []byte) (int, error) {
	f.came.Add(int64(len(b)))
	return len(b), nil
}

// rate is what comes in a time, bit/s; false: ctx has ended.
func (f *flow) rate(ctx context.Context, length time.Duration) (float64, bool) {
	began, before := time.Now(), f.came.Load()
	if !sleep.For(ctx, length) {
		return 0, false
	}
	return 8 * float64(f.came.Load()-before) / time.Since(began).Seconds(), true
}

// sharedLines are those of the check that gives way.
func sharedLines() (list []bench.Case) {
	for _, rate := range []int64{5 * mbit, 20 * mbit, 50 * mbit, 100 * mbit} {
		for _, rtt := range []time.Duration{10 * ms, 50 * ms} {
			c := givesWay(terminal, rate, rtt)
			c.Extra = rate != 20*mbit || rtt != 50*ms // more than a minute each
			list = append(list, c)
		}
	}
	return list
}
