package swarmbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

// late is how long after the end of its film a viewer may still play: stalls and seeks take their time.
const late = 2 * time.Minute

// queueTime is what the buffers of access lines hold: as much as such lines are known for, and no bloat.
const queueTime = 100 * time.Millisecond

// stage is a lab with the servers in one place and a host for every viewer behind its own access line.
type stage struct {
	lab     *netlab.Lab
	servers *servers
	viewers []*netlab.Host
	uplinks []*uplink // of those that have the least
	speed   float64   // of the film; 0 is 1
	mirror  *mirror   // of what viewers download beside; nil where none does
	parts   bool      // headless viewers play the parts of a low-latency stream
	seats   []*seat   // of a way's viewers; nil for a viewer without a browser
	records string    // how files begin that headless viewers write their decisions to; empty: none
}

func (s *stage) close() error {
	return errors.Join(s.mirror.close(), s.servers.Close(), s.lab.Close())
}

// build makes the lab of a trace and starts the servers in it.
func build(ctx context.Context, r *bench.Run, plans []Plan, o demosite.Options) (*stage, error) {
	lab, err := netlab.New(netlab.Options{Seed: uint64(r.Number) + 1})
	if err != nil {
		return nil, err
	}
	s := &stage{lab: lab}
	core := lab.Router("core")
	place, _ := lab.Attach("servers", core, netlab.Path{})
	for i, p := range plans {
		link := func(rate int64) netlab.Link {
			return netlab.Link{Rate: rate, Delay: p.Line.RTT / 2, Queue: max(32<<10, netlab.BDP(rate, queueTime))}
		}
		h, line := lab.Attach(fmt.Sprintf("viewer-%d", i+1), core, netlab.Path{Down: link(p.Line.Down), Up: link(p.Line.Up)})
		s.viewers = append(s.viewers, h)
		if p.Line.Up <= thinUplink {
			s.uplinks = append(s.uplinks, &uplink{name: line.Up.Name, rate: p.Line.Up, browser: p.Browser})
		}
	}
	if err = lab.Start(); err == nil {
		s.mirror, err = openMirror(ctx, place, plans)
	}
	if err == nil {
		s.servers, err = serve(ctx, place, o)
	}
	if err != nil {
		return nil, errors.Join(err, s.mirror.close(), lab.Close())
	}
	return s, nil
}

// The ways of playing a trace, as they are called in what is printed.
const (
	withLeeway      = "with Leeway"
	originOnly      = "by the origin alone"
	withoutPrefetch = "with Leeway, without prefetch"
)

// ways of playing the trace of a case; the first two are always compared.
func (s scenario) ways() []string {
	switch {
	case s.prefetch:
		return []string{withLeeway, originOnly, withoutPrefetch}
	case s.rival:
		return []string{withLeeway, originOnly, withRival}
	case s.kinds:
		return []string{withLeeway, originOnly, withLeewayFirefox, originOnlyFirefox, withLeewayMixed}
	}
	return []string{withLeeway, originOnly}
}

// servers are those of one way. Where prefetch is not what is asked about nothing is fetched ahead, as before there was any. Beside
// another program all is as it is by default.
func (s scenario) servers(way string, log io.Writer) demosite.Options {
	prefetch := (s.prefetch || s.rival) && way == withLeeway
	o := demosite.Options{Log: log, Settings: []string{"LEEWAY_UP_PREFETCH=" + strconv.FormatBool(prefetch), "LEEWAY_UP_SIGN_FILM=" + strconv.FormatBool(s.signed)}}
	if s.live != nil {
		o.Film, o.Segment, o.Filmless = demosite.Stream, s.live.segment, s.live.part > 0
		o.Settings = append(o.Settings, s.live.settings()...)
	}
	if way == withRival {
		o.Settings = append(o.Settings, "LEEWAY_TRACKER_WEBTORRENT_TOKEN="+rivalToken)
	}
	return o
}

// apartVariable, if it is set, has the ways played one after the other: for a machine that cannot carry all at once.
const apartVariable = "LEEWAY_SWARM_APART"

// recordVariable, if it is set, is a folder for what the schedules of headless viewers saw and decided, a file each, for
// leeway-lab schedule replay.
const recordVariable = "LEEWAY_SWARM_RECORD"

