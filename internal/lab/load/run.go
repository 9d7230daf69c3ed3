package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/selfwatch"
	"github.com/leeway-video/leeway/internal/sleep"
)

// PeerName is the name of the arm that is the peer under test. All others hold the clients.
const PeerName = "peer"

const (
	connectWithin = 30 * time.Second // of a client, from when it came
	leaveWithin   = 15 * time.Second // of a client that leaves
	armsWithin    = time.Minute      // for all arms to be there, unless said otherwise
	mostOpening   = 256              // clients that are connecting at a time; others wait, and their time counts
)

// Launch is what an arm is started with.
type Launch struct {
	Name       string
	Sockets    int // 0: the arm's default
	Processors int // that it uses at most; 0: all of the machine
}

// Start starts a process that is an arm, and returns what ends it.
type Start func(Launch) (stop func() error, err error)

// Runner runs a scenario.
type Runner struct {
	Scenario   Scenario
	Controller *Controller
	Start      Start
	Tested     int           // process of a server under test that is none of the arms; its processors and memory are measured. 0: none
	Wait       time.Duration // for arms to be there; 0: a minute
	Progress   func(Sample)  // each second; nil: none
	Log        io.Writer     // what a person should know of at once
}

// run is a run under way.
type run struct {
	*Runner
	arms    []*Arm // that hold clients
	peer    *Arm   // nil: no group needs one
	began   time.Time
	opening chan struct{}
	total   *Delays // of the whole run
	second  atomic.Pointer[Delays]
	counts  clientCounts
	turn    atomic.Int64 // which arm the next client goes to
	next    atomic.Int64 // session
	over    atomic.Bool  // arms may go
	self    selfwatch.Watch
	http    *http.Client // of WHIP and WHEP

	mu   sync.Mutex
	lost []string // guarded by mu: arms that are gone
}

// clientCounts are of all groups.
type clientCounts struct {
	came, up, opened, failed, lost atomic.Int64
	unplaced                       atomic.Int64           // of failed: for want of something that the arms or this controller lack
	lacks                          atomic.Pointer[string] // what it was, of the first
}

// fail counts a client that did not connect.
func (c *clientCounts) fail(err error) {
	c.failed.Add(1)
	if unplaced(err) {
		c.unplaced.Add(1)
		text := shown(err.Error())
		c.lacks.CompareAndSwap(nil, &text)
	}
}

// unplaced says whether a client failed for want of what arms and controller need: a bound that an arm was started with, file descriptors,
// ports. The server under test has no part in it.
func unplaced(err error) bool {
	if bad := (*armwire.Error)(nil); errors.As(err, &bad) {
		return bad.Code == armwire.Limit || bad.Code == armwire.PortInUse || bad.Code == armwire.Failed
	}
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// Run runs the scenario, whose Check has found nothing. The result is of what was measured, also if ctx ends early.
func (r *Runner) Run(ctx context.Context) (_ *Result, err error) {
	if err := r.checkTested(); err != nil {
		return nil, err
	}
	u := &run{Runner: r, opening: make(chan struct{}, mostOpening), total: NewDelays(), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: mostOpening}}}
	defer u.http.CloseIdleConnections()
	u.second.Store(NewDelays())
	var stops []func() error
	defer func() {
		var wg sync.WaitGroup
		for _, stop := range stops {
			wg.Go(func() { _ = stop() })
		}
		wg.Wait()
	}()
	stops, err = u.gather(ctx)
	if err != nil {
		return nil, err
	}
	groups := make([]*group, len(r.Scenario.Groups))
	for i := range groups {
		if groups[i], err = u.prepare(ctx, &r.Scenario.Groups[i]); err != nil {
			return nil, err
		}
	}
	life, stop := context.WithCancel(ctx)
	defer stop()
	u.began = time.Now()
	s := newSampler(u)
	u.self.Start(life)
	defer u.self.Wait()
	var sampling, playing sync.WaitGroup
	sampling.Go(func() { s.run(life) })
	for _, g := range groups {
		playing.Go(func() { g.play(ctx) })
	}
	playing.Wait()
	stop()
	sampling.Wait()
	clocks := u.settle(ctx)
	u.over.Store(true)
	return u.result(s, clocks, ctx.Err() != nil), nil
}

