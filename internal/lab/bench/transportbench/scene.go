package transportbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

// kind is what a flow is made of.
type kind string

// The kinds of flow.
const (
	ledbatLane kind = "background" // our background lane over a link
	rfcLane    kind = "rfc6817"    // the same pacing on the same link, under RFC 6817's controller
	foreground kind = "foreground" // our foreground lane over a link
	plain      kind = "sctp"       // a bare pion data channel as it comes
	asked      kind = "asked"      // our background lane, for which the receiver asks piece by piece within a window of its own
	idle       kind = "idle"       // links that are open and carry nothing: for foreground bursts with nothing beside
	cubic      kind = "cubic"      // kernel TCP
	reno       kind = "reno"       // kernel TCP
	bbr        kind = "bbr"        // kernel TCP
)

func (k kind) tcp() bool { return k == cubic || k == reno || k == bbr }

// flow is a sender and what receives from it, each in a namespace and (but for TCP, which is the kernel's) a process of
// its own.
type flow struct {
	kind    kind
	from    time.Duration // since the scene began
	to      time.Duration // 0: to its end
	peers   int           // receivers, with a link each; 0 is one
	senders int           // hosts that send to one receiver, with a link each; 0 is one
	slow    netlab.Link   // what the last peer has before it, of several
	reverse bool          // TCP only: against the direction of the others
	near    page          // whether the senders are in browsers
	far     page          // whether the receivers are
	// bursts are foreground segments that the sender's first link carries beside.
	bursts []burst
}

// burst is a foreground segment.
type burst struct {
	at    time.Duration
	bytes int
}

// scene is what one run plays: a line, and flows over it that come and go.
type scene struct {
	name   string
	line   netlab.Link // the bottleneck, from the senders to the receivers
	back   netlab.Link // the way back; the zero value is the line's rate, delay and queue, and nothing else of it
	flows  []flow
	length time.Duration
}

// ready is how long a scene waits for all of its links to open.
const ready = 30 * time.Second

// driver runs the two ends of a flow.
type driver interface {
	start() error
	stop() error
	cpu() float64 // seconds that its processes have used; 0 where it has none
	// close ends what is left; the driver has said all that it will.
	close() error
}

// play runs a scene. void says why the lab does not certify it.
func (s scene) play(ctx context.Context, r *bench.Run) (rec *record, void error, err error) {
	lab, err := netlab.New(netlab.Options{Seed: uint64(r.Number) + 1})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	sites, bottleneck := s.build(lab)
	if err := lab.Start(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rec = newRecord(s)
	drivers, err := s.drivers(ctx, r, sites, rec)
	for _, d := range drivers {
		defer func() { err = errors.Join(err, d.close()) }()
	}
	if err != nil {
		return nil, nil, err
	}
	w, err := newWitness(sites[len(s.flows)], s.line.Rate)
	if err != nil {
		return nil, nil, err
	}
	defer w.close()
	if err := s.run(ctx, lab, bottleneck, drivers, rec, w); err != nil {
		return nil, nil, err
	}
	report, err := lab.Report()
	if err != nil {
		return nil, nil, err
	}
	r.Logf("  %s: %v", s.name, report)
	rec.say(r.Log)
	return rec, report.Certify(), nil
}

// site is where a flow's ends are.
type site struct{ near, far []*netlab.Host }

// build makes the dumbbell: hosts for each flow, and a pair for the witness, which is the last; and the bottleneck between.
func (s scene) build(lab *netlab.Lab) ([]site, *netlab.Direction) {
	back := s.back
	if back == (netlab.Link{}) {
		back = netlab.Link{Rate: s.line.Rate, Delay: s.line.Delay, Queue: s.line.Queue}
	}
	left, right := lab.Router("left"), lab.Router("right")
	line := lab.Connect(left, right, netlab.Path{Up: s.line, Down: back})
	var all []site
	for i, f := range append(slices.Clone(s.flows), flow{}) {
		var at site
		for k := range max(f.senders, 1) {
			near, _ := lab.Attach(nearName(i, k), left, netlab.Path{})
			at.near = append(at.near, near)
		}
		for k := range max(f.peers, 1) {
			access := netlab.Path{}
			if k > 0 && k == f.peers-1 {
				access.Down = f.slow
			}
			far, _ := lab.Attach(farName(i, k), right, access)
			at.far = append(at.far, far)
		}
		all = append(all, at)
	}
	return all, line.Up
}

func nearName(flow, sender int) string { return fmt.Sprintf("left-%d-%d", flow+1, sender+1) }

func farName(flow, peer int) string { return fmt.Sprintf("right-%d-%d", flow+1, peer+1) }

// drivers starts the processes of all flows and waits until their links are open.
func (s scene) drivers(ctx context.Context, r *bench.Run, sites []site, rec *record) ([]driver, error) {
	var all []driver
	for i, f := range s.flows {
		var d driver
		var err error
		switch at := sites[i]; {
		case f.kind.tcp() && f.reverse:
			d, err = newTCP(ctx, f.kind, at.far[0], at.near[0])
		case f.kind.tcp():
			d, err = newTCP(ctx, f.kind, at.near[0], at.far[0])
		default:
			d, err = newLinks(ctx, r, fmt.Sprintf("%s-%d", f.kind, i+1), f, at, rec.flow(i))
		}
		if d != nil {
			all = append(all, d)
		}
		if err != nil {
			return all, fmt.Errorf("%s: flow %d (%s): %w", s.name, i+1, f.kind, err)
		}
	}
	return all, nil
}

// run lets the scene's events happen and takes down what is seen.
func (s scene) run(ctx context.Context, lab *netlab.Lab, bottleneck *netlab.Direction, drivers []driver, rec *record, w *witness) error {
	if !sleep.For(ctx, settle) { // what opening the links left in the queues
		return ctx.Err()
	}
	if err := lab.Mark(); err != nil {
		return err
	}
	rec.begin(time.Now())
	w.run(rec)
	defer w.close()
	watching, enough := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { rec.watchQueue(watching, bottleneck) })
	defer watch.Wait()
	defer enough()
	started, stopped, last := make([]bool, len(drivers)), make([]bool, len(drivers)), time.Duration(0)
	for n := 0; ; n++ {
		now := time.Since(rec.begun)
		report, err := lab.Report()
		if err != nil {
			return err
		}
		rec.look(now, report)
		if changes := s.changes(now, last); n == 0 || changes || now >= s.length {
			for i, d := range drivers {
				rec.spends(i, now, d.cpu())
			}
		}
		if now >= s.length {
			return nil
		}
		for i, f := range s.flows {
			if !started[i] && now >= f.from {
				started[i] = true
				err = errors.Join(err, drivers[i].start())
			}
			if !stopped[i] && f.to > 0 && now >= f.to {
				stopped[i] = true
				err = errors.Join(err, drivers[i].stop())
			}
		}
		last = now
		if err != nil {
			return err
		}
		if !sleep.For(ctx, time.Duration(n+1)*step-time.Since(rec.begun)) {
			return ctx.Err()
		}
	}
}

// changes says whether a flow comes or goes between two moments.
func (s scene) changes(now, last time.Duration) bool {
	return slices.ContainsFunc(s.flows, func(f flow) bool { return f.from > last && f.from <= now || f.to > last && f.to <= now })
}

// settle is how long nothing happens before a scene begins.
const settle = time.Second
