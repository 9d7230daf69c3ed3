package swarmbench

import (
	"context"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/sleep"
)

// outage is a time in which the origin fails: all its segments, for viewers and seeds alike. Playlists are still
// answered, as by an edge that has them.
type outage struct {
	kind         string // as Site.Fault has it
	from, length time.Duration
}

// happen has the origin fail when it is time.
func (o outage) happen(ctx context.Context, s *servers) error {
	if !sleep.For(ctx, o.from) {
		return nil
	}
	if err := s.Fault(o.kind); err != nil {
		return err
	}
	sleep.For(ctx, o.length)
	return s.Fault("none")
}

// declared are the figures of a run with an outage, beside those of every run.
func (o outage) declared(goals map[string]string) []bench.Figure {
	list := []bench.Figure{{Name: "came_in_outage", Unit: "viewers"}}
	for _, f := range []struct{ name, unit string }{
		{"startup_in_outage", "s"}, {"startup_in_outage_origin_only", "s"}, {"startup_in_outage_vs_origin_only", ""},
		{"stalled_viewers", ""}, {"stalled_viewers_origin_only", ""}, {"longest_wait", "s"}, {"longest_wait_origin_only", "s"},
		{"waited", "s"}, {"waited_origin_only", "s"}, {"waited_vs_origin_only", ""},
	} {
		list = append(list, bench.Figure{Name: f.name, Unit: f.unit, Goal: goals[f.name]})
	}
	return list
}

// compare says what the viewers felt that came while the origin was gone, and which had to wait.
func (o outage) compare(with, without Swarm) map[string]float64 {
	v := map[string]float64{}
	for suffix, s := range map[string]Swarm{"": with, "_origin_only": without} {
		came := o.newcomers(s)
		v["came_in_outage"] = float64(len(came.Outcomes))
		v["startup_in_outage"+suffix] = came.startup()
		stalled, longest := s.waits()
		v["stalled_viewers"+suffix], v["longest_wait"+suffix] = float64(stalled), longest
		v["waited"+suffix] = s.waited()
	}
	if below := v["waited_origin_only"]; below > 0 {
		v["waited_vs_origin_only"] = v["waited"] / below
	}
	if below := v["startup_in_outage_origin_only"]; below > 0 {
		v["startup_in_outage_vs_origin_only"] = v["startup_in_outage"] / below
	}
	return v
}

// waited is how long a viewer was without a picture that moves, seconds, on average: until the first and in stalls. One that
// begins sooner may stall where others still wait for their first.
func (s Swarm) waited() float64 {
	var sum float64
	for _, o := range s.honest() {
		first := o.Stats.StartupMs
		if first == 0 {
			first = o.Stats.Interval
		}
		sum += float64(first+o.Stats.StallMs) / 1000
	}
	return sum / max(1, float64(len(s.honest())))
}

// newcomers are those that came in the outage. One that left without a picture waited as long as it stayed.
func (o outage) newcomers(s Swarm) (came Swarm) {
	for _, one := range s.honest() {
		if at := one.Plan.Arrive; at >= o.from && at < o.from+o.length {
			if one.Stats.StartupMs == 0 {
				one.Stats.StartupMs = one.Stats.Interval
			}
			came.Outcomes = append(came.Outcomes, one)
		}
	}
	return came
}

// waits counts the viewers that stalled, and how long the unluckiest waited in all, seconds.
func (s Swarm) waits() (stalled int, longest float64) {
	for _, o := range s.honest() {
		if o.Stats.StallMs > 0 {
			stalled++
		}
		longest = max(longest, float64(o.Stats.StallMs)/1000)
	}
	return stalled, longest
}