// gather starts and awaits the arms.
func (u *run) gather(ctx context.Context) (stops []func() error, err error) {
	names := map[string]bool{}
	launch := func(name string, processors int) error {
		stop, err := u.Start(Launch{Name: name, Sockets: u.Scenario.Arms.Sockets, Processors: processors})
		if err != nil {
			return fmt.Errorf("load: start %s: %w", name, err)
		}
		stops, names[name] = append(stops, stop), true
		return nil
	}
	for i := range u.Scenario.Arms.Local {
		if err := launch(fmt.Sprintf("arm-%d", i+1), 0); err != nil {
			return stops, err
		}
	}
	if u.Scenario.HasPeer() {
		if err := launch(PeerName, u.Scenario.Peer.Processors); err != nil {
			return stops, err
		}
	}
	within := cmp.Or(u.Wait, armsWithin)
	patient, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	var came []string
	for remote := u.Scenario.Arms.Remote; len(names)+remote > 0; {
		a, err := u.Controller.Next(patient)
		if err != nil {
			return stops, fmt.Errorf("%w: %d of %d came (%s)", err, len(came), len(came)+len(names)+remote, strings.Join(came, ", "))
		}
		switch {
		case names[a.Name]:
			delete(names, a.Name)
		case remote > 0:
			remote--
		default:
			continue // one more than the scenario has: it holds no client, and takes the place of none that was started
		}
		came = append(came, a.Name)
		if a.Name == PeerName {
			u.peer = a
		} else {
			u.arms = append(u.arms, a)
		}
		a.Listen(u.hear)
		go u.watch(a) // ends with the arm
	}
	if len(u.arms) == 0 {
		return stops, errors.New("load: there is no arm that could hold clients")
	}
	return stops, nil
}

// settle waits until the arms have told of all that their sessions did: they tell once a second, and the last second is of the run, too.
// They have as long as a client that leaves. It returns how far the clocks of arms are from this controller's; one that may be the same is left
// out.
func (u *run) settle(ctx context.Context) map[string]time.Duration {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	all := u.all()
	clocks := make([]time.Duration, len(all))
	var wg sync.WaitGroup
	for i, a := range all {
		wg.Go(func() { clocks[i] = u.settleOne(ctx, a) })
	}
	wg.Wait()
	others := map[string]time.Duration{}
	for i, a := range all {
		if clocks[i] != 0 {
			others[a.Name] = clocks[i]
		}
	}
	return others
}

// settleOne asks an arm for the time, by its own clock, and waits for statistics of later.
func (u *run) settleOne(ctx context.Context, a *Arm) (clock time.Duration) {
	began := time.Now()
	m, err := a.Call(ctx, armwire.GetState, "", nil)
	if err != nil {
		return 0
	}
	took := time.Since(began)
	asked, bad := armwire.DecodeBody[armwire.StatisticsBody](m)
	if bad != nil {
		a.fail(bad)
		return 0
	}
	clock = apart(asked.At, began, took)
	told := make(chan struct{}, 1)
	a.Listen(func(a *Arm, m armwire.Message) {
		u.hear(a, m)
		if a.Statistics().At > asked.At {
			select {
			case told <- struct{}{}:
			default: // it has told already
			}
		}
	})
	select {
	case <-told:
	case <-a.Gone():
	case <-ctx.Done():
	}
	return clock
}

// clockStep is how exact delays of chunks are: an arm looks so often for chunks that are due.
const clockStep = 5 * time.Millisecond

