package natbench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/viewer"
)

const (
	// afterRoaming is how long a viewer is watched: longer than a link takes that has to be given up and made anew.
	afterRoaming = 75 * time.Second
	// hearsAgain is how soon a viewer is to be served by others again, and linked as it is in the end.
	hearsAgain = 5 * time.Second
	// asleep is how long one sleeps: links, and the session at the tracker, are given up meanwhile.
	asleep = time.Minute
	// lag is within what came before is counted.
	lag = 500 * time.Millisecond
	// enough is the buffer with which hls.js asks for nothing.
	enough = 30 * time.Second
)

// roamer is a viewer in mid-play whose network goes from under it.
type roamer struct {
	name          string
	other         edge // of the viewer that was there before
	before, after edge // of its own; no after: the same
	sleeps        time.Duration
	want          result // how it is served in the end
	stalls        int64  // that it may have
	alone         bool   // what it is linked to in the end serves it while the origin does not: a relay
	browser       bool   // it is Chromium with a user's flags
}

// title is its name among the cases.
func (w roamer) title() string {
	if w.browser {
		return w.name + "/chromium"
	}
	return w.name
}

var roamers = []roamer{
	{name: "wifi-cellular/public", other: public, before: restricted, after: symmetric, want: meets},
	{name: "wifi-cellular/restricted", other: restricted, before: restricted, after: symmetric, want: relays},
	{name: "cellular-wifi/restricted", other: restricted, before: symmetric, after: restricted, want: meets},
	{name: "wifi-wifi/cone", other: cone, before: cone, after: restricted, want: meets},
	// UDP is blocked where it comes to, as in a hotel: the relay by TCP.
	{name: "wifi-hotel/public", other: public, before: restricted, after: blocked, want: relays, alone: true},
	// The headless player's clock runs on while its process is stopped, so that it wakes with nothing left to play: that is its one
	// stall. A browser's film stops with it.
	{name: "sleep/public", other: public, before: restricted, sleeps: asleep, want: meets, stalls: 1},
	{name: "sleep/restricted", other: restricted, before: symmetric, sleeps: asleep, want: relays, stalls: 1},
}

// browserRoamers are Chromium. The machine tells it that the network has changed, and it tells the page or does not.
var browserRoamers = []roamer{
	{name: "wifi-cellular/public", other: public, before: restricted, after: symmetric, want: meets, browser: true},
	{name: "wifi-cellular/restricted", other: restricted, before: restricted, after: symmetric, want: relays, browser: true},
	{name: "cellular-wifi/restricted", other: restricted, before: symmetric, after: restricted, want: meets, browser: true},
	{name: "wifi-hotel/public", other: public, before: restricted, after: blocked, want: relays, alone: true, browser: true},
}

var roamingFigures = []bench.Figure{
	{Name: "rows", Unit: ""},
	{Name: "as_expected", Unit: "of 1", Goal: ">= 1"},
	{Name: "served_again", Unit: "s", Goal: fmt.Sprintf("<= %g", hearsAgain.Seconds())},
	{Name: "linked_as_expected", Unit: "s", Goal: fmt.Sprintf("<= %g", hearsAgain.Seconds())},
	{Name: "stalls", Unit: "", Goal: "<= 0"}, // beyond what a row allows
	{Name: "longest_stall", Unit: "s"},
	{Name: "sessions_kept", Unit: "of 1", Goal: ">= 1"},
	{Name: "failed_again", Unit: "", Goal: "<= 0"},
}

// roamed is what came of a row.
type roamed struct {
	roamer
	before viewer.Summary
	last   viewer.Summary
	links  string // how they came and went
	got    result
	again  time.Duration // from when on others served it again, after the change or the waking
	linked time.Duration // from when on it was linked as it was in the end
	stalls int64
	stall  time.Duration // in all, since
	kept   bool          // the session
	failed int64         // links that never opened, since
	err    error
}

