package probebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/sleep"
)

// fast is the rate of K1's line: more is not certified on two processors with a browser beside.
const fast = 100 * mbit

// beside is K1: throughput beside that of iperf3 on the same line, in the same run.
func beside(c checker, rtt time.Duration) bench.Case {
	return bench.Case{
		Name:  fmt.Sprintf("K1/%dms-%s", rtt.Milliseconds(), c.name),
		About: fmt.Sprintf("Throughput on %d Mbit/s and %d ms, divided by iperf3's on the same line in the same run.", fast/mbit, rtt.Milliseconds()),
		Needs: func(ctx context.Context) error {
			if c.needs != nil {
				return errors.Join(lacks("iperf3"), c.needs(ctx))
			}
			return lacks("iperf3")
		},
		Figures: []bench.Figure{
			{Name: "iperf3_ratio_down", Goal: ">= 0.9"}, {Name: "iperf3_ratio_up", Goal: ">= 0.9"},
			{Name: "throughput_down", Unit: "bit/s"}, {Name: "throughput_up", Unit: "bit/s"},
		},
		Run: on(both(fast, rtt), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: testTime})
			if err != nil {
				return nil, err
			}
			values := map[string]float64{}
			for _, d := range twoWays {
				v, err := got.value(netstat.Throughput, d)
				if err != nil {
					return nil, err
				}
				theirs, err := s.iperf(ctx, d)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: %.1f Mbit/s, iperf3 %.1f", d, v/mbit, theirs/mbit)
				values["throughput_"+string(d)], values["iperf3_ratio_"+string(d)] = v, v/theirs
			}
			return values, nil
		}),
	}
}

// iperfOmit is the start that iperf3 leaves out, as a check does.
const iperfOmit = 1

// errNothing is an iperf3 that ends without an error and has carried nothing.
var errNothing = errors.New("iperf3 has carried nothing")

// iperf is what iperf3 carries from or to the server's host, bit/s, with one connection. One that has carried nothing runs once more: it
// has done that on an idle machine.
func (s *stage) iperf(ctx context.Context, d netstat.Direction) (float64, error) {
	rate, err := s.iperfOnce(ctx, d)
	if errors.Is(err, errNothing) {
		return s.iperfOnce(ctx, d)
	}
	return rate, err
}

func (s *stage) iperfOnce(ctx context.Context, d netstat.Direction) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, testTime+patience)
	defer cancel()
	listening := s.server.Command(ctx, "iperf3", "--server", "--one-off")
	var said bytes.Buffer
	listening.Stdout, listening.Stderr = &said, &said
	if err := listening.Start(); err != nil {
		return 0, fmt.Errorf("start iperf3: %w", err)
	}
	args := []string{"--json", "--time", fmt.Sprint(int(testTime.Seconds())), "--omit", fmt.Sprint(iperfOmit), "--client", s.server.Addr().String()}
	if d == netstat.Down {
		args = append(args, "--reverse")
	}
	var out []byte
	var err error
	for range 20 { // until the server listens
		if out, err = s.client.Command(ctx, "iperf3", args...).Output(); err == nil || !sleep.For(ctx, 100*time.Millisecond) {
			break
		}
	}
	cancel() // it does not always end by itself after a test
	ended := listening.Wait()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("iperf3: %w: %s%s", err, out, said.Bytes()), ended)
	}
	var report struct {
		Error string `json:"error"`
		End   struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return 0, fmt.Errorf("iperf3: %w", err)
	}
	if report.End.Received.Rate <= 0 {
		return 0, fmt.Errorf("%w: %s", errNothing, report.Error)
	}
	return report.End.Received.Rate, nil
}
