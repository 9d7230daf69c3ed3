// Package clusterbench is `leeway-lab bench cluster`: what viewers notice when a tracker, a NATS server or all of NATS is taken away. Three
// trackers and three NATS servers are processes of their own; thousands of sessions live in this one, some of them with real
// links to each other.
package clusterbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
	"github.com/leeway-video/leeway/internal/sleep"
)

const benchName = "cluster"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "Three trackers, three NATS servers: one is killed, or drained, or all of NATS is away for a minute. Which links, sessions and introductions survive, and when they are back.",
	Roles: map[string]bench.Role{"tracker": trackerRole, "nats": natsRole},
	Cases: []bench.Case{
		taking("tracker", "kill -9 of one tracker of three", whole, killTracker, 10, false),
		taking("nats", "kill -9 of one NATS server of three", whole, killServer, 10, false),
		taking("drain", "SIGTERM of one tracker of three", whole, drainTracker, 16, false),
		losing("nats-minute", whole, time.Minute, false),
		taking("rash", fmt.Sprintf("kill -9 of one tracker of three, whose clients all come back at once to trackers that begin %d handshakes a second", rash.handshakes), rash, killTracker, 10, true),
		{
			Name: "signal", About: "An offer and its answer between two sessions, at one tracker and at two that have a NATS server each, in turn.",
			Figures: []bench.Figure{
				{Name: "added_p50_seconds", Unit: "s", Goal: "<= 0.001"},
				{Name: "near_p50_seconds", Unit: "s"}, {Name: "far_p50_seconds", Unit: "s"},
				{Name: "near_p99_seconds", Unit: "s"}, {Name: "far_p99_seconds", Unit: "s"},
			},
			Run: signals,
		},
		taking("smoke", "kill -9 of one tracker, with a tenth of the sessions, for development", tenth, killTracker, 10, true),
		losing("nats-short", tenth, 10*time.Second, true),
	},
}

// scale is how many there are, and how long links are watched after the loss.
type scale struct {
	sessions, swarms, linked int
	watched                  time.Duration
	handshakes               int // handshakes that a tracker begins in a second, for clients that all come back at once; 0: others
}

// iceTime is longer than ICE takes to give a link up.
const iceTime = 32 * time.Second

var (
	whole = scale{sessions: 3000, swarms: 300, linked: 100, watched: iceTime}
	tenth = scale{sessions: 300, swarms: 30, linked: 20, watched: iceTime}
	rash  = scale{sessions: 3000, swarms: 300, linked: 100, watched: iceTime, handshakes: 130}
)

// rightWithin is how soon introductions have to be right; twice as long they are waited for.
const rightWithin = 15 * time.Second

// everyRun are figures whose goals hold in each run: nothing is lost, never.
func everyRun(figures ...bench.Figure) []bench.Figure {
	for i := range figures {
		figures[i].Every = figures[i].Goal != ""
	}
	return figures
}

// taking is the case of something that is taken away: all sessions are to be back within so many seconds, and in no second more
// than three tenths of them (a sixth is what the clients' spread makes of it).
func taking(name, about string, s scale, take taker, back int, extra bool) bench.Case {
	peak := "<= 0.3"
	if s.sessions < whole.sessions {
		peak = "" // of so few some second has more by chance
	}
	return bench.Case{
		Name: name, About: s.about(about), Extra: extra,
		Figures: everyRun(
			bench.Figure{Name: "link_ends"}, bench.Figure{Name: "link_ends_lost", Goal: "<= 0"},
			bench.Figure{Name: "sessions_lost_their_socket"},
			bench.Figure{Name: "sessions_not_resumed", Goal: "<= 0"}, bench.Figure{Name: "sessions_absent", Goal: "<= 0"},
			bench.Figure{Name: "all_back_seconds", Unit: "s", Goal: fmt.Sprintf("<= %d", back)},
			bench.Figure{Name: "peak_returns_per_second", Unit: "1/s"},
			bench.Figure{Name: "peak_returns_share", Unit: "of the lost/s", Goal: peak},
			bench.Figure{Name: "introductions_right_seconds", Unit: "s", Goal: "<= 15"}, bench.Figure{Name: "swarms_wrong", Goal: "<= 0"},
		),
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			return staged(ctx, r, s, func(st *stage) (bench.Sample, error) { return st.measure(ctx, r, take) })
		},
	}
}

func (s scale) about(what string) string {
	return fmt.Sprintf("%s: %d sessions in %d swarms, %d with real links.", what, s.sessions, s.swarms, s.linked)
}

// taker takes something away. It returns which trackers are left.
type taker func(c *cluster) (left []int, err error)

func killTracker(c *cluster) ([]int, error) { return []int{1, 2}, c.trackers[0].kill() }

func drainTracker(c *cluster) ([]int, error) {
	return []int{1, 2}, syscall.Kill(c.trackers[0].PID(), syscall.SIGTERM)
}

func killServer(c *cluster) ([]int, error) { return []int{0, 1, 2}, c.servers[0].kill() }

// stage is a cluster with its audience, before anything happens.
type stage struct {
	*cluster
	links    *links
	audience *loadgen.Audience
	scale    scale
}

