package probebench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// responsivenessOfPage is responsiveness with requests on the loaded connections as a page has it, by questions on its WebSockets, beside
// that of a terminal, by HTTP/2, on the same line.
func responsivenessOfPage(c checker, rate int64, rtt time.Duration) bench.Case {
	return bench.Case{
		Name: fmt.Sprintf("rpm/%dm-%dms-%s", rate/mbit, rtt.Milliseconds(), c.name),
		About: fmt.Sprintf("Responsiveness with requests on the load on %d Mbit/s and %d ms: the mean of %d checks of a page beside that of as many tests of a terminal in turn. The larger error of both ways.",
			rate/mbit, rtt.Milliseconds(), machRounds),
		Needs: c.needs,
		Figures: []bench.Figure{
			{Name: "rpm_terminal_error_ratio"}, {Name: "rpm_down", Unit: "1/min"}, {Name: "rpm_up", Unit: "1/min"},
			{Name: "terminal_rpm_down", Unit: "1/min"}, {Name: "terminal_rpm_up", Unit: "1/min"},
		},
		Run: on(both(rate, rtt), nil, func(ctx context.Context, r *bench.Run, s *stage) (values map[string]float64, err error) {
			secure, stop, err := s.beside(ctx)
			defer func() { err = errors.Join(err, stop()) }()
			if err != nil {
				return nil, err
			}
			values = map[string]float64{}
			for range machRounds {
				theirs, err := terminal.run(ctx, r, secure, plan{phases: []netcheck.Phase{netcheck.Responsiveness}, duration: longTime, streams: flows})
				if err != nil {
					return nil, err
				}
				ours, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime, streams: flows})
				if err != nil {
					return nil, err
				}
				for _, d := range twoWays {
					v, err := ours.value(netstat.RequestResponsiveness, d)
					if err != nil {
						return nil, err
					}
					t, err := theirs.value(netstat.RequestResponsiveness, d)
					if err != nil {
						return nil, err
					}
					r.Logf("  %s: %.0f round trips a minute, the terminal %.0f", d, v, t)
					values["rpm_"+string(d)] += v / machRounds
					values["terminal_rpm_"+string(d)] += t / machRounds
				}
			}
			for _, d := range twoWays {
				values["rpm_terminal_error_ratio"] = max(values["rpm_terminal_error_ratio"], math.Abs(values["rpm_"+string(d)]/values["terminal_rpm_"+string(d)]-1))
			}
			return values, nil
		}),
	}
}
