package probebench

import (
	"context"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// Lines of K7 and K12: one session with buffers that bound it, so that it makes no queue.
const (
	windowRate = 200 * mbit
	// windowBuffer bounds the window to about half of it: 26 Mbit/s at 20 ms, 52 at 10 and 105 at 5.
	windowBuffer = "4096 131072 131072"
)

var windowTrips = []time.Duration{20 * ms, 10 * ms, 5 * ms}

// bounded gives both hosts such receive buffers.
func bounded(s *stage) {
	for _, h := range []*netlab.Host{s.client, s.server} {
		h.Sysctl("net.ipv4.tcp_rmem", windowBuffer)
	}
}

// session has one connection each way.
func session(ctx context.Context, r *bench.Run, s *stage, path netlab.Path) (results, error) {
	if err := s.set(path); err != nil {
		return results{}, err
	}
	return terminal.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: testTime, streams: 1})
}

// largest has a session on each path, and gives for each way the largest error of a figure.
func largest(ctx context.Context, r *bench.Run, s *stage, figure string, paths []netlab.Path, errorOf func(path int, got results, d netstat.Direction) (float64, error)) (map[string]float64, error) {
	values := map[string]float64{}
	for i, path := range paths {
		got, err := session(ctx, r, s, path)
		if err != nil {
			return nil, err
		}
		for _, d := range twoWays {
			v, err := errorOf(i, got, d)
			if err != nil {
				return nil, err
			}
			name := figure + "_" + string(d)
			values[name] = max(values[name], math.Abs(v))
		}
	}
	return values, nil
}

// windows is K12: what the windows of one connection would carry, beside what it has carried.
func windows() bench.Case {
	paths := make([]netlab.Path, len(windowTrips))
	for i, rtt := range windowTrips {
		paths[i] = both(windowRate, rtt)
	}
	return bench.Case{
		Name: "K12", About: "One connection with receive buffers that bound it, at 20, 10 and 5 ms: what its window allows, beside what it has carried; the largest error.",
		Figures: []bench.Figure{
			{Name: "window_error_ratio_down", Goal: "<= 0.1", Reference: thesis("K12: 203 Mbit/s where 204 were", 0.02)},
			{Name: "window_error_ratio_up", Goal: "<= 0.1", Reference: thesis("K12: 220 Mbit/s where 105 were", 1.1)},
		},
		Run: on(paths[0], bounded, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			return largest(ctx, r, s, "window_error_ratio", paths, func(path int, got results, d netstat.Direction) (float64, error) {
				carried, err := got.value(netstat.Throughput, d)
				if err != nil {
					return 0, err
				}
				allowed, err := got.value(netstat.AchievableThroughput, d)
				if err != nil {
					return 0, err
				}
				r.Logf("  %s, %s: %.1f Mbit/s carried, %.1f allowed", windowTrips[path], d, carried/mbit, allowed/mbit)
				return allowed/carried - 1, nil
			})
		}),
	}
}

// thesisJitters are those of its table of TCP's.
var thesisJitters = []time.Duration{0, 10 * ms, 50 * ms}

// jitters is K7: the range of round-trip times of one connection, beside the line's.
func jitters() bench.Case {
	paths := make([]netlab.Path, len(thesisJitters))
	for i, jitter := range thesisJitters {
		paths[i] = both(windowRate, windowTrips[0])
		paths[i].Down.Jitter, paths[i].Down.Reorder = jitter, true // as the thesis's emulator: each packet for itself
	}
	return bench.Case{
		Name: "K7", About: "One connection with buffers that bound it, so that it makes no queue, on 20 ms and packets up to 0, 10 and 50 ms later on the way down: the range of its round-trip times beside that; the largest error. TCP tells smoothed times.",
		Figures: []bench.Figure{
			{Name: "rtt_range_error_seconds_down", Unit: "s", Reference: thesis("K7: 61.2 ms where 50 were", 0.0112)},
			{Name: "rtt_range_error_seconds_up", Unit: "s", Reference: thesis("K7: 59.8 ms where 50 were", 0.0098)},
		},
		Run: on(both(windowRate, windowTrips[0]), bounded, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			return largest(ctx, r, s, "rtt_range_error_seconds", paths, func(path int, got results, d netstat.Direction) (float64, error) {
				v, err := got.value(netstat.RTTRange, d)
				if err != nil {
					return 0, err
				}
				jitter := thesisJitters[path]
				r.Logf("  %s, %s: round-trip times %.1f ms apart", jitter, d, 1000*v)
				return v - jitter.Seconds(), nil
			})
		}),
	}
}
