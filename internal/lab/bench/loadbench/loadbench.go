// Package loadbench is `leeway-lab bench load`: how many sessions one arm holds, how quickly it makes them, and what it costs beside the
// peer that it is used on.
package loadbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/load"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/lab/selfwatch"
	"github.com/leeway-video/leeway/internal/sleep"
)

const benchName = "load"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "How many sessions an arm holds against a peer on the same machine, and what it costs; arm, peer and controller are processes of their own.",
	Roles: map[string]bench.Role{theArm: role, theTested: role},
	Cases: []bench.Case{
		armCase("arm", armwire.Link, 2000, 10_000, false),
		armCase("peer-connection", armwire.PeerConnection, 500, 2000, true),
		mediaCase(jattack[0]), mediaCase(jattack[1]), kneeCase(),
	},
}

const (
	rate     = 50_000 // bit/s of an active session
	chunk    = 3125   // bytes: two a second
	sockets  = 128    // of each side: 16,384 pairs of addresses
	together = 64     // handshakes under way at a time
	settle   = 10 * time.Second
	warm     = 5 * time.Second
	period   = 15 * time.Second
	patience = 3 * time.Minute // of a phase
	// enough is the share of the chunks due that a session has to have received to count as active.
	enough = 0.98
)

func armCase(name string, stack armwire.Stack, active, idle int, extra bool) bench.Case {
	goal := func(s string) string {
		if extra {
			return ""
		}
		return s
	}
	return bench.Case{
		Name: name, Extra: extra,
		About: fmt.Sprintf("%d active sessions of 50 kbit/s in two chunks a second (the peer sends, as a server does; then the arm), then %d idle ones, of the stack %s at both ends.", active, idle, stack),
		Figures: []bench.Figure{
			{Name: "active_sessions", Goal: goal(">= 2000")},
			{Name: "idle_sessions", Goal: goal(">= 10000")},
			{Name: "handshakes_per_second", Unit: "/s", Goal: goal(">= 150")},
			{Name: "arm_cpu_vs_tested", Goal: goal("<= 1")},
			{Name: "arm_cpu_vs_tested_sending"},
			{Name: "rss_bytes_per_idle_session", Unit: "B", Goal: goal("<= 65000")},
			{Name: "rss_bytes_per_idle_session_arm", Unit: "B"},
			{Name: "rss_bytes_per_idle_session_tested", Unit: "B"},
			{Name: "arm_processors"}, {Name: "tested_processors"},
			{Name: "chunk_delay_p99", Unit: "ms"},
			{Name: "setup_p99", Unit: "ms"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return run(ctx, r, stack, active, idle) },
	}
}

// world is the processes of a run.
type world struct {
	ctx         context.Context
	c           *load.Controller
	arm, tested side
	stack       armwire.Stack
	figures     map[string]float64
	watch       selfwatch.Watch
	next        int
	void        string // why nothing is claimed
}

func run(ctx context.Context, r *bench.Run, stack armwire.Stack, active, idle int) (_ bench.Sample, err error) {
	c, err := load.Listen(load.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		return bench.Sample{}, err
	}
	w := &world{ctx: ctx, c: c, stack: stack, figures: map[string]float64{}}
	defer func() { err = errors.Join(err, w.stop()) }()
	watched, unwatch := context.WithCancel(ctx)
	w.watch.Start(watched)
	defer w.watch.Wait()
	defer unwatch()
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for name, s := range map[string]*side{theArm: &w.arm, theTested: &w.tested} {
		if *s, err = start(patient, r, c, name, sockets); err != nil {
			return bench.Sample{}, err
		}
	}
	for _, sends := range []string{theTested, theArm} {
		if err := w.active(r, active, sends); err != nil {
			return bench.Sample{}, err
		}
	}
	if err := w.idle(r, idle); err != nil {
		return bench.Sample{}, err
	}
	return bench.Sample{Values: w.figures, Void: w.void}, nil
}

// open makes n sessions of the arm against as many of the tested peer, and returns both, and how long it took.
// sends is the side that sends chunks; empty: neither does.
func (w *world) open(n int, sends string) (ours, theirs []*load.Session, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	source := map[string]string{}
	if sends != "" {
		source[sends] = "d"
	}
	began := time.Now()
	var g errgroup.Group
	g.SetLimit(together)
	ours, theirs = make([]*load.Session, n), make([]*load.Session, n)
	for i := range n {
		id := "s" + strconv.Itoa(w.next)
		w.next++
		g.Go(func() error {
			var err error
			if theirs[i], err = w.tested.Create(ctx, id, armwire.SessionBody{Stack: w.stack, Source: source[theTested]}); err != nil {
				return err
			}
			if ours[i], err = w.arm.Create(ctx, id, armwire.SessionBody{Stack: w.stack, Source: source[theArm]}); err != nil {
				return err
			}
			if err = load.Connect(ctx, ours[i], theirs[i], armwire.OfferBody{Data: 1}); err != nil {
				return err
			}
			return load.WaitBothUp(ctx, ours[i], theirs[i])
		})
	}
	err = g.Wait()
	return ours, theirs, time.Since(began), err
}

// destroy ends sessions of both sides, and waits until they are gone.
func (w *world) destroy(lists ...[]*load.Session) error {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(together)
	for _, s := range slices.Concat(lists...) {
		g.Go(func() error { return s.Destroy(ctx) })
	}
	return g.Wait()
}

// active measures sessions on which one side sends chunks.
func (w *world) active(r *bench.Run, n int, sends string) error {
	from, to := w.arm, w.tested
	if sends == theTested {
		from, to = to, from
	}
	if _, err := from.Call(w.ctx, armwire.AddMediaSource, "", armwire.SourceBody{Source: "d", Kind: armwire.SourceData, Rate: rate, Chunk: chunk}); err != nil {
		return err
	}
	ours, theirs, took, err := w.open(n, sends)
	if err != nil {
		return err
	}
	receivers := theirs
	if sends == theTested {
		receivers = ours
	}
	r.Logf("  %d active sessions are up after %.1f s; the %s sends", n, took.Seconds(), sends)
	if !sleep.For(w.ctx, warm) {
		return w.ctx.Err()
	}
	before, armBefore, testedBefore, err := w.counts(receivers)
	if err != nil {
		return err
	}
	began := time.Now()
	ownBefore, _ := proc.CPU(os.Getpid()) // 0 where the system does not tell
	w.watch.Figures(true)
	delays := load.NewDelays()
	to.Listen(delays.Hear)
	if !sleep.For(w.ctx, period) {
		return w.ctx.Err()
	}
	long := time.Since(began).Seconds()
	busy := w.watch.Figures(false).MachineBusy
	after, armAfter, testedAfter, err := w.counts(receivers)
	if err != nil {
		return err
	}
	to.Listen(nil)
	held := 0
	for i := range after {
		if float64(after[i]-before[i]) >= enough*long*rate/8/chunk-1 {
			held++
		}
	}
	ownAfter, _ := proc.CPU(os.Getpid())
	w.others(float64(busy)/1000*float64(runtime.NumCPU()) - (ownAfter-ownBefore+armAfter-armBefore+testedAfter-testedBefore)/long)
	w.note(sends, held, (armAfter-armBefore)/long, (testedAfter-testedBefore)/long, delays)
	r.Logf("  %d of %d sessions have what is due; arm %.2f processors, tested peer %.2f", held, n, (armAfter-armBefore)/long, (testedAfter-testedBefore)/long)
	return w.destroy(ours, theirs)
}

// mostOthers is how many processors other programs may use while sessions are active: there are two for the three processes of the bench.
const mostOthers = 0.3

// others sees what other programs used of the machine.
func (w *world) others(processors float64) {
	if processors > mostOthers {
		w.void = fmt.Sprintf("other programs used %.1f processors", processors)
	}
}

// note keeps the figures of active sessions: the worse of both directions, but the processors of each.
func (w *world) note(sends string, held int, arm, tested float64, delays *load.Delays) {
	f := w.figures
	if sends == theTested {
		f["active_sessions"], f["arm_cpu_vs_tested"] = float64(held), arm/tested
		f["arm_processors"], f["tested_processors"] = arm, tested
	} else {
		f["active_sessions"], f["arm_cpu_vs_tested_sending"] = min(f["active_sessions"], float64(held)), arm/tested
	}
	f["chunk_delay_p99"] = max(f["chunk_delay_p99"], delays.Chunk(99).Seconds()*1000)
}

// counts are the chunks that each session has received, and the processor time of both processes, seconds.
func (w *world) counts(of []*load.Session) (chunks []int64, ours, theirs float64, err error) {
	var g errgroup.Group
	g.SetLimit(together)
	chunks = make([]int64, len(of))
	for i, s := range of {
		g.Go(func() error {
			m, err := s.Arm.Call(w.ctx, armwire.GetState, s.ID, nil)
			if err != nil {
				return err
			}
			b, bad := armwire.DecodeBody[armwire.StateBody](m)
			if bad != nil {
				return bad
			}
			chunks[i] = b.Chunks
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, 0, 0, err
	}
	if ours, err = proc.CPU(w.arm.Process.PID()); err != nil {
		return nil, 0, 0, err
	}
	theirs, err = proc.CPU(w.tested.Process.PID())
	return chunks, ours, theirs, err
}

// idle measures sessions that carry nothing.
func (w *world) idle(r *bench.Run, n int) error {
	armBefore, testedBefore, err := w.memory()
	if err != nil {
		return err
	}
	setup := load.NewDelays()
	w.arm.Listen(setup.Hear)
	ours, theirs, took, err := w.open(n, "")
	if err != nil {
		return err
	}
	w.figures["handshakes_per_second"] = float64(n) / took.Seconds()
	r.Logf("  %d idle sessions are up after %.1f s", n, took.Seconds())
	if !sleep.For(w.ctx, settle) {
		return w.ctx.Err()
	}
	w.arm.Listen(nil)
	w.figures["setup_p99"] = setup.Setup(99).Seconds() * 1000
	armAfter, testedAfter, err := w.memory()
	if err != nil {
		return err
	}
	// Idle links end after 30 s without a sign of life: they are still there after more.
	if !sleep.For(w.ctx, 2*period+settle) {
		return w.ctx.Err()
	}
	held := 0
	for i := range ours {
		if ours[i].Reason() == "" && theirs[i].Reason() == "" {
			held++
		}
	}
	w.figures["idle_sessions"] = float64(held)
	arm, tested := float64(armAfter-armBefore)/float64(n), float64(testedAfter-testedBefore)/float64(n)
	w.figures["rss_bytes_per_idle_session_arm"], w.figures["rss_bytes_per_idle_session_tested"] = arm, tested
	w.figures["rss_bytes_per_idle_session"] = max(arm, tested)
	return nil
}

func (w *world) memory() (ours, theirs int64, err error) {
	if ours, err = w.arm.settle(); err != nil {
		return 0, 0, err
	}
	theirs, err = w.tested.settle()
	return ours, theirs, err
}

func (w *world) stop() error {
	var err error
	for _, s := range []side{w.arm, w.tested} {
		if s.Process != nil {
			err = errors.Join(err, s.Stop())
		}
	}
	return errors.Join(err, w.c.Close())
}