// part is one way of playing a trace, in its lab.
type part struct {
	*stage
	way   string
	plans []Plan

	swarm     Swarm
	void, err error
}

// all plays a trace in all ways, those of a turn in the same minutes, each in a lab of its own with the same seed: what else the machine
// does is then the same for all. void says why nothing is claimed of the run.
func (s scenario) all(ctx context.Context, r *bench.Run, plans []Plan) (swarms []Swarm, void, err error) {
	ways := s.ways()
	var voids []error
	for turn := range slices.Chunk(ways, s.atOnce(len(ways))) {
		parts, err := s.turn(ctx, r, plans, turn)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range parts {
			swarms = append(swarms, p.swarm)
			if p.void != nil {
				voids = append(voids, fmt.Errorf("%s: %w", p.way, p.void))
			}
		}
	}
	for i, way := range ways {
		r.Logf("%s", way)
		swarms[i].describe(r.Log)
		r.Logf("lab: %v", swarms[i].Lab)
	}
	return swarms, errors.Join(voids...), nil
}

// turn plays some ways at once. Their servers run no longer than that: those of a live stream encode it all the time.
func (s scenario) turn(ctx context.Context, r *bench.Run, plans []Plan, ways []string) (parts []*part, err error) {
	defer func() {
		for _, p := range parts {
			err = errors.Join(err, p.close())
		}
	}()
	for _, way := range ways {
		st, err := build(ctx, r, plans, s.servers(way, r.Log))
		if err != nil {
			return parts, err
		}
		st.parts = s.live != nil && s.live.part > 0
		parts = append(parts, &part{stage: st, way: way, plans: s.cast(way, plans)})
		if folder := os.Getenv(recordVariable); folder != "" {
			st.records = filepath.Join(folder, fmt.Sprintf("run %d %s ", r.Number, way))
		}
	}
	if ways[0] == withLeeway {
		stop, err := parts[0].scraped()
		if err != nil {
			return parts, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	return parts, s.take(ctx, r, parts)
}

// atOnce is how many of so many ways are played at once. Where all viewers are browsers one way is played after the other: a machine that
// carries one carries not three at once.
func (s scenario) atOnce(ways int) int {
	if os.Getenv(apartVariable) != "" || s.rival || s.kinds {
		return 1
	}
	return ways
}

// take plays the ways of one turn, once all of its browsers have started.
func (s scenario) take(ctx context.Context, r *bench.Run, turn []*part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seats []*seat
	for _, p := range turn {
		defer p.leave()
		if err := p.open(ctx, p.plans, p.way); err != nil {
			return fmt.Errorf("%s: %w", p.way, err)
		}
		seats = append(seats, p.seats...)
	}
	if err := ready(ctx, seats); err != nil {
		return err
	}
	for _, p := range turn {
		s.live.settle(ctx, p.servers)
	}
	var wg sync.WaitGroup
	for _, p := range turn {
		wg.Go(func() {
			p.swarm, p.void, p.err = p.play(ctx, r, p.plans, s, p.way)
			if p.err != nil {
				p.err = fmt.Errorf("%s: %w", p.way, p.err)
				cancel()
			}
		})
	}
	wg.Wait()
	var errs []error
	for _, p := range turn {
		errs = append(errs, p.err)
	}
	return errors.Join(errs...)
}

// play has a trace's viewers watch and asks each what came of it.
func (s *stage) play(ctx context.Context, r *bench.Run, plans []Plan, sc scenario, way string) (swarm Swarm, void, err error) {
	if err := s.lab.Mark(); err != nil {
		return swarm, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	swarm.Outcomes = make([]Outcome, len(plans))
	errs := make([]error, len(plans)+1)
	progress := &progress{log: r.Log, way: way, all: len(plans), lab: s.lab}
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() {
			if !sleep.For(ctx, p.Arrive) {
				return
			}
			progress.add(1, 0)
			defer progress.add(-1, 1)
			patient, done := context.WithTimeout(ctx, sc.film+late)
			defer done()
			swarm.Outcomes[i], errs[i] = s.watch(patient, s.viewers[i], p, way, s.seats[i])
			if errs[i] != nil {
				errs[i] = fmt.Errorf("viewer %d: %w", i+1, errs[i])
				cancel()
			}
		})
	}
	over := make(chan struct{})
	var beside sync.WaitGroup
	if sc.outage.length > 0 {
		beside.Go(func() { errs[len(plans)] = sc.outage.happen(ctx, s.servers) })
	}
	if sc.live != nil {
		beside.Go(func() { errs[len(plans)] = sc.live.happen(ctx, s.servers) })
	}
	beside.Go(func() { progress.run(over) })
	beside.Go(func() { s.lookAtUplinks(over) })
	wg.Wait()
	close(over)
	cancel()
	beside.Wait()
	if err := errors.Join(errs...); err != nil {
		return swarm, nil, err
	}
	if swarm.Served, err = s.servers.served(); err != nil {
		return swarm, nil, err
	}
	if swarm.Lab, err = s.lab.Report(); err != nil {
		return swarm, nil, err
	}
	swarm.UplinkWaits, swarm.HeadlessWaits = s.waits()
	var streamed map[string]string
	if sc.live != nil {
		if streamed, err = s.servers.streamed(); err != nil {
			return swarm, nil, err
		}
	}
	if swarm.WrongBytes, err = s.servers.wrongBytes(swarm.Outcomes, streamed); err != nil {
		return swarm, nil, err
	}
	return swarm, errors.Join(swarm.Lab.Certify(), progress.spare.certify()), nil
}

// watch is one viewer from its arrival to its end, and what else its machine does. at is where its browser is, nil: it has none.
func (s *stage) watch(ctx context.Context, host *netlab.Host, p Plan, way string, at *seat) (o Outcome, err error) {
	var other sync.WaitGroup
	var downloaded int64
	var failed error
	if p.DownloadFor > 0 {
		other.Go(func() { downloaded, failed = s.mirror.download(ctx, host, p) })
	}
	if at != nil {
		o, err = at.watch(ctx, p)
	} else {
		o, err = s.headless(ctx, host, p, way != originOnly)
	}
	other.Wait()
	o.Downloaded = downloaded
	return o, errors.Join(err, failed)
}

// headless has a process of this program watch.
func (s *stage) headless(ctx context.Context, host *netlab.Host, p Plan, peers bool) (Outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return Outcome{}, err
	}
	o := order{Manifest: s.servers.Manifest(), Peers: peers, Plan: p, Speed: s.speed, Parts: s.parts}
	if s.records != "" && peers {
		o.Record = s.records + host.Name() + ".jsonl"
	}
	what, err := json.Marshal(o)
	if err != nil {
		return Outcome{}, err
	}
	cmd := host.Command(ctx, self, bench.ChildCommand, benchName, roleViewer)
	text := &bench.Tail{}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(what), text
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // many viewers have few processors, and threads that wake each other cost a fifth of them
	out, err := cmd.Output()
	var answer told
	if unread := json.Unmarshal(out, &answer); unread != nil {
		return Outcome{}, fmt.Errorf("no summary: %w\n%s", errors.Join(err, unread), text)
	}
	// Playback that failed for good is an outcome like others.
	sum := answer.Summary
	return Outcome{Plan: p, Stats: sum.Stats, LatencyMs: sum.LatencyMs, Leaps: sum.Leaps, Failed: sum.Error != "", Session: sum.Session, Banned: sum.BannedPeers, Played: answer.Played}, nil
}

// progress says now and then how many are watching.
type progress struct {
	log io.Writer
	way string
	all int
	lab *netlab.Lab

	spare spare // of run

	mu             sync.Mutex
	watching, done int // guarded by mu
}

const progressEvery = 15 * time.Second

func (p *progress) add(watching, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching += watching
	p.done += done
}

func (p *progress) run(over <-chan struct{}) {
	began := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			if r, err := p.lab.Report(); err == nil { // the last report fails the run if the emulator is gone
				p.spare.look(r)
			}
			p.mu.Lock()
			fmt.Fprintf(p.log, "  %3.0f s, %s: %d watching, %d of %d done\n", time.Since(began).Seconds(), p.way, p.watching, p.done, p.all)
			p.mu.Unlock()
		}
	}
}