// apart is how far the clock of an arm is ahead that said at (Unix µs) to a question of began, whose answer took so long; 0: both clocks may
// be the same.
func apart(at int64, began time.Time, took time.Duration) time.Duration {
	ahead := time.UnixMicro(at).Sub(began.Add(took / 2))
	if ahead.Abs() <= took/2+clockStep {
		return 0
	}
	return ahead
}

// watch names an arm that is lost while the run goes on.
func (u *run) watch(a *Arm) {
	<-a.Gone()
	if u.over.Load() || errors.Is(a.Err(), errClosing) {
		return
	}
	u.mu.Lock()
	u.lost = append(u.lost, a.Name)
	u.mu.Unlock()
	fmt.Fprintf(u.Log, "arm %s is lost: %v\n", a.Name, a.Err())
}

// pick is the arm of the next client: in turn, of those that are there.
func (u *run) pick() (*Arm, error) {
	for range u.arms {
		a := u.arms[int(u.turn.Add(1)-1)%len(u.arms)]
		select {
		case <-a.Gone():
		default:
			return a, nil
		}
	}
	return nil, errors.New("load: no arm is left")
}

// play has the clients of a group come, stay and leave.
func (g *group) play(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	n := time.Duration(g.Clients)
	for i := range g.Clients {
		due := g.u.began.Add(g.After + g.RampUp*time.Duration(i)/n)
		leave := g.u.began.Add(g.After + g.RampUp + g.Hold + g.RampDown*(n-1-time.Duration(i))/n) // publishers came first and leave last
		if !sleep.For(ctx, time.Until(due)) {
			return
		}
		wg.Go(func() { g.client(ctx, i, due, leave) })
	}
}

// client is one place of a group: a client, and with churn those that follow it.
func (g *group) client(ctx context.Context, i int, due, leave time.Time) {
	for ctx.Err() == nil && due.Before(leave) {
		until := leave
		if g.Life > 0 && due.Add(g.Life).Before(leave) {
			until = due.Add(g.Life)
		}
		c := g.come(ctx, i, due)
		if c == nil {
			if until == leave {
				return
			}
		} else {
			g.stay(ctx, c, until)
		}
		if !sleep.For(ctx, time.Until(until)) {
			return
		}
		due = until
	}
}

// come connects a client. The time that it takes counts from when it was due, so that a controller or a peer that falls behind does not
// hide it.
func (g *group) come(ctx context.Context, i int, due time.Time) *client {
	u := g.u
	u.counts.came.Add(1)
	patient, cancel := context.WithDeadline(ctx, due.Add(connectWithin))
	defer cancel()
	select {
	case u.opening <- struct{}{}:
	case <-patient.Done():
		u.counts.failed.Add(1)
		return nil
	}
	c := &client{g: g, number: i}
	err := g.open(patient, c)
	<-u.opening
	if err != nil {
		c.leave(ctx)
		if ctx.Err() == nil {
			u.counts.fail(err)
			g.complain(err)
		}
		return nil
	}
	took := time.Since(due)
	u.total.joined(took)
	u.second.Load().joined(took)
	u.counts.opened.Add(1)
	u.counts.up.Add(1)
	return c
}

// stay waits until a client is to leave, or is lost.
func (g *group) stay(ctx context.Context, c *client, until time.Time) {
	stayed, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	lost := false
	for _, s := range c.sessions {
		select {
		case <-s.Down():
		case <-stayed.Done():
		}
		lost = lost || s.Reason() != "" // both may be so: of several sessions a later one went down while an earlier one was waited for
	}
	if c.driver != nil {
		<-stayed.Done()
		lost = c.driver.Lost() != nil
	}
	g.u.counts.up.Add(-1)
	if lost && ctx.Err() == nil {
		g.u.counts.lost.Add(1)
	}
	c.leave(ctx)
}

// complaints is how many errors of clients are shown; the figures count all.
const complaints = 5

func (g *group) complain(err error) {
	if g.said.Add(1) <= complaints {
		fmt.Fprintf(g.u.Log, "group %s: a client: %s\n", g.Name, shown(err.Error()))
	}
}