// staged sets a stage, and has f play on it.
func staged(ctx context.Context, r *bench.Run, s scale, f func(*stage) (bench.Sample, error)) (sample bench.Sample, err error) {
	c, err := start(ctx, r, s)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	links := newLinks()
	defer func() { err = errors.Join(err, links.close()) }()
	audience, err := loadgen.OpenAudience(ctx, loadgen.AudienceConfig{
		Trackers: c.addresses, Sources: sources(s.sessions), Site: siteName, Sessions: s.sessions, Swarms: s.swarms, Want: 6, Update: 5 * time.Second, Opening: 32,
		Linker: links.of(s.linked), Rash: s.handshakes > 0,
	})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, audience.Close()) }()
	before, err := prober{audience: audience, scale: s, trackers: all}.until(ctx, time.Now().Add(rightWithin))
	if err != nil || before.wrong > 0 {
		return sample, errors.Join(err, fmt.Errorf("%d swarms are not right before anything happened: %s", before.wrong, before.example))
	}
	if !sleep.For(ctx, 2*time.Second) { // links that probes began have ended, the last real ones are open
		return sample, ctx.Err()
	}
	return f(&stage{c, links, audience, s})
}

// all are the trackers of a cluster.
var all = []int{0, 1, 2}

func (st *stage) measure(ctx context.Context, r *bench.Run, take taker) (bench.Sample, error) {
	open := st.links.open()
	r.Logf("  %d sessions joined, %d on the first tracker; %d ends of links are open", st.scale.sessions, len(st.audience.On(0)), len(open))
	st.audience.Mark()
	at := time.Now()
	left, err := take(st.cluster)
	if err != nil {
		return bench.Sample{}, err
	}
	after, err := prober{audience: st.audience, scale: st.scale, trackers: left}.until(ctx, at.Add(2*rightWithin))
	if err != nil {
		return bench.Sample{}, err
	}
	// A swarm is right before the last of its sessions is back.
	for st.audience.Returns().Absent > 0 && time.Since(at) < 2*rightWithin {
		if !sleep.For(ctx, 100*time.Millisecond) {
			return bench.Sample{}, ctx.Err()
		}
	}
	if !sleep.For(ctx, time.Until(at.Add(st.scale.watched))) {
		return bench.Sample{}, ctx.Err()
	}
	back := st.audience.Returns()
	if back.Failed != nil {
		return bench.Sample{}, back.Failed
	}
	last := at
	for _, t := range back.Back {
		if t.After(last) {
			last = t
		}
	}
	most := peak(back.Back)
	sample := bench.Sample{Values: map[string]float64{
		"link_ends": float64(len(open)), "link_ends_lost": float64(st.links.lost(open)),
		"sessions_lost_their_socket": float64(back.Lost), "sessions_not_resumed": float64(back.Fresh), "sessions_absent": float64(back.Absent),
		"all_back_seconds": last.Sub(at).Seconds(), "peak_returns_per_second": float64(most), "peak_returns_share": float64(most) / float64(max(1, back.Lost)),
		"introductions_right_seconds": after.at.Sub(at).Seconds(), "swarms_wrong": float64(after.wrong),
	}}
	r.Logf("  %d sockets lost, all back after %.1f s, at most %d in one second; introductions right after %.1f s; %d swarms wrong %s",
		back.Lost, last.Sub(at).Seconds(), most, after.at.Sub(at).Seconds(), after.wrong, after.example)
	return sample, nil
}

// peak is the most of them within one second.
func peak(all []time.Time) (most int) {
	all = slices.SortedFunc(slices.Values(all), time.Time.Compare)
	first := 0
	for i, t := range all {
		for t.Sub(all[first]) > time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// trips is how often each way is measured, by new sessions after so many: trackers pass on a part only of what one session says
// to another without a pause.
const (
	trips     = 2000
	ofOnePair = 50
)

// tripsOfPairs measures both ways in turns, by a pair of sessions each.
func tripsOfPairs(ctx context.Context, c *cluster, begun int) (took map[string][]time.Duration, err error) {
	ways := map[string]*loadgen.Trip{}
	defer func() {
		for _, trip := range ways {
			err = errors.Join(err, trip.Close())
		}
	}()
	for name, to := range map[string]int{"near": 0, "far": 1} {
		title := fmt.Sprintf("/trip/%s/%d", name, begun)
		if ways[name], err = loadgen.OpenTrip(ctx, c.addresses[0], c.addresses[to], siteName, title); err != nil {
			delete(ways, name)
			return nil, err
		}
	}
	took = map[string][]time.Duration{}
	for range ofOnePair {
		for name, trip := range ways {
			d, err := trip.Once()
			if err != nil {
				return nil, err
			}
			took[name] = append(took[name], d)
		}
	}
	return took, nil
}

func signals(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	c, err := start(ctx, r, scale{})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	took := map[string][]time.Duration{}
	for begun := 0; begun < trips+trips/10; begun += ofOnePair {
		some, err := tripsOfPairs(ctx, c, begun)
		if err != nil {
			return sample, err
		}
		for name, all := range some {
			if begun >= trips/10 {
				took[name] = append(took[name], all...)
			}
		}
	}
	sample.Values = map[string]float64{}
	for name, all := range took {
		slices.Sort(all)
		sample.Values[name+"_p50_seconds"] = all[len(all)/2].Seconds()
		sample.Values[name+"_p99_seconds"] = all[len(all)*99/100].Seconds()
	}
	// An offer and an answer: two signals, each of which went across.
	sample.Values["added_p50_seconds"] = (sample.Values["far_p50_seconds"] - sample.Values["near_p50_seconds"]) / 2
	r.Logf("  offer and answer: %.3f ms at one tracker, %.3f ms at two", 1e3*sample.Values["near_p50_seconds"], 1e3*sample.Values["far_p50_seconds"])
	return sample, nil
}
