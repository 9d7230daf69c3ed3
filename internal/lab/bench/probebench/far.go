package probebench

import (
	"context"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
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
				v["lost_ratio"] = max(v["lost_ratio"], lost)
			}
			v["round_trip_error_ratio"] = math.Abs(rtt/trip.Seconds() - 1)
			return v, nil
		}),
	}
}
