package transferbench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// What the search for the channel plan tries. A piece goes out in the fewest equal messages that fit, so that sizes
// between these send the same: 1,200 cuts it into 14, then come 4, 3, 2 and 1. Above one message a piece nothing changes.
var (
	sweepChannels = []int{1, 2, 4, 8}
	sweepSizes    = []int{1200, 4107, 5473, 16384, peer.PieceSize + peer.DataHeader}
	sweepLinks    = []int{1, 4}
)

// Times of one measurement of the sweep, which has dozens.
const (
	sweepWarm     = 500 * time.Millisecond
	sweepRun      = 2 * time.Second
	sweepPathWarm = time.Second
	sweepPathRun  = 4 * time.Second
)

// sweeps are the points of the search, on loopback and on a path with delay. They run when they are named.
func sweeps() []bench.Case {
	over := path{name: "-25ms", delay: 25 * time.Millisecond, peers: 1}
	var list []bench.Case
	for _, size := range sweepSizes {
		for _, channels := range sweepChannels {
			for _, links := range sweepLinks {
				list = append(list, sweep(channels, size, links))
			}
			list = append(list, sweepPath(over, channels, size))
		}
	}
	return list
}

func sweepLoad(channels, size, links int) load {
	l := ours()
	l.channels, l.message, l.links, l.warm, l.run = channels, size, links, sweepWarm, sweepRun
	return l
}

// sweep is a point on loopback, where the processor is the limit.
func sweep(channels, size, links int) bench.Case {
	return bench.Case{
		Name:  fmt.Sprintf("sweep/%dx%dx%d", channels, size, links),
		About: fmt.Sprintf("%d data channels, messages of %d bytes, %d links, on loopback.", channels, size, links),
		Extra: true,
		Figures: []bench.Figure{
			{Name: "goodput", Unit: "MB/s"}, {Name: "cpu", Unit: "s/GB"}, {Name: "longest_silence", Unit: "s"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			o, err := move(ctx, r, sweepLoad(channels, size, links), here, here)
			if err != nil {
				return bench.Sample{}, err
			}
			return bench.Sample{Void: capped(o.buffers), Values: map[string]float64{
				"goodput": o.rate / mega, "cpu": o.cpu, "longest_silence": o.silence,
			}}, nil
		},
	}
}

// sweepPath is a point on an emulated path, where rate and delay are the limits.
func sweepPath(p path, channels, size int) bench.Case {
	return bench.Case{
		Name:  fmt.Sprintf("sweep/%dx%dx1%s", channels, size, p.name),
		About: fmt.Sprintf("%d data channels, messages of %d bytes, one link over %s", channels, size, p.about()),
		Extra: true,
		Figures: []bench.Figure{
			{Name: "goodput", Unit: "Mbit/s"}, {Name: "cpu", Unit: "s/GB"}, {Name: "longest_silence", Unit: "s"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			l := sweepLoad(channels, size, 1)
			l.warm, l.run = sweepPathWarm, sweepPathRun
			o, void, err := p.move(ctx, r, l)
			if err != nil {
				return bench.Sample{}, err
			}
			if why := capped(o.buffers); why != "" {
				void = why
			}
			return bench.Sample{Void: void, Values: map[string]float64{
				"goodput": o.rate * 8 / mega, "cpu": o.cpu, "longest_silence": o.silence,
			}}, nil
		},
	}
}