func (v roamed) good() bool {
	return v.err == nil && v.got == v.want && v.stalls <= v.roamer.stalls && v.kept
}

// roaming has viewers change their network in mid-play, and sleep.
func roaming(list []roamer) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
		pairs := make([]row, len(list))
		for i, w := range list {
			pairs[i] = row{a: w.other, b: w.before, moves: w.after}
		}
		s, err := build(ctx, r, pairs)
		if err != nil {
			return sample, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		out := make([]roamed, len(list))
		var wg sync.WaitGroup
		for i, w := range list {
			wg.Go(func() { out[i] = s.roam(ctx, r, i, w) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return sample, ctx.Err()
		}
		describeRoaming(r, out)
		report, err := s.lab.Report()
		if err != nil {
			return sample, err
		}
		r.Logf("lab: %v", report)
		return roamingValues(out), nil
	}
}

// roam plays one row.
func (s *stage) roam(ctx context.Context, r *bench.Run, i int, w roamer) (v roamed) {
	v.roamer = w
	title, at := fmt.Sprintf("roamer %d", i+1), s.pairs[i]
	first, err := start(ctx, r, at.a, s.named, s.named.Addr, title, fmt.Sprintf("roaming-%d-first", i+1))
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, first.stop()) }()
	if v.err = first.until(ctx, "two seconds of film", patience, func(s viewer.Summary) bool { return s.PositionMs > 2000 }); v.err != nil {
		return v
	}
	mover, err := s.settle(ctx, r, i, w, title)
	if err != nil {
		v.err = err
		return v
	}
	defer func() { v.err = errors.Join(v.err, mover.stop()) }()
	if v.err = mover.until(ctx, "links, and ten seconds of film", 2*patience, func(s viewer.Summary) bool {
		return served(wayOf(s)) && s.Linked["seed/direct"] > 0 && s.BufferMs > 10_000
	}); v.err != nil {
		return v
	}
	said, _ := mover.all()
	v.before = said[len(said)-1]
	if v.err = s.change(ctx, at, w, mover); v.err != nil {
		return v
	}
	// Its clock says when that was: a process that is stopped says nothing.
	began := v.before.WatchedMs + w.sleeps.Milliseconds()
	if said, _ = mover.all(); w.sleeps == 0 {
		began = said[len(said)-1].WatchedMs
	}
	until := began + afterRoaming.Milliseconds()
	v.err = mover.until(ctx, "played on", w.sleeps+afterRoaming+patience, func(s viewer.Summary) bool { return s.WatchedMs >= until })
	said, _ = mover.all()
	v.judge(said, began)
	return v
}

// settle has the one play whose network changes.
func (s *stage) settle(ctx context.Context, r *bench.Run, i int, w roamer, title string) (*watcher, error) {
	label := fmt.Sprintf("roaming-%d-mover", i+1)
	if w.browser {
		return browse(ctx, s.pairs[i].b, false, s.named, s.named.Addr, title, label)
	}
	return start(ctx, r, s.pairs[i].b, s.named, s.named.Addr, title, label)
}

// change does to a viewer what the row is about, and returns when that is over.
func (s *stage) change(ctx context.Context, at pair, w roamer, mover *watcher) error {
	if w.sleeps == 0 {
		err := at.b.Move(at.moves)
		if mover.moved != nil {
			mover.moved()
		}
		return err
	}
	// A machine that sleeps answers nothing, not even what its kernel would.
	pid := mover.process.PID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("put to sleep: %w", err)
	}
	dark := line
	dark.Loss = 1
	home := at.lines[len(at.lines)-1] // no row both sleeps and moves
	err := errors.Join(home.Up.Set(dark), home.Down.Set(dark))
	if err == nil {
		sleep.For(ctx, w.sleeps)
	}
	return errors.Join(err, home.Up.Set(line), home.Down.Set(line), syscall.Kill(pid, syscall.SIGCONT))
}

