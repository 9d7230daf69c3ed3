package probebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// flows make the load of both clients.
const flows = 4

// machRounds is how often both clients measure in turn: a figure of the other one differs by several percent from its next.
const machRounds = 3

func machMissing(ctx context.Context) error {
	_, err := machProgram(ctx)
	return err
}

// responsiveness is the figures of draft-ietf-ippm-responsiveness: that of requests on the load beside another implementation's, in turn
// with it, and that of round-trip times beside packets.
func responsiveness(rate int64, rtt time.Duration) bench.Case {
	return bench.Case{
		Name: fmt.Sprintf("rpm/%dm-%dms", rate/mbit, rtt.Milliseconds()),
		About: fmt.Sprintf("Responsiveness on %d Mbit/s and %d ms, TLS: with requests on the load, the mean of %d tests beside that of as many of mach (Cloudflare) in turn; with round-trip times, beside packets that are sent there and back meanwhile. The larger error of both ways.",
			rate/mbit, rtt.Milliseconds(), machRounds),
		Extra: true,
		Needs: machMissing,
		Figures: []bench.Figure{
			{Name: "rpm_error_ratio", Goal: "<= 0.05"}, {Name: "rpm_packets_error_ratio"},
			{Name: "rpm_down", Unit: "1/min"}, {Name: "rpm_up", Unit: "1/min"}, {Name: "mach_rpm_down", Unit: "1/min"}, {Name: "mach_rpm_up", Unit: "1/min"},
			{Name: "line_rpm_down", Unit: "1/min"}, {Name: "line_rpm_up", Unit: "1/min"},
		},
		Run: on(both(rate, rtt), func(s *stage) { s.secure = true }, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			values := map[string]float64{}
			for range machRounds {
				theirs, err := s.mach(ctx)
				if err != nil {
					return nil, err
				}
				got, err := terminal.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Responsiveness}, duration: longTime, streams: flows})
				if err != nil {
					return nil, err
				}
				for _, d := range twoWays {
					v, err := got.value(netstat.RequestResponsiveness, d)
					if err != nil {
						return nil, err
					}
					r.Logf("  %s: %.0f round trips a minute; mach %.0f, and %.0f ms for a request on its load", d, v, theirs[d].RPM, theirs[d].Latency)
					values["rpm_"+string(d)] += v / machRounds
					values["mach_rpm_"+string(d)] += theirs[d].RPM / machRounds
				}
			}
			for _, d := range twoWays {
				values["rpm_error_ratio"] = max(values["rpm_error_ratio"], math.Abs(values["rpm_"+string(d)]/values["mach_rpm_"+string(d)]-1))
			}
			return values, s.besidePackets(ctx, r, values)
		}),
	}
}

// besidePackets compares the figure of round-trip times with packets.
func (s *stage) besidePackets(ctx context.Context, r *bench.Run, values map[string]float64) error {
	trips, stop, err := s.ping(ctx)
	if err != nil {
		return err
	}
	began := map[netcheck.Phase]time.Time{}
	got, err := terminal.run(ctx, r, s, plan{
		phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime, streams: flows,
		begins: func(p netcheck.Phase) { began[p] = time.Now() },
	})
	stop()
	if err != nil {
		return err
	}
	for _, d := range twoWays {
		v, err := got.value(netstat.Responsiveness, d)
		if err != nil {
			return err
		}
		from := began[waysOf[d]]
		trip, err := trips.mean(from.Add(longTime/rampUpShare), from.Add(longTime))
		if err != nil {
			return err
		}
		r.Logf("  %s: %.0f round trips a minute by round-trip times, packets there and back %.0f", d, v, 60/trip)
		values["line_rpm_"+string(d)] = v
		values["rpm_packets_error_ratio"] = max(values["rpm_packets_error_ratio"], math.Abs(v*trip/60-1))
	}
	return nil
}

// machFound is one way of what mach finds.
type machFound struct {
	RPM     float64 `json:"rpm"`
	Latency float64 `json:"loaded_latency_ms"` // of requests on the connections that make the load
}

// mach is what the other implementation finds, from the client's host.
func (s *stage) mach(ctx context.Context) (map[netstat.Direction]machFound, error) {
	program, err := machProgram(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	cmd := s.client.Command(ctx, program, "rpm", "--insecure", "--disable-aim-scores", "--max-load", fmt.Sprint(flows), "--config",
		s.url(s.server.Addr())+"/.well-known/nq")
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.pair.Cert) // it reads the system's certificates within the time of each handshake
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("mach: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var report struct{ Download, Upload machFound }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, fmt.Errorf("mach: %w", err)
	}
	if report.Download.RPM <= 0 || report.Upload.RPM <= 0 {
		return nil, errors.New("mach has found no responsiveness")
	}
	return map[netstat.Direction]machFound{netstat.Down: report.Download, netstat.Up: report.Upload}, nil
}
