package swarmbench

import (
	"maps"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// thinUplink is the fastest uplink whose queue is looked at, bits per second.
const thinUplink = 1_000_000

const (
	uplinkEvery = 100 * time.Millisecond
	// uplinkBusy is the least share of its rate that a line carried between two looks for the look to count.
	uplinkBusy = 0.1
)

// uplink is a thin uplink and what was seen of its queue, from outside: by the emulator that has it.
type uplink struct {
	name    string
	rate    int64
	browser bool // is behind it
	bytes   uint64
	at      time.Duration
	waits   []float64 // ms
}

// look takes what the line had carried and had waiting at a moment.
func (u *uplink) look(at time.Duration, carried uint64, waiting int) {
	if took := (at - u.at).Seconds(); took > 0 && float64(carried-u.bytes)*8 >= uplinkBusy*float64(u.rate)*took {
		u.waits = append(u.waits, 1000*8*float64(waiting)/float64(u.rate))
	}
	u.bytes, u.at = carried, at
}

// lookAtUplinks follows the queues of the thin uplinks until over.
func (s *stage) lookAtUplinks(over <-chan struct{}) {
	if len(s.uplinks) == 0 {
		return
	}
	tick := time.NewTicker(uplinkEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			if r, err := s.lab.Report(); err == nil { // the last report fails the run if the emulator is gone
				for _, u := range s.uplinks {
					c := r.Directions[u.name]
					u.look(r.Took, c.Bytes, c.QueueBytes)
				}
			}
		}
	}
}

// waits are those of all thin uplinks, and of those without a browser behind them.
func (s *stage) waits() (all, headless []float64) {
	for _, u := range s.uplinks {
		all = append(all, u.waits...)
		if !u.browser {
			headless = append(headless, u.waits...)
		}
	}
	return all, headless
}

// ahead is what prefetch has to keep, beside what a regular swarm has to.
var ahead = func() map[string]string {
	goals := maps.Clone(promised)
	goals["offload_ratio_vs_without_prefetch"], goals["waste_ratio"], goals["uplink_wait_p95"] = "> 1", "<= 0.1", "<= 40"
	return goals
}()

// declaredAhead are the figures of a run with prefetch, beside those of every run.
func declaredAhead(goals map[string]string) (list []bench.Figure) {
	const shared = "offload_ratio_vs_without_prefetch" // without prefetch nothing may be shared
	list = append(list, bench.Figure{Name: shared, Goal: goals[shared], Optional: true})
	for _, f := range []struct{ name, unit string }{
		{"offload_ratio_without_prefetch", ""}, {"egress_saved_ratio_without_prefetch", ""},
		{"waste_ratio", ""}, {"prefetched_bytes", "bytes"}, {"prefetch_wasted_bytes", "bytes"}, {"promotions", ""},
		{"stall_ratio_without_prefetch", ""}, {"uplink_wait_p95_without_prefetch", "ms"},
	} {
		list = append(list, bench.Figure{Name: f.name, Unit: f.unit, Goal: goals[f.name]})
	}
	return list
}

// compareAhead says what prefetch gained and what it cost: the same trace with it and without.
func compareAhead(with, without Swarm) map[string]float64 {
	a, b := with.sum(), compare(without, Swarm{})
	v := map[string]float64{
		"prefetched_bytes": float64(a.PrefetchedBytes), "prefetch_wasted_bytes": float64(a.PrefetchWasted), "promotions": float64(a.Promotions),
	}
	for _, name := range []string{"offload_ratio", "egress_saved_ratio", "stall_ratio", "uplink_wait_p95"} {
		if value, measured := b[name]; measured {
			v[name+"_without_prefetch"] = value
		}
	}
	if all := float64(a.received()); all > 0 {
		v["waste_ratio"] = float64(a.PrefetchWasted) / all
		if below := b["offload_ratio"]; below > 0 {
			v["offload_ratio_vs_without_prefetch"] = float64(a.Bytes["peer"]) / all / below
		}
	}
	return v
}
