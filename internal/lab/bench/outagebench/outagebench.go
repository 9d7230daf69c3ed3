// Package outagebench is `leeway-lab bench outage`: a page in Chromium with Leeway's script, a part of Leeway that fails, and
// beside it at the same time the same page without the script on a line of the same kind. With the script nothing may be worse.
package outagebench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

const benchName = "outage"

// failure is what fails.
type failure struct {
	name, about string
	behavior    behavior // of the tracker
	engine      engine
	seedless    bool // the site has no seed
	silentSeed  bool // its seed takes links and requests, and says nothing
	slowPeers   bool // a peer that holds the film sends 1 kB/s, the seed too
	scriptless  bool // neither page has the script
	deadTURN    bool // the tracker names a relay that is not there
}

// The order is that of the matrix. With healthy nothing fails: what is worse there is no failure's doing.
var failures = []failure{
	{name: "healthy", about: "nothing fails"},
	{name: "no-script", about: "neither page has the script: what two equal pages differ by", scriptless: true},
	{name: "refuses", about: "no process listens where the tracker should", behavior: refuses},
	{name: "blackholes", about: "packets to the tracker vanish", behavior: blackholes},
	{name: "silent", about: "the tracker takes connections and says nothing", behavior: silent},
	{name: "late", about: "the tracker answers after 5 s", behavior: late},
	{name: "closes", about: "the tracker closes each connection behind its welcome", behavior: closes},
	{name: "forbids", about: "the tracker answers 403", behavior: forbids},
	{name: "dies", about: "the tracker dies 5 s after the first picture", behavior: dies},
	{name: "no-seed", about: "the site has no seed", seedless: true},
	{name: "silent-seed", about: "the seed takes links and requests, and sends nothing", silentSeed: true},
	{name: "slow-peers", about: "three viewers and the seed hold everything and send 1 kB/s", slowPeers: true},
	{name: "no-engine", about: "the engine's script is not there", engine: engineMissing},
	{name: "slow-engine", about: "the engine's script takes 10 s", engine: engineSlow},
	{name: "dead-turn", about: "the relay that the tracker names does not answer", deadTURN: true},
}

// access is a viewer's line.
type access struct {
	name string
	rate int64         // bits per second
	rtt  time.Duration // to the servers, without queues
	low  int64         // what the rate falls to, 4 s after the first picture and for 15 s; 0: it stays
}

// falling is the line whose fall a full buffer outlasts: there a held request shows.
const falling = "20-then-0.2"

var lines = []access{
	{name: "2", rate: 2_000_000, rtt: 30 * time.Millisecond},
	{name: "4", rate: 4_000_000, rtt: 30 * time.Millisecond},
	{name: "20", rate: 20_000_000, rtt: 30 * time.Millisecond},
	{name: falling, rate: 20_000_000, rtt: 30 * time.Millisecond, low: 200_000},
	{name: "4-300ms", rate: 4_000_000, rtt: 300 * time.Millisecond},
}

const (
	fallAfter = 4 * time.Second
	fallFor   = 15 * time.Second
	// dieAfter is when in play a tracker dies.
	dieAfter = 5 * time.Second
)

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "Chromium with Leeway while a part of it fails, and without Leeway at the same time, each on a line of its own.",
	Cases: cases(),
	Sets:  sets(),
	Roles: map[string]bench.Role{roleSeed: silentSeedRole},
}

// cell is one failure on one line.
type cell struct {
	failure
	line access
}

func (c cell) name() string { return c.failure.name + "/" + c.line.name }

func cells() (all []cell) {
	for _, l := range lines {
		for _, f := range failures {
			all = append(all, cell{f, l})
		}
	}
	return all
}

func cases() (all []bench.Case) {
	for _, c := range cells() {
		all = append(all, bench.Case{
			Name: c.name(), About: fmt.Sprintf("%s; %s.", c.about, c.line), Extra: c.line.name != falling, Needs: demopage.Missing,
			Figures: figures(), Run: c.run, Takes: func(int) time.Duration { return 40 * time.Second },
		})
	}
	return all
}

func (a access) String() string {
	s := fmt.Sprintf("%g Mbit/s, %d ms", float64(a.rate)/1e6, a.rtt.Milliseconds())
	if a.low > 0 {
		s += fmt.Sprintf(", %g Mbit/s from %g s after the first picture on, for %g s", float64(a.low)/1e6, fallAfter.Seconds(), fallFor.Seconds())
	}
	return s
}

// sets are all cells of a failure, of a line, and at all.
func sets() map[string][]string {
	all := map[string][]string{}
	for _, c := range cells() {
		for _, set := range []string{c.failure.name, c.line.name, "all"} {
			all[set] = append(all[set], c.name())
		}
	}
	return all
}

// figures are each way's, and how much more with Leeway: what a page is busy with differs from run to run, so the median has
// to keep to it and not every run.
func figures() []bench.Figure {
	all := []bench.Figure{
		{Name: "stall_more", Unit: "s", Goal: "<= 0.25"}, {Name: "startup_more", Unit: "s", Goal: "<= 0.25"},
		{Name: "until_10s_more", Unit: "s", Goal: "<= 1", Optional: true}, // what the other page never has is compared with nothing
		{Name: "same_media_more", Unit: "s"},
	}
	for _, f := range []string{"stall", "startup", "until_10s", "ahead_at_fall"} {
		all = append(all, bench.Figure{Name: f, Unit: "s"}, bench.Figure{Name: f + "_without", Unit: "s"})
	}
	return append(all, bench.Figure{Name: "from_peers", Unit: "MB"}, bench.Figure{Name: "from_origin", Unit: "MB"})
}

// compare makes a run's figures.
func compare(with, without watched) map[string]float64 {
	v := map[string]float64{"from_peers": with.peers / 1e6, "from_origin": with.origin / 1e6}
	if with.filled == 0 && without.filled > 0 { // the worst run is none to leave out: it took all of the watching at least
		with.filled = with.startup + watchAtMost
	}
	for _, f := range []struct {
		name string
		of   func(watched) (float64, bool)
	}{
		{"stall", func(w watched) (float64, bool) { return w.stall.Seconds(), true }},
		{"startup", func(w watched) (float64, bool) { return w.startup.Seconds(), true }},
		// Since the navigation: a viewer that has the first picture later has more in hand by then.
		{"until_10s", func(w watched) (float64, bool) { return w.filled.Seconds(), w.filled > 0 }},
		{"ahead_at_fall", func(w watched) (float64, bool) { return w.aheadAtFall, w.fell }},
	} {
		mine, ok := f.of(with)
		theirs, also := f.of(without)
		if !ok || !also {
			continue
		}
		v[f.name], v[f.name+"_without"] = mine, theirs
		if f.name != "ahead_at_fall" {
			v[f.name+"_more"] = mine - theirs
		}
	}
	if later, ok := sameMedia(with, without); ok {
		v["same_media_more"] = later.Seconds()
	}
	return v
}

// run measures a cell once.
func (c cell) run(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	s, err := c.build(ctx, r)
	if err != nil {
		return sample, err
	}
	defer func() { err = closed(err, s) }()
	with, without, err := s.watch(ctx)
	if err != nil {
		return sample, err
	}
	r.Logf("  with    %v\n  without %v", with, without)
	sample.Values = compare(with, without)
	sample.Void, err = s.lab.Void()
	return sample, err
}
