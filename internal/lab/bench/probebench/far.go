package probebench

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// far is a line on which opening a data channel takes seven round trips of 2 s: the check has to give its results all the same.
func far(c checker) bench.Case {
	const trip = 2 * time.Second
	return bench.Case{
		Name:  "far/" + c.name,
		About: "The quality test on 20 Mbit/s with a round trip of 2 s: the error of its round trip, what it lost, and how long it took.",
		Needs: c.needs,
		// A browser's SCTP takes the first messages for lost and sends less, so that the others wait: no goal there.
		Figures: []bench.Figure{{Name: "round_trip_error_ratio"}, {Name: "lost_ratio"}, {Name: "check_seconds", Unit: "s", Goal: "<= 90"}},
		Run: on(both(20*mbit, trip), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			began := time.Now()
			got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Quality}, duration: longTime})
			if err != nil {
				return nil, err
			}
			v := map[string]float64{"check_seconds": time.Since(began).Seconds(), "lost_ratio": 0}
			rtt, err := got.value(netstat.RoundTripTime, netstat.RoundTrip)
			if err != nil {
				return nil, err
			}
			for _, d := range twoWays {
				lost, err := got.value(netstat.Loss, d)
				if err != nil {
					return nil, err
				}
				apart, err := got.value(netstat.DelayRange, d)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: %.1f %% lost, delays %.2f s apart", d, 100*lost, apart) // which end messages wait at
				v["lost_ratio"] = max(v["lost_ratio"], lost)
			}
			r.Logf("  round trip %.2f s", rtt)
			v["round_trip_error_ratio"] = math.Abs(rtt/trip.Seconds() - 1)
			return v, nil
		}),
	}
}

// lossy is a line that loses nearly a third of its packets each way: a check has a result there, or says why it has none, within its time.
func lossy(c checker) bench.Case {
	const loss, rtt = 0.3, 20 * ms
	link := netlab.Link{Rate: 20 * mbit, Delay: rtt / 2, Queue: lineQueue, Loss: loss}
	return bench.Case{
		Name:  "lossy/" + c.name,
		About: "A check on 20 Mbit/s and 20 ms with 30 % of packets lost each way: how long it takes, whether it has all of its results (1) or says why not (0), and what it says of the loss.",
		Needs: c.needs,
		Figures: []bench.Figure{
			{Name: "check_seconds", Unit: "s", Goal: "<= 120"}, {Name: "complete"},
			{Name: "loss_down"}, {Name: "loss_up"}, {Name: "throughput_down", Unit: "bit/s"}, {Name: "throughput_up", Unit: "bit/s"},
		},
		Run: on(netlab.Both(link), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			began := time.Now()
			got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload, netcheck.Quality}, duration: longTime})
			v := map[string]float64{"check_seconds": time.Since(began).Seconds(), "complete": 1}
			if ended := (*endedError)(nil); errors.As(err, &ended) {
				r.Logf("  %s", ended.why)
				v["complete"] = 0
				return v, nil
			}
			if err != nil {
				return nil, err
			}
			for _, d := range twoWays {
				for _, k := range []netstat.Kind{netstat.Loss, netstat.Throughput} {
					if v[k.Name+"_"+string(d)], err = got.value(k, d); err != nil {
						return nil, err
					}
				}
			}
			return v, nil
		}),
	}
}
