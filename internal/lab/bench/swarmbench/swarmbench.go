// Package swarmbench is `leeway-lab bench swarm`: a trace of viewers behind access lines of a lab, played with Leeway and by
// the origin alone in the same call, and a ledger of every byte.
package swarmbench

import (
	"context"
	"maps"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

const benchName = "swarm"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "A trace of viewers behind access lines, with Leeway and by the origin alone.",
	Roles: map[string]bench.Role{roleViewer: playRole, roleGuest: guestRole},
	Cases: []bench.Case{
		scenario{viewers: 30, browsers: 3, film: filmLength, within: filmLength, goals: promised}.of("trace-30",
			"Thirty viewers, three of them Chromium, that come over the film's length; 30 % seek, 20 % leave early, 30 % have 5/1 Mbit/s, 40 % 20/5, 30 % 100/40."),
		extra(scenario{viewers: 12, browsers: 1, film: filmLength, within: filmLength, goals: promised}.of("trace-12",
			"Twelve viewers of trace-30's kinds, one of them Chromium, that come over the film's length: what two cores carry.")),
		scenario{viewers: 3, film: filmLength, within: 20 * time.Second, watch: 2 * time.Minute, goals: few}.of("trace-3",
			"Three viewers at a time: whether there is anything to save."),
		extra(scenario{viewers: 4, browsers: 1, film: filmLength, within: 8 * time.Second, watch: 30 * time.Second, goals: alive}.of("smoke",
			"Four viewers, one of them Chromium, half a minute: whether all of it works, for make test.")),
		extra(scenario{viewers: 8, film: filmLength, within: 30 * time.Second, watch: 90 * time.Second}.of("short",
			"Eight viewers, a minute and a half: a quick look.")),
		extra(scenario{viewers: 30, browsers: 3, film: filmLength, within: 150 * time.Second, watch: 2 * time.Minute}.of("rush",
			"As many and the same kinds as in trace-30 in half the time, two minutes each.")),
		extra(scenario{viewers: 4, browsers: 2, film: filmLength, within: 20 * time.Second, watch: time.Minute, goals: alive}.of("browsers",
			"Four viewers, a minute; two of them are Chromium.")),
		extra(scenario{viewers: 4, kinds: true, film: filmLength, watch: 45 * time.Second, goals: alike}.of("firefox",
			"Four pages that are opened 5 s apart and watch for 45 s, with Leeway and by the origin alone: in Chromium, in Firefox, and with Leeway in both by turns.")),
		extra(scenario{viewers: 4, thin: true, film: filmLength, within: 10 * time.Second, watch: time.Minute, goals: map[string]string{"uplink_wait_p95": "<= 40"}}.of("uplinks",
			"Four viewers, all behind 5/1 Mbit/s, a minute: what waits for their uplinks while they send.")),
		extra(scenario{viewers: 4, busy: 0.5, film: filmLength, within: 20 * time.Second, watch: time.Minute, goals: alive}.of("busy",
			"Four viewers, a minute; the last is Chromium behind 5/1 Mbit/s, and its page has other things to do half of the time.")),
		extra(scenario{viewers: 20, polluters: 0.3, film: filmLength, within: time.Minute, watch: 2 * time.Minute, goals: clean}.of("polluted",
			"Twenty viewers, two minutes each; six of them send wrong bytes.")),
		extra(scenario{viewers: 15, film: filmLength, within: 150 * time.Second, watch: 2 * time.Minute, goals: outlived,
			outage: outage{kind: "500", from: 75 * time.Second, length: time.Minute}}.of("brown-out",
			"Every segment of the origin is an error for a minute in mid-run, to seeds too; what the swarm survives, and what plain HTTP does.")),
		scenario{viewers: 18, browsers: 1, film: filmLength, within: filmLength, goals: ahead, prefetch: true}.of("prefetch",
			"Eighteen viewers of trace-30's kinds, one of them Chromium, with prefetch and without: three ways at once, so fewer of them."),
		extra(scenario{viewers: 6, browsers: 1, film: filmLength, within: 40 * time.Second, watch: 70 * time.Second, prefetch: true}.of("prefetch-short",
			"Six viewers, one of them Chromium, seventy seconds each, with prefetch and without: a quick look.")),
		extra(scenario{viewers: 3, film: filmLength, watch: 90 * time.Second, goals: beside, prefetch: true, download: time.Minute}.of("download",
			"Kernel TCP downloads to the machine of a viewer behind 20/5 Mbit/s for a minute, while two others have what it fetches ahead.")),
		extra(scenario{viewers: 3, browsers: 1, film: filmLength, watch: 90 * time.Second, goals: beside, prefetch: true, download: time.Minute}.of("download-browser",
			"The same, and the viewer is Chromium.")),
		scenario{viewers: 30, browsers: 3, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: lively, live: &show{segment: 2 * time.Second}}.of("live-30",
			"Thirty viewers of trace-30's kinds, three of them Chromium, at the edge of a live stream with segments of 2 s."),
		extra(scenario{viewers: 12, browsers: 1, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: livelyFew, live: &show{segment: 2 * time.Second}}.of("live-12",
			"Twelve of them, one Chromium: what two cores carry.")),
		extra(scenario{viewers: 12, browsers: 1, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: livelyFew, live: &show{segment: 4 * time.Second}}.of("live-12-4s",
			"The same with segments of 4 s.")),
		extra(scenario{viewers: 12, browsers: 1, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: livelyFew, live: &show{segment: 6 * time.Second}}.of("live-12-6s",
			"The same with segments of 6 s.")),
		extra(scenario{viewers: 30, browsers: 1, film: liveLength, watch: liveLength, goals: unshaken, live: &show{segment: 2 * time.Second, first: 3}}.of("flash",
			"Three viewers of a live stream, and 27 more within ten seconds.")),
		extra(scenario{viewers: 12, film: liveLength, within: 20 * time.Second, watch: liveLength, goals: unshaken, live: &show{segment: 2 * time.Second, blackout: true}}.of("blackout",
			"Twelve viewers of a live stream that is published 5 s late for ten seconds; later a third of them is gone at once.")),
		extra(scenario{viewers: 4, film: liveLength, within: 10 * time.Second, watch: liveLength, goals: unshaken, live: &show{segment: 2 * time.Second, part: halfSecond}}.of("ll-4",
			"Four headless viewers of a low-latency stream, parts of 0.5 s: a quick look.")),
		extra(scenario{viewers: 4, browsers: 4, film: liveLength, within: 10 * time.Second, watch: liveLength, goals: unhurried, live: &show{segment: 2 * time.Second, part: halfSecond}}.of("ll-pages",
			"Four pages of Chromium with hls.js at the edge of a low-latency stream, parts of 0.5 s: the seed feeds two of them.")),
		extra(scenario{viewers: 12, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: livelyParts, live: &show{segment: 2 * time.Second, part: halfSecond}}.of("ll-12",
			"Twelve headless viewers of trace-30's kinds at the edge of a low-latency stream, parts of 0.5 s.")),
		extra(scenario{viewers: 12, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: livelyParts, live: &show{segment: 2 * time.Second, part: 200 * time.Millisecond}}.of("ll-12-200ms",
			"The same with parts of 0.2 s, as MediaMTX makes them by default.")),
		extra(scenario{viewers: 30, film: liveLength, within: 30 * time.Second, watch: liveLength, goals: livelyManyParts, live: &show{segment: 2 * time.Second, part: halfSecond}}.of("ll-30",
			"Thirty of them.")),
		extra(scenario{viewers: 4, rival: true, signed: true, film: filmLength, watch: liveLength, goals: rivalled}.of("rival-4",
			"Four pages of Chromium that are opened 5 s apart and watch a film: by the origin alone, with Leeway and with p2p-media-loader, one after the other.")),
		extra(scenario{viewers: 6, rival: true, signed: true, film: filmLength, watch: liveLength, goals: rivalled}.of("rival-6",
			"Six of them.")),
		extra(scenario{viewers: 4, rival: true, film: filmLength, watch: liveLength, goals: rivalledUnsigned}.of("rival-4-unsigned",
			"Four of them, at a film that no packager has signed.")),
		extra(scenario{viewers: 4, rival: true, film: liveLength, watch: liveLength, goals: rivalledLive, live: &show{segment: 2 * time.Second}}.of("rival-live",
			"Four of them at the edge of a live stream with segments of 2 s.")),
		extra(scenario{viewers: 6, rival: true, film: liveLength, watch: liveLength, goals: rivalledLive, live: &show{segment: 2 * time.Second}}.of("rival-live-6",
			"Six of them.")),
		extra(scenario{viewers: 4, rival: true, film: liveLength, watch: liveLength, goals: rivalledLive, live: &show{segment: 2 * time.Second, part: halfSecond}}.of("rival-ll",
			"Four of them at the edge of a low-latency stream, parts of 0.5 s.")),
		soakCase(),
	},
}

