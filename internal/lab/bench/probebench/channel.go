package probebench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// channelDelay is K3: round trip and range of delays of messages of a data channel.
func channelDelay(c checker, jitter time.Duration) bench.Case {
	const rtt = 20 * ms
	name := fmt.Sprintf("K3/jitter-%d", jitter.Milliseconds())
	if c.name != terminal.name {
		name += "-" + c.name
	}
	link := netlab.Link{Rate: 20 * mbit, Delay: rtt / 2, Queue: 256 << 10, Jitter: jitter, Reorder: true}
	return bench.Case{
		Name:  name,
		Needs: c.needs,
		About: fmt.Sprintf("Messages of a data channel on 20 Mbit/s and 20 ms with 0 to %d ms of jitter each way, by message: the error of their median round trip, and of the range of delays of one way.", jitter.Milliseconds()),
		Figures: []bench.Figure{
			{Name: "round_trip_error_seconds", Unit: "s", Reference: thesis("K3: 13 ms where 10 were", 0.003)},
			{Name: "delay_range_error_seconds", Unit: "s"},
		},
		Run: on(netlab.Both(link), nil, func(ctx context.Context, r *bench.Run, s *stage) (map[string]float64, error) {
			got, err := c.run(ctx, r, s, plan{phases: []netcheck.Phase{netcheck.Quality}, duration: longTime})
			if err != nil {
				return nil, err
			}
			trip, err := got.value(netstat.RoundTripTime, netstat.RoundTrip)
			if err != nil {
				return nil, err
			}
			worst := 0.0
			for _, d := range twoWays {
				v, err := got.value(netstat.DelayRange, d)
				if err != nil {
					return nil, err
				}
				r.Logf("  %s: delays %.2f ms apart", d, 1000*v)
				worst = max(worst, math.Abs(v-jitter.Seconds()))
			}
			r.Logf("  round trip %.2f ms", 1000*trip)
			// The jitter of one way is half of its largest in the mean, and there are two ways.
			return map[string]float64{"round_trip_error_seconds": math.Abs(trip - (rtt + jitter).Seconds()), "delay_range_error_seconds": worst}, nil
		}),
	}
}
