package swarmbench

import (
	"context"
	"errors"
	"slices"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// The ways of playing a trace in browsers of two kinds, beside Chromium's two.
const (
	withLeewayFirefox = "with Leeway, in Firefox"
	originOnlyFirefox = "by the origin alone, in Firefox"
	withLeewayMixed   = "with Leeway, in Chromium and Firefox by turns"
)

// cast gives the pages of a trace the browsers of one way.
func (s scenario) cast(way string, plans []Plan) []Plan {
	if !s.kinds {
		return plans
	}
	plans = slices.Clone(plans)
	for i := range plans {
		plans[i].Firefox = way == withLeewayFirefox || way == originOnlyFirefox || way == withLeewayMixed && inFirefox(i)
	}
	return plans
}

// inFirefox says which viewers of a mixed swarm are Firefox. The first one is Chromium, so the second is served by the other kind, and
// those after it by both.
func inFirefox(i int) bool { return i%2 == 1 }

// missingKinds says what this machine lacks for pages in both browsers.
func missingKinds(ctx context.Context) error {
	return errors.Join(demopage.Missing(ctx), demopage.MissingFirefox(ctx))
}

// Suffixes of figures that are not of Chromium alone.
const (
	firefoxSuffix = "_firefox"
	mixedSuffix   = "_mixed"
)

// alike is what swarms with Firefox get: within five points of what Chromium has by itself.
var alike = func() map[string]string {
	goals := map[string]string{"failed_viewers": "<= 0"}
	for _, suffix := range []string{firefoxSuffix, mixedSuffix} {
		goals["failed_viewers"+suffix] = "<= 0"
		for _, name := range []string{"offload_lost", "startup_lost", "stalls_lost"} {
			goals[name+suffix] = "<= 0.05"
		}
	}
	return goals
}()

// kindFigures are those of Chromium's swarm that the others have, too.
var kindFigures = []bench.Figure{
	{Name: "offload_ratio"}, {Name: "startup_delay", Unit: "s"}, {Name: "startup_delay_origin_only", Unit: "s"}, {Name: "startup_delay_vs_origin_only"},
	{Name: "stalls"}, {Name: "stalls_origin_only"}, {Name: "stall_ratio"}, {Name: "stall_ratio_origin_only"},
	{Name: "mean_bitrate", Unit: "Mbit/s"}, {Name: "mean_bitrate_vs_origin_only"}, {Name: "rejected_bytes", Unit: "bytes"}, {Name: "failed_viewers"},
}

// declaredKinds are the figures of a run in both browsers, beside those of Chromium alone.
func declaredKinds(goals map[string]string) (list []bench.Figure) {
	for _, suffix := range []string{firefoxSuffix, mixedSuffix} {
		for _, f := range kindFigures {
			list = append(list, bench.Figure{Name: f.Name + suffix, Unit: f.Unit, Goal: goals[f.Name+suffix]})
		}
		for _, name := range []string{"offload_lost", "startup_lost", "stalls_lost"} {
			list = append(list, bench.Figure{Name: name + suffix, Goal: goals[name+suffix]})
		}
	}
	return list
}

// compareKinds says what swarms with Firefox have beside one of Chromium alone; swarms are in the order of the ways. The viewers of a
// mixed swarm are compared with those at the same place by the origin alone, each in its own browser. What a browser takes by itself is
// so in no difference: startup is a ratio to the origin alone, and stalls are those beyond the origin alone.
func compareKinds(swarms []Swarm) map[string]float64 {
	chromium, chromiumAlone, firefox, firefoxAlone, mixed := swarms[0], swarms[1], swarms[2], swarms[3], swarms[4]
	var mixedAlone Swarm
	for i := range mixed.Outcomes {
		alone := chromiumAlone
		if inFirefox(i) {
			alone = firefoxAlone
		}
		mixedAlone.Outcomes = append(mixedAlone.Outcomes, alone.Outcomes[i])
	}
	v := map[string]float64{}
	base := compare(chromium, chromiumAlone)
	for suffix, pair := range map[string][2]Swarm{firefoxSuffix: {firefox, firefoxAlone}, mixedSuffix: {mixed, mixedAlone}} {
		one := compare(pair[0], pair[1])
		for _, f := range kindFigures {
			if value, measured := one[f.Name]; measured {
				v[f.Name+suffix] = value
			}
		}
		v["offload_lost"+suffix] = base["offload_ratio"] - one["offload_ratio"]
		const startup = "startup_delay_vs_origin_only"
		if took, measured := one[startup]; measured { // a swarm without a picture has lost more than a figure can say
			v["startup_lost"+suffix] = took - base[startup]
		}
		v["stalls_lost"+suffix] = stallsAdded(one) - stallsAdded(base)
	}
	return v
}

// stallsAdded is the share of the time of watching that viewers waited beyond what they wait by the origin alone.
func stallsAdded(v map[string]float64) float64 {
	return v["stall_ratio"] - v["stall_ratio_origin_only"]
}
