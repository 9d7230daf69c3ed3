package probebench

import (
	"bytes"
	"context"
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
		About: fmt.Sprintf("Responsiveness on %d Mbit/s and %d ms, TLS: with requests on the load, the mean of %d tests beside that of as many of mach (Cloudflare, with as many probes as the draft wants) in turn, whose test ends as the draft has it, and (own) as it ends by itself; with round-trip times, beside packets that are sent there and back meanwhile. The larger error of both ways.",
			rate/mbit, rtt.Milliseconds(), machRounds),
		Extra: true,
		Needs: machMissing,
		Figures: []bench.Figure{
			{Name: "rpm_error_ratio", Goal: "<= 0.05"}, {Name: "rpm_own_error_ratio"}, {Name: "rpm_packets_error_ratio"},
			{Name: "rpm_down", Unit: "1/min"}, {Name: "rpm_up", Unit: "1/min"}, {Name: "mach_rpm_down", Unit: "1/min"}, {Name: "mach_rpm_up", Unit: "1/min"},
			{Name: "mach_own_rpm_down", Unit: "1/min"}, {Name: "mach_own_rpm_up", Unit: "1/min"},
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
					draft, own := byDraft(theirs[d]), byMach(theirs[d])
					r.Logf("  %s: %.0f round trips a minute, confidence %s; mach %.0f, by itself %.0f; its intervals:%s", d, v, got.Confidence[d], draft, own, figuresOf(theirs[d]))
					values["rpm_"+string(d)] += v / machRounds
					values["mach_rpm_"+string(d)] += draft / machRounds
					values["mach_own_rpm_"+string(d)] += own / machRounds
				}
			}
			for _, d := range twoWays {
				ours := values["rpm_"+string(d)]
				values["rpm_error_ratio"] = max(values["rpm_error_ratio"], math.Abs(ours/values["mach_rpm_"+string(d)]-1))
				values["rpm_own_error_ratio"] = max(values["rpm_own_error_ratio"], math.Abs(ours/values["mach_own_rpm_"+string(d)]-1))
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

// figuresOf lists the figures of intervals.
func figuresOf(list []machInterval) (text string) {
	for _, one := range list {
		text += fmt.Sprintf(" %.0f", one.rpm)
	}
	return text
}

// mach is what the other implementation says of its intervals, from the client's host. It never takes its figures to be at rest (--std),
// so that its test lasts until its time is over: when it would end by itself, and when by the draft, is in the intervals. Its time is
// 12 s, for the server ends what it loads with after 13.
func (s *stage) mach(ctx context.Context) (map[netstat.Direction][]machInterval, error) {
	program, err := machProgram(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	cmd := s.client.Command(ctx, program, "rpm", "--insecure", "--disable-aim-scores", "--std", "0", "--max-load", fmt.Sprint(flows), "--config",
		s.url(s.server.Addr())+"/.well-known/nq")
	// It reads the system's certificates within the time of each handshake.
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.pair.Cert, "RUST_LOG=nq_rpm=info,mach=info")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("mach: %w: %s", err, said.Bytes()[max(0, said.Len()-1000):])
	}
	return machIntervals(said.Bytes())
}