// liveLength is how long a viewer stays at a live stream.
const liveLength = 75 * time.Second

// filmLength is that of the demo's film.
const filmLength = 5 * time.Minute

// promised is what a regular swarm has to keep.
var promised = map[string]string{
	"offload_ratio": ">= 0.75", "stall_ratio_vs_origin_only": "<= 1", "startup_delay_vs_origin_only": "<= 1.05",
	"mean_bitrate_vs_origin_only": ">= 0.98", "duplicate_ratio": "<= 0.02", "rejected_bytes": "<= 0", "failed_viewers": "<= 0",
	"wrong_bytes_played": "<= 0", "honest_blamed": "<= 0",
}

// clean is what polluters must not change.
var clean = map[string]string{
	"offload_ratio": ">= 0.5", "wrong_bytes_played": "<= 0", "honest_blamed": "<= 0", "polluters_found": ">= 1", "failed_viewers": "<= 0",
}

// alive is kept by anything that works; a machine too busy for the lab to certify is asked for nothing.
var alive = map[string]string{"offload_ratio": "> 0.05", "failed_viewers": "<= 0", "rejected_bytes": "<= 0"}

// outlived is what a swarm makes of an origin that is gone.
var outlived = map[string]string{"stall_ratio_vs_origin_only": "<= 1", "startup_in_outage_vs_origin_only": "<= 1", "waited_vs_origin_only": "<= 1",
	"failed_viewers": "<= 0"}

