package transferbench

import (
	"context"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// laneRun is long enough for the law to fill the line for most of it.
const (
	laneWarm = 5 * time.Second
	laneRun  = 10 * time.Second
)

// lanes compares the background lane with the foreground on a line that both can fill: what giving way costs, in time of
// processors and in goodput, where there is nobody to give way to. A goal for processors is set where there are many bytes: on
// 10 Mbit/s an end is asleep nineteen twentieths of the time in either lane, and messages and acks are what wakes it.
func lanes() []bench.Case {
	cost := bench.Figure{Name: "cpu_vs_foreground"}
	slow := compare(path{name: "lane/10mbit", rate: 10_000_000, delay: 20 * time.Millisecond, peers: 1}, cost)
	slow.Extra = true
	cost.Goal = "<= 1.1"
	return []bench.Case{compare(path{name: "lane", delay: 20 * time.Millisecond, peers: 1}, cost), slow}
}

// compare is the case of one path.
func compare(over path, cost bench.Figure) bench.Case {
	return bench.Case{
		Name: over.name, About: "One link in the background lane and in the foreground, each alone, over " + over.about(),
		Figures: []bench.Figure{
			{Name: "goodput", Unit: "Mbit/s"}, {Name: "goodput_foreground", Unit: "Mbit/s"}, {Name: "goodput_vs_foreground", Goal: ">= 0.9"},
			{Name: "cpu", Unit: "s/GB"}, {Name: "cpu_foreground", Unit: "s/GB"}, cost,
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			kinds := []string{kindLane, kindLink}
			outcomes := map[string]*outcome{}
			sample := bench.Sample{}
			for i := range kinds {
				l := ours()
				l.kind, l.warm, l.run = kinds[(i+r.Number)%len(kinds)], laneWarm, laneRun
				o, void, err := over.move(ctx, r, l)
				if err != nil {
					return sample, err
				}
				r.Logf("  %s: %.3g Mbit/s, %.1f CPU-s/GB", l.kind, o.rate*8/mega, o.cpu)
				if void != "" {
					sample.Void = void
				}
				outcomes[l.kind] = o
			}
			lane, link := outcomes[kindLane], outcomes[kindLink]
			sample.Values = map[string]float64{
				"goodput": lane.rate * 8 / mega, "goodput_foreground": link.rate * 8 / mega, "goodput_vs_foreground": lane.rate / link.rate,
				"cpu": lane.cpu, "cpu_foreground": link.cpu, "cpu_vs_foreground": lane.cpu / link.cpu,
			}
			return sample, nil
		},
	}
}

// lane is the one that all is asked for in.
func (s *linkStack) lane() peer.Lane {
	if s.setup.Kind == kindLane {
		return peer.Background
	}
	return peer.Foreground
}

// lay sets up the background lane of an end.
func (s *linkStack) lay() {
	if s.lane() == peer.Background {
		s.uploader.Background = background.NewSender(ledbat.Config{}, time.Now)
		s.requester = background.NewRequester(ledbat.Config{}, time.Now)
	}
}

// lay has one link carry it.
func (e *linkEnd) lay() {
	if e.stack.requester != nil {
		e.session.Lane = laneEnd{e}
		e.download.Background(e.Link, e.stack.requester, nil)
	}
}

// laneEnd is the background transport of one end. It satisfies transfer.Lane.
type laneEnd struct{ e *linkEnd }

var (
	_ transfer.Lane      = laneEnd{}
	_ transfer.AckEvents = (*linkEnd)(nil)
)

// BackgroundData implements transfer.Lane.
func (l laneEnd) BackgroundData(b []byte) error { return l.e.download.BackgroundData(b) }

// Ack implements transfer.Lane.
func (l laneEnd) Ack(b []byte) error { return l.e.upload.Ack(b) }

// Ack implements transfer.AckEvents.
func (e *linkEnd) Ack(b []byte) { e.session.Ack(b) }
