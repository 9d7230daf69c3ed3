package probebench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/sleep"
)

// thesisTrips are the round trips of its table of baselines.
var thesisTrips = []time.Duration{8 * ms, 10 * ms, 11 * ms, 20 * ms, 21 * ms, 100 * ms, 102 * ms}

// baselines is K5: the smallest round trip that TCP has seen.
func baselines(c checker) bench.Case {
	return bench.Case{
		Name:  "K5/" + c.name,
		About: "Round trips of 8 to 102 ms on a line of 50 Mbit/s; the largest error of a download's baseline.",
		Needs: c.needs,
		Figures: []bench.Figure{
			{Name: "baseline_rtt_error_seconds", Unit: "s", Goal: "<= 0.0005", Reference: thesis("K5: 104.4 ms where 102 were", 0.0024)},
		},
		Run: on(both(50*mbit, thesisTrips[0]), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			worst := 0.0
			for _, rtt := range thesisTrips {
				if err := s.set(both(50*mbit, rtt)); err != nil {
					return nil, err
				}
				got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download}, duration: netcheck.MinDuration})
				if err != nil {
					return nil, err
				}
				v, err := got.value(netstat.BaselineRTT, netstat.Down)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: %.2f ms", rtt, 1000*v)
				worst = max(worst, math.Abs(v-rtt.Seconds()))
			}
			return map[string]float64{"baseline_rtt_error_seconds": worst}, nil
		}),
	}
}

// set gives the line other properties.
func (s *stage) set(path netlab.Path) error {
	return errors.Join(s.line.Down.Set(path.Down), s.line.Up.Set(path.Up))
}

// loaded is K6: the mean round trip under load, beside packets that are sent there and back meanwhile.
func loaded(c checker) bench.Case {
	const rate, rtt = 20 * mbit, 20 * ms
	return bench.Case{
		Name:  "K6/" + c.name,
		About: "Round trips under load on 20 Mbit/s and 20 ms, beside those of packets that are sent there and back meanwhile.",
		Needs: c.needs,
		Figures: []bench.Figure{
			{Name: "loaded_rtt_error_ratio_down", Goal: "<= 0.05", Reference: thesis("K6: 22.1 ms where 20 were", 0.105)},
			{Name: "loaded_rtt_error_ratio_up", Goal: "<= 0.05", Reference: thesis("K6: 21.3 ms where 20 were", 0.065)},
			{Name: "loaded_rtt_down", Unit: "s"}, {Name: "loaded_rtt_up", Unit: "s"},
		},
		Run: on(both(rate, rtt), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			trips, stop, err := s.ping(ctx)
			if err != nil {
				return nil, err
			}
			began := map[netcheck.Phase]time.Time{}
			got, err := c.run(ctx, r, s, plan{
				phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime,
				begins: func(p netcheck.Phase) { began[p] = time.Now() },
			})
			stop()
			if err != nil {
				return nil, err
			}
			values := map[string]float64{}
			for phase, d := range map[netcheck.Phase]netstat.Direction{netcheck.Download: netstat.Down, netcheck.Upload: netstat.Up} {
				v, err := got.value(netstat.LoadedRTT, d)
				if err != nil {
					return nil, err
				}
				true, err := trips.mean(began[phase].Add(longTime/rampUpShare), began[phase].Add(longTime))
				if err != nil {
					return nil, fmt.Errorf("%s: %w", phase, err)
				}
				r.Logf("  %s: %.1f ms, %.1f by packets there and back", phase, 1000*v, 1000*true)
				values["loaded_rtt_"+string(d)] = v
				values["loaded_rtt_error_ratio_"+string(d)] = math.Abs(v/true - 1)
			}
			return values, nil
		}),
	}
}

// Packets there and back are as large as TCP's: a small one is on the line for a shorter time.
const (
	pingEvery = 50 * ms
	pingSize  = 1472 // bytes of payload
)

// trip is one packet's.
type trip struct {
	sent time.Time
	took time.Duration
}

// trips are those of packets that came back.
type trips struct {
	mu  sync.Mutex
	all []trip // guarded by mu
}

// mean is that of packets sent in a time, seconds.
func (t *trips) mean(from, to time.Time) (float64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum, n := time.Duration(0), 0
	for _, p := range t.all {
		if p.sent.After(from) && p.sent.Before(to) {
			sum += p.took
			n++
		}
	}
	if n == 0 {
		return 0, errors.New("no packet came back")
	}
	return sum.Seconds() / float64(n), nil
}

// ping sends packets to the server's host and back until it is stopped.
func (s *stage) ping(ctx context.Context) (*trips, func(), error) {
	there, err := s.server.ListenUDP()
	if err != nil {
		return nil, nil, err
	}
	here, err := s.client.ListenUDP()
	if err != nil {
		return nil, nil, errors.Join(err, there.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	t, began := &trips{}, time.Now()
	var work sync.WaitGroup
	work.Go(func() { mirror(there) })
	work.Go(func() { t.hear(here, began) })
	work.Go(func() {
		for sleep.For(ctx, pingEvery) {
			b := make([]byte, pingSize)
			binary.BigEndian.PutUint64(b, uint64(time.Since(began)))
			_, _ = here.WriteTo(b, there.LocalAddr()) // one that is lost has no trip
		}
	})
	return t, func() {
		cancel()
		_, _ = here.Close(), there.Close()
		work.Wait()
	}, nil
}

// mirror sends back what comes, until the socket is closed.
func mirror(conn *net.UDPConn) {
	b := make([]byte, 2*pingSize)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		_, _ = conn.WriteToUDPAddrPort(b[:n], from)
	}
}

func (t *trips) hear(conn *net.UDPConn, began time.Time) {
	b := make([]byte, 2*pingSize)
	for {
		n, _, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		if n != pingSize {
			continue
		}
		sent := time.Duration(binary.BigEndian.Uint64(b))
		t.mu.Lock()
		t.all = append(t.all, trip{began.Add(sent), time.Since(began) - sent})
		t.mu.Unlock()
	}
}