// lively is what viewers of a live stream get.
var lively = map[string]string{
	"offload_ratio": ">= 0.85", "egress_saved_ratio": ">= 0.8", "lag_added_seconds": "<= 0.1", "stall_ratio_vs_origin_only": "<= 1",
	"mean_bitrate_vs_origin_only": ">= 0.98", "rejected_bytes": "<= 0", "failed_viewers": "<= 0", "wrong_bytes_played": "<= 0", "honest_blamed": "<= 0",
}

// livelyFew is that of fewer viewers, five points less.
var livelyFew = func() map[string]string {
	goals := maps.Clone(lively)
	goals["offload_ratio"], goals["egress_saved_ratio"] = ">= 0.8", ">= 0.75"
	return goals
}()

// livelyManyParts is what viewers of a low-latency stream get, and livelyParts what fewer of them get.
var (
	livelyManyParts = map[string]string{
		partShare: ">= 0.6", "lag_added_seconds": "<= 0.15", partLag: "<= 0.1", "stall_ratio_vs_origin_only": "<= 1",
		"rejected_bytes": "<= 0", "failed_viewers": "<= 0", "wrong_bytes_played": "<= 0", "honest_blamed": "<= 0",
	}
	livelyParts = func() map[string]string {
		goals := maps.Clone(livelyManyParts)
		goals[partShare] = ">= 0.55"
		return goals
	}()
)

// unshaken is kept where a crowd comes at once, or what a stream depends on fails.
var unshaken = map[string]string{"stall_ratio_vs_origin_only": "<= 1", "failed_viewers": "<= 0", "wrong_bytes_played": "<= 0", "honest_blamed": "<= 0"}

