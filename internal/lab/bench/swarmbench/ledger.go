package swarmbench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Outcome is what one viewer says of its run: the statistics of spec/tracker-protocol.md, in all.
type Outcome struct {
	Plan   Plan
	Stats  signal.Stats
	Failed bool // playback ended for good before its time

	Session string   // as other viewers know it, while there were peers
	Banned  []string // sessions of peers that it would not link again
	Played  []played // what it was given; browsers do not say
	Given   []string // paths of the segments that a browser's player got
	Notices []string // what the library told a browser's page

	LatencyMs int64 // behind the clock of a live stream, on average; 0: unknown
	Leaps     int   // over what had left a live playlist; browsers do not say

	Downloaded int64 // by the other program on its machine, bytes
}

// Served is what the servers say, in bytes.
type Served struct {
	OriginToViewers, OriginToSeeds, Seed, Signaling int64
	Requests                                        int64   // to the origin for segments
	LiveLag                                         float64 // seconds from publication within which 95 of 100 live segments had a seed's certificate; 0: there were none
	PartLag                                         float64 // seconds within which 99 of 100 parts had their certificate; 0: there were none
}

// Swarm is one run of a trace.
type Swarm struct {
	Outcomes []Outcome
	Served   Served
	Lab      netlab.Report
	// WrongBytes are of segments that were played and were not the origin's.
	WrongBytes int64
	// UplinkWaits are what a packet would have waited behind the thinnest uplinks, ms, at moments when something went out there.
	UplinkWaits []float64
	// HeadlessWaits are those of them behind which no browser plays.
	HeadlessWaits []float64
}

// negligible is a stall ratio that a viewer cannot feel, one frame in ten minutes: it keeps a ratio of two ratios finite.
const negligible = 1e-4

// figures lists what a pair of runs reports. goals only where the issue of a regular swarm is at stake.
func declared(goals map[string]string) []bench.Figure {
	var list []bench.Figure
	add := func(unit string, names ...string) {
		for _, n := range names {
			list = append(list, bench.Figure{Name: n, Unit: unit, Goal: goals[n]})
		}
	}
	add("", "offload_ratio", "egress_saved_ratio", "stalls", "stalls_origin_only", "stall_ratio", "stall_ratio_origin_only", "stall_ratio_vs_origin_only")
	add("s", "startup_delay", "startup_delay_origin_only")
	add("", "startup_delay_vs_origin_only")
	add("Mbit/s", "mean_bitrate", "mean_bitrate_origin_only")
	add("", "mean_bitrate_vs_origin_only")
	add("bytes", "viewer_bytes", "origin_bytes", "origin_to_viewers_bytes", "origin_to_seeds_bytes", "seed_bytes", "peer_direct_bytes",
		"relay_bytes", "signaling_bytes", "duplicate_bytes", "rejected_bytes", "wasted_bytes", "origin_bytes_origin_only")
	add("", "duplicate_ratio", "failed_viewers", "failed_viewers_origin_only", "contradictions")
	add("ms", "uplink_wait_p95", "uplink_wait_p95_headless")
	add("bytes", "wrong_bytes_played")
	add("", "honest_blamed", "polluters", "polluters_found")
	for _, r := range metric.Reasons {
		add("segments", reasonName(r))
	}
	return list
}

func reasonName(reason string) string {
	name := []byte("not_from_peer_" + reason)
	for i, c := range name {
		if c == '-' {
			name[i] = '_'
		}
	}
	return string(name)
}

// compare makes the figures of a trace that was played with Leeway and by the origin alone.
func compare(with, without Swarm) map[string]float64 {
	a, b := with.sum(), without.sum()
	viewers := float64(a.received())
	v := map[string]float64{
		"viewer_bytes":               viewers,
		"origin_bytes":               float64(with.Served.OriginToViewers + with.Served.OriginToSeeds),
		"origin_to_viewers_bytes":    float64(with.Served.OriginToViewers),
		"origin_to_seeds_bytes":      float64(with.Served.OriginToSeeds),
		"seed_bytes":                 float64(with.Served.Seed),
		"signaling_bytes":            float64(with.Served.Signaling),
		"peer_direct_bytes":          float64(a.Bytes["peer"]),
		"relay_bytes":                float64(a.Bytes["peer_relay"] + a.Bytes["seed_relay"]),
		"duplicate_bytes":            float64(a.DuplicateBytes),
		"rejected_bytes":             float64(a.RejectedBytes),
		"wasted_bytes":               float64(a.WastedBytes),
		"failed_viewers":             float64(with.failed()),
		"failed_viewers_origin_only": float64(without.failed()),
		"contradictions":             float64(a.Contradictions),
		"wrong_bytes_played":         float64(with.WrongBytes + without.WrongBytes),

		"stalls":                     float64(a.Stalls),
		"stalls_origin_only":         float64(b.Stalls),
		"stall_ratio":                a.stallRatio(),
		"stall_ratio_origin_only":    b.stallRatio(),
		"stall_ratio_vs_origin_only": (a.stallRatio() + negligible) / (b.stallRatio() + negligible),

		"origin_bytes_origin_only": float64(without.Served.OriginToViewers),
	}
	addP95(v, "uplink_wait_p95", with.UplinkWaits)
	addP95(v, "uplink_wait_p95_headless", with.HeadlessWaits)
	blamed, polluters, found := with.blame()
	v["honest_blamed"], v["polluters"], v["polluters_found"] = float64(blamed), float64(polluters), float64(found)
	ratio := func(name string, above, below float64) {
		if below > 0 {
			v[name] = above / below
		}
	}
	ratio("offload_ratio", float64(a.Bytes["peer"]), viewers)
	ratio("egress_saved_ratio", float64(a.Bytes["peer"]-with.Served.OriginToSeeds), viewers)
	ratio("duplicate_ratio", float64(a.DuplicateBytes), viewers)
	v["startup_delay"], v["startup_delay_origin_only"] = with.startup(), without.startup()
	if with.startup() > 0 { // without a picture it is not the quickest
		ratio("startup_delay_vs_origin_only", with.startup(), without.startup())
	}
	v["mean_bitrate"], v["mean_bitrate_origin_only"] = a.bitrate(), b.bitrate()
	ratio("mean_bitrate_vs_origin_only", a.bitrate(), b.bitrate())
	for _, r := range metric.Reasons {
		v[reasonName(r)] = float64(a.Reasons[r])
	}
	return v
}