// judge reads what a viewer said from a moment of its clock on.
func (v *roamed) judge(said []viewer.Summary, began int64) {
	if len(said) == 0 {
		return
	}
	last := said[len(said)-1]
	v.last, v.links = last, history(said, began)
	v.got = result{way: wayOf(last)}
	v.kept = last.Session == v.before.Session
	v.stalls = last.Stats.Stalls - v.before.Stats.Stalls
	v.stall = time.Duration(last.Stats.StallMs-v.before.Stats.StallMs) * time.Millisecond
	for _, n := range last.Stats.LinkFailures {
		v.failed += n
	}
	for _, n := range v.before.Stats.LinkFailures {
		v.failed -= n
	}
	if v.again = afterRoaming; v.alone {
		v.again = 0
	}
	var base int64 = -1
	from := began // when it last had all that it wants
	for _, s := range said {
		if s.WatchedMs < began+lag.Milliseconds() {
			continue
		}
		if base < 0 {
			base = others(s)
		} else if others(s) > base && !v.alone {
			v.again = time.Duration(s.WatchedMs-from) * time.Millisecond
			break
		}
		if s.BufferMs >= enough.Milliseconds() {
			from = s.WatchedMs
		}
	}
	for i := len(said) - 1; i >= 0 && said[i].WatchedMs >= began && wayOf(said[i]) == v.got.way; i-- {
		v.linked = time.Duration(said[i].WatchedMs-began) * time.Millisecond
	}
}

// history is how links came and went from a moment on.
func history(said []viewer.Summary, began int64) string {
	var b strings.Builder
	was := ""
	for _, s := range said {
		now := strings.TrimPrefix(fmt.Sprint(s.Linked), "map")
		if s.WatchedMs >= began && now != was {
			fmt.Fprintf(&b, " %.1f s %s", float64(s.WatchedMs-began)/1000, now)
			was = now
		}
	}
	return b.String()
}

// served says whether another viewer is linked.
func served(w way) bool { return w == direct || w == byRelay }

// others is what came from viewers and seeds.
func others(s viewer.Summary) (n int64) {
	for source, bytes := range s.Stats.Bytes {
		if source != "origin" {
			n += bytes
		}
	}
	return n
}

func roamingValues(all []roamed) bench.Sample {
	var good, kept, again float64
	var extra int64
	var back, linked, stall time.Duration
	for _, v := range all {
		if v.good() {
			good++
		}
		if v.kept {
			kept++
		}
		if v.failed > 1 { // the attempt that says that there is no way any more
			again++
		}
		extra += max(0, v.stalls-v.roamer.stalls)
		back, linked, stall = max(back, v.again), max(linked, v.linked), max(stall, v.stall)
	}
	n := float64(len(all))
	return bench.Sample{Values: map[string]float64{
		"rows": n, "as_expected": good / n, "served_again": back.Seconds(), "linked_as_expected": linked.Seconds(),
		"stalls": float64(extra), "longest_stall": stall.Seconds(), "sessions_kept": kept / n, "failed_again": again,
	}}
}

func describeRoaming(r *bench.Run, all []roamed) {
	t := tabwriter.NewWriter(r.Log, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\tbefore\texpected\tcame to\tserved again\tlinked so\tstalls\tfailed\tsession\t")
	for _, v := range all {
		session := "kept"
		if !v.kept {
			session = "new"
		}
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%.1f s\t%.1f s\t%d (%.1f s)\t%d\t%s\t%s\n", v.title(), wayOf(v.before), v.want, v.got, v.again.Seconds(), v.linked.Seconds(),
			v.stalls, v.stall.Seconds(), v.failed, session, remark(v.err, v.good()))
	}
	_ = t.Flush()
	for _, v := range all {
		r.Logf("  %s: links%s; closed %v; %d reconnects; failures %v, then %v", v.title(), v.links, v.last.LinksClosed,
			v.last.Reconnects-v.before.Reconnects, v.before.Stats.LinkFailures, v.last.Stats.LinkFailures)
	}
}