// unhurried is what pages of a low-latency stream get beside that.
var unhurried = func() map[string]string {
	goals := maps.Clone(unshaken)
	goals["lag_added_seconds"], goals[partLag], goals["rejected_bytes"] = "<= 0.15", "<= 0.1", "<= 0"
	return goals
}()

var few = map[string]string{"egress_saved_ratio": "> 0", "failed_viewers": "<= 0"}

type scenario struct {
	viewers   int
	browsers  int
	polluters float64 // share
	film      time.Duration
	within    time.Duration // arrivals
	watch     time.Duration // all viewers leave after this; 0: at the film's end
	thin      bool          // all have the thinnest line
	goals     map[string]string
	outage    outage
	prefetch  bool          // the site allows it, and the trace is played without it, too
	busy      float64       // the last to come is a browser, whose page has other things to do for that share of the time
	live      *show         // nil: a film
	signed    bool          // the film is signed as it is packaged
	rival     bool          // all viewers are pages, and the trace is played with another program, too
	kinds     bool          // all viewers are pages, and the trace is played in Firefox, too
	download  time.Duration // the last to come has another program download something for so long, and the trace is a fixed one
}

func extra(c bench.Case) bench.Case {
	c.Extra = true
	return c
}

func (s scenario) of(name, about string) bench.Case {
	figures := declared(s.goals)
	if s.outage.length > 0 {
		figures = append(figures, s.outage.declared(s.goals)...)
	}
	if s.prefetch {
		figures = append(figures, declaredAhead(s.goals)...)
	}
	if s.live != nil {
		figures = append(figures, s.live.declared(s.goals)...)
	}
	if s.download > 0 {
		figures = append(figures, declaredDownloads(s.goals)...)
	}
	c := bench.Case{Name: name, About: about, Figures: figures, Run: s.run}
	if s.rival {
		c.Figures, c.Needs = append(c.Figures, declaredRival(s.goals)...), missingRival
	}
	if s.kinds {
		c.Figures, c.Needs = append(c.Figures, declaredKinds(s.goals)...), missingKinds
	}
	return c
}

// run plays the trace with Leeway and by the origin alone.
func (s scenario) run(ctx context.Context, r *bench.Run) (bench.Sample, error) {
	plans := Trace(uint64(r.Number)+1, s.viewers, s.film, s.within, s.browsers)
	if s.rival || s.kinds {
		windows(plans)
	}
	if s.busy > 0 { // the others are there before it, and have what it plays
		last := &plans[len(plans)-1]
		last.Browser, last.Busy, last.Line = true, s.busy, lines[0].Line
	}
	for i := range plans {
		if s.thin {
			plans[i].Line = lines[0].Line
		}
	}
	if s.polluters > 0 {
		pollute(plans, uint64(r.Number)+1, s.polluters)
	}
	for i := range plans {
		if s.watch > 0 && (plans[i].LeaveAfter == 0 || plans[i].LeaveAfter > s.watch) {
			plans[i].LeaveAfter = s.watch
		}
	}
	if s.live != nil {
		s.live.plan(plans)
	}
	if s.download > 0 {
		plans = s.downloaders()
	}
	swarms, void, err := s.all(ctx, r, plans)
	if err != nil {
		return bench.Sample{}, err
	}
	with, without := swarms[0], swarms[1]
	sample := bench.Sample{Values: compare(with, without)}
	if s.outage.length > 0 {
		maps.Copy(sample.Values, s.outage.compare(with, without))
	}
	if s.live != nil {
		maps.Copy(sample.Values, s.live.compare(with, without))
	}
	if s.prefetch {
		maps.Copy(sample.Values, compareAhead(with, swarms[2]))
	}
	if s.rival {
		maps.Copy(sample.Values, compareRival(with, without, swarms[2]))
	}
	if s.kinds {
		maps.Copy(sample.Values, compareKinds(swarms))
	}
	if s.download > 0 {
		maps.Copy(sample.Values, compareDownloads(with, without, swarms[2]))
	}
	if void != nil {
		sample.Void = void.Error()
	}
	return sample, nil
}
