package swarmbench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/sleep"
)

// show is a live stream, which is played in place of the film: the film replayed, the same in all ways of playing a trace.
type show struct {
	segment  time.Duration
	first    int           // viewers that are there from the start; the others come in a rush. 0: all come over the trace's time
	blackout bool          // what a stream depends on fails, one thing after the other
	part     time.Duration // of a clock in place of the film, published in parts, which viewers play and share; 0: whole segments of the film
}

// A flash crowd comes once the first viewers play.
const (
	rushAfter = 20 * time.Second
	rushTime  = 10 * time.Second
)

// A blackout: the origin publishes late for a time, and later a part of the viewers is gone at once.
const (
	lateFrom  = 35 * time.Second
	lateFor   = 10 * time.Second
	goneAt    = 60 * time.Second
	goneShare = 3 // one of so many
)

// The figures of a stream in parts: what of the viewers' bytes other viewers sent, and within what time after the playlist that lists it
// 99 of 100 parts had their certificate at the seed.
const (
	partShare = "part_offload_ratio"
	partLag   = "certificate_lag_p99_seconds"
)

// settings of the servers.
func (l *show) settings() []string {
	if l.part > 0 {
		return []string{"LEEWAY_UP_LIVE=true", "LEEWAY_UP_LOW_LATENCY=true", "LEEWAY_UP_PART=" + l.part.String(), "LEEWAY_UP_SEGMENT=" + l.segment.String(), "LEEWAY_UP_WINDOW=" + clockWindow.String()}
	}
	return []string{"LEEWAY_UP_REPLAY=true", "LEEWAY_UP_SEGMENT=" + l.segment.String()}
}

// halfSecond is how long the parts of most cases are.
const halfSecond = 500 * time.Millisecond

// clockWindow is the length of a clock's playlists. They are full when it has run for so long; those of a replay are from the beginning.
const clockWindow = 30 * time.Second

// settle waits until the playlists of a stream are full. A player begins otherwise where they are not, and what is played second would find
// others than what is played first.
func (l *show) settle(ctx context.Context, s *servers) {
	if l != nil && l.part > 0 {
		sleep.For(ctx, clockWindow-time.Since(s.opened))
	}
}

// plan makes a film's trace one of a live stream: nothing is sought for.
func (l *show) plan(plans []Plan) {
	for i := range plans {
		p := &plans[i]
		p.SeekAfter, p.SeekTo = 0, 0
		switch {
		case l.first > 0 && i < l.first:
			p.Arrive = time.Duration(i) * time.Second
		case l.first > 0:
			p.Arrive = rushAfter + rushTime*time.Duration(i-l.first)/time.Duration(len(plans)-l.first)
		}
		if l.blackout && i%goneShare == goneShare-1 && !p.Browser && p.Arrive < goneAt {
			p.LeaveAfter, p.Dies = goneAt-p.Arrive, true
		}
	}
}

// happen has things fail when it is time.
func (l *show) happen(ctx context.Context, s *servers) error {
	if !l.blackout || !sleep.For(ctx, lateFrom) {
		return nil
	}
	if err := s.Fault("late"); err != nil {
		return err
	}
	sleep.For(ctx, lateFor)
	return s.Fault("none")
}

// declared are the figures of a live stream, beside those of every run.
func (l *show) declared(goals map[string]string) []bench.Figure {
	var list []bench.Figure
	for _, f := range []struct{ name, unit string }{
		{"lag_added_seconds", "s"}, {"lag_seconds", "s"}, {"lag_seconds_origin_only", "s"}, {"leaps", ""}, {"leaps_origin_only", ""},
		{"stalled_viewers", ""}, {"stalled_viewers_origin_only", ""}, {"seed_certificate_lag_p95_seconds", "s"},
	} {
		list = append(list, bench.Figure{Name: f.name, Unit: f.unit, Goal: goals[f.name]})
	}
	if l.part > 0 {
		list = append(list, bench.Figure{Name: partShare, Goal: goals[partShare]}, bench.Figure{Name: partLag, Unit: "s", Goal: goals[partLag]})
	}
	return list
}

// compare says how far behind the clock viewers played.
func (l *show) compare(with, without Swarm) map[string]float64 {
	v := map[string]float64{}
	addMedian(v, "lag_seconds", with.lags())
	addMedian(v, "lag_seconds_origin_only", without.lags())
	addMedian(v, "lag_added_seconds", lagsAdded(with, without))
	if with.Served.LiveLag > 0 {
		v["seed_certificate_lag_p95_seconds"] = with.Served.LiveLag
	}
	for suffix, s := range map[string]Swarm{"": with, "_origin_only": without} {
		stalled, _ := s.waits()
		v["stalled_viewers"+suffix] = float64(stalled)
		for _, o := range s.honest() {
			v["leaps"+suffix] += float64(o.Leaps)
		}
	}
	if sum := with.sum(); l.part > 0 && sum.received() > 0 {
		v[partShare] = float64(sum.Bytes["peer"]) / float64(sum.received())
		if with.Served.PartLag > 0 { // a seed that certified none was not quick
			v[partLag] = with.Served.PartLag
		}
	}
	return v
}

// lags are how far behind the clock the viewers were, ms, on average each: one that leaves early counts as one that stays.
func (s Swarm) lags() (all []int64) {
	for _, o := range s.honest() {
		if o.LatencyMs > 0 {
			all = append(all, o.LatencyMs)
		}
	}
	return all
}

// lagsAdded are how much further behind the clock viewers were with Leeway than the same ones by the origin alone, ms. A viewer is behind
// by up to a segment more or less, as it comes right after a publication or before the next, and both ways of playing a trace have it come
// at about the same moment. The difference of two medians is larger where one viewer of twelve comes a few milliseconds later and so a
// segment nearer to the edge.
func lagsAdded(with, without Swarm) (all []int64) {
	for i, o := range with.Outcomes[:min(len(with.Outcomes), len(without.Outcomes))] {
		if alone := without.Outcomes[i].LatencyMs; o.Plan.Pollutes == "" && o.LatencyMs > 0 && alone > 0 {
			all = append(all, o.LatencyMs-alone)
		}
	}
	return all
}

// addMedian adds the median of times in ms, in seconds. Of none there is no figure: a lag that no viewer knows is not a lag of 0.
func addMedian(v map[string]float64, name string, ms []int64) {
	if len(ms) > 0 {
		v[name] = median(ms)
	}
}

// median of times in ms, in seconds; 0 of none.
func median(ms []int64) float64 {
	if len(ms) == 0 {
		return 0
	}
	slices.Sort(ms)
	return float64(ms[(len(ms)-1)/2]+ms[len(ms)/2]) / 2000
}

// streamed is the digests of what a stream had, by path: most of it is gone.
func (s *servers) streamed() (map[string]string, error) {
	response, err := s.Ask(http.MethodGet, "/origin/digests")
	if err != nil {
		return nil, fmt.Errorf("compare with the origin: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("compare with the origin: %s", response.Status)
	}
	var all map[string]string
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		return nil, fmt.Errorf("compare with the origin: %w", err)
	}
	return all, nil
}

// pathOf is the path of a URL.
func pathOf(of string) string {
	at, err := url.Parse(of)
	if err != nil {
		return of
	}
	return at.Path
}