// addP95 adds what 95 of 100 values are below. Of none there is no figure: a queue that was not seen is not an empty one.
func addP95(v map[string]float64, name string, values []float64) {
	if len(values) > 0 {
		v[name] = slices.Sorted(slices.Values(values))[len(values)*95/100]
	}
}

// honest are the outcomes of those that do not pollute: what they see is what is measured.
func (s Swarm) honest() []Outcome {
	return slices.DeleteFunc(slices.Clone(s.Outcomes), func(o Outcome) bool { return o.Plan.Pollutes != "" })
}

// blame counts how often an honest viewer would not link another one again, the polluters, and those of them that at
// least one honest viewer has found out.
func (s Swarm) blame() (honest, polluters, found int) {
	guilty := map[string]bool{}
	for _, o := range s.Outcomes {
		if o.Plan.Pollutes != "" {
			polluters++
			guilty[o.Session] = true
		}
	}
	foundOut := map[string]bool{}
	for _, o := range s.honest() {
		for _, id := range o.Banned {
			if guilty[id] {
				foundOut[id] = true
			} else {
				honest++
			}
		}
	}
	return honest, polluters, len(foundOut)
}

// total is the statistics of all viewers of a run.
type total struct{ signal.Stats }

func (s Swarm) sum() total {
	t := total{signal.Stats{Bytes: map[string]int64{}, Reasons: map[string]int64{}}}
	for _, o := range s.honest() {
		for k, n := range o.Stats.Bytes {
			t.Bytes[k] += n
		}
		for k, n := range o.Stats.Reasons {
			t.Reasons[k] += n
		}
		t.DuplicateBytes += o.Stats.DuplicateBytes
		t.WastedBytes += o.Stats.WastedBytes
		t.PrefetchedBytes += o.Stats.PrefetchedBytes
		t.PrefetchWasted += o.Stats.PrefetchWasted
		t.Promotions += o.Stats.Promotions
		t.RejectedBytes += o.Stats.RejectedBytes
		t.Stalls += o.Stats.Stalls
		t.StallMs += o.Stats.StallMs
		t.PlayedMs += o.Stats.PlayedMs
		t.PlayedBits += o.Stats.PlayedBits
		t.Contradictions += o.Stats.Contradictions
	}
	return t
}

// describe writes a line a viewer: bytes in kB, times in seconds, segments of the origin or the seed by reason.
func (s Swarm) describe(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "viewer\tline\tcame\tstartup\tplayed\tstalls\twaited\tbehind\tkbit/s\torigin\tseed\tpeers\tsent\ttwice\twasted\tahead\tlost\turgent\tno-cert\tno-holder\t")
	for i, o := range s.Outcomes {
		st := o.Stats
		one := total{st}
		fmt.Fprintf(t, "%d%s\t%s\t%.0f\t%.2f\t%.0f\t%d\t%.1f\t%.2f\t%.0f\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", i+1, o.Plan.mark(), o.Plan.Line.Name, o.Plan.Arrive.Seconds(),
			float64(st.StartupMs)/1000, float64(st.PlayedMs)/1000, st.Stalls, float64(st.StallMs)/1000, float64(o.LatencyMs)/1000, 1000*one.bitrate(),
			st.Bytes["origin"]/1000, st.Bytes["seed"]/1000, st.Bytes["peer"]/1000, st.Uploaded["direct"]/1000, st.DuplicateBytes/1000, st.WastedBytes/1000,
			st.PrefetchedBytes/1000, st.PrefetchWasted/1000, st.Reasons["urgent"], st.Reasons["no-cert"], st.Reasons["no-holder"])
	}
	_ = t.Flush()
	for i, o := range s.Outcomes {
		if len(o.Notices) > 0 {
			fmt.Fprintf(w, "viewer %d was told: %s\n", i+1, strings.Join(o.Notices, ", "))
		}
	}
}

// failed counts the viewers that did not play: no other figure has those that never had a picture.
func (s Swarm) failed() (n int) {
	for _, o := range s.honest() {
		if o.Failed || o.Stats.StartupMs == 0 {
			n++
		}
	}
	return n
}

// startup is the median startup delay, seconds, of the viewers that had a picture.
func (s Swarm) startup() float64 {
	var all []int64
	for _, o := range s.honest() {
		if o.Stats.StartupMs > 0 {
			all = append(all, o.Stats.StartupMs)
		}
	}
	return median(all)
}

// received is all bytes that went to viewers.
func (t total) received() (n int64) {
	for _, k := range t.Bytes {
		n += k
	}
	return n
}

// stallRatio is the share of the time of watching that was spent waiting.
func (t total) stallRatio() float64 {
	if t.PlayedMs+t.StallMs == 0 {
		return 0
	}
	return float64(t.StallMs) / float64(t.PlayedMs+t.StallMs)
}

// bitrate is the mean of what was on screen, Mbit/s.
func (t total) bitrate() float64 {
	if t.PlayedMs == 0 {
		return 0
	}
	return float64(t.PlayedBits) / float64(t.PlayedMs) / 1000
}
