package load_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// rig runs scenarios with arms in this process.
type rig struct {
	runner load.Runner
	most   int // sessions of an arm; 0: its default

	mu   sync.Mutex
	kill map[string]func() error // guarded by mu
}

func newRig(t *testing.T, s load.Scenario) *rig {
	t.Helper()
	current := goleak.IgnoreCurrent()
	if found := s.Check(); len(found) > 0 {
		t.Fatal(found)
	}
	c, err := load.Listen(load.Config{Listen: "127.0.0.1:0", Token: "right"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		goleak.VerifyNone(t, current)
	})
	r := &rig{kill: map[string]func() error{}}
	r.runner = load.Runner{Scenario: s, Controller: c, Log: io.Discard, Start: func(l load.Launch) (func() error, error) {
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() {
			over <- arm.Run(ctx, arm.Config{Controller: c.URL(), Name: l.Name, Token: "right", MaxSockets: 8, MaxSessions: r.most})
		}()
		var once sync.Once
		stop := func() (err error) {
			once.Do(func() {
				cancel()
				err = <-over
			})
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kill[l.Name] = stop
		return stop, nil
	}}
	return r
}

func group(name string, b load.Behavior, clients int) load.Group {
	return load.Group{
		Name: name, Behavior: b, Clients: clients, RampUp: 300 * time.Millisecond, Hold: time.Hour, RampDown: 200 * time.Millisecond,
		Rate: 80_000, Stack: armwire.Link,
	}
}

func TestEveryBehaviorConnects(t *testing.T) {
	media := func(b load.Behavior) load.Group {
		g := group(string(b), b, 3)
		g.Publishers, g.Rate = 1, 0
		if b == load.Conference {
			g.Publishers = 2
		}
		return g
	}
	churn := group("churn", load.Active, 2)
	churn.Life, churn.Stack = time.Second, armwire.PeerConnection
	s := load.Scenario{Name: "all", Arms: load.Arms{Local: 2}, Groups: []load.Group{
		group("idle", load.Idle, 2), group("active", load.Active, 2), group("echo", load.Echo, 2), group("mesh", load.Mesh, 3), churn,
		media(load.OneToMany), media(load.Conference),
	}}
	r := newRig(t, s)
	samples, whole := 0, false
	got := r.until(t, func(one load.Sample) bool {
		samples++
		whole = one.Opened >= 19 && one.Received > 300_000 && one.Chunk > 0 // all have come, churn has had others come, and there is video
		return whole
	})
	if !whole || got.Clients.Failed > 0 || got.Clients.Lost > 0 {
		t.Errorf("all is there: %v, %+v", whole, got.Clients)
	}
	f := got.Figures
	if f["delivered_ratio"] <= 0 || f["chunk_p99"] <= 0 || f["join_p99"] <= 0 || f["peak_sessions"] <= 0 || samples != len(got.Samples) {
		t.Errorf("%v, %d samples", f, samples)
	}
}

// until runs the scenario until a sample is as it should be, at most for a minute.
func (r *rig) until(t *testing.T, ok func(load.Sample) bool) *load.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.runner.Progress = func(s load.Sample) {
		if ctx.Err() == nil && ok(s) {
			cancel()
		}
	}
	got, err := r.runner.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestALostArmIsNamedAndTheRunGoesOn: its clients are lost, and the result says so.
func TestALostArmIsNamedAndTheRunGoesOn(t *testing.T) {
	g := group("idle", load.Idle, 6)
	r := newRig(t, load.Scenario{Name: "lost", Arms: load.Arms{Local: 2}, Groups: []load.Group{g}})
	var once sync.Once
	got := r.until(t, func(s load.Sample) bool {
		if s.Opened == 6 {
			once.Do(func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				go r.kill["arm-1"]() //nolint:errcheck // its end is waited for by the run
			})
		}
		return s.Lost == 3
	})
	if !slices.Equal(got.Lost, []string{"arm-1"}) || got.Clients.Lost != 3 || got.Clients.Opened != 6 || len(got.Reasons) == 0 {
		t.Errorf("lost arms %v, reasons %q, %+v", got.Lost, got.Reasons, got.Clients)
	}
}

func TestARunThatIsStoppedLeavesNothing(t *testing.T) {
	g := group("active", load.Active, 3)
	r := newRig(t, load.Scenario{Name: "stopped", Groups: []load.Group{g}})
	got := r.until(t, func(s load.Sample) bool { return s.Up == 3 })
	var refused *load.RefusedError
	if got.Verdict != load.Stopped || !errors.As(got.Err(), &refused) || got.Clients.Lost != 0 {
		t.Errorf("%s, %v, %+v", got.Verdict, got.Err(), got.Clients)
	}
}

// TestClientsWithoutAPlaceAreNoVerdict: the tester has room for two of four, which says nothing of the server.
func TestClientsWithoutAPlaceAreNoVerdict(t *testing.T) {
	g := group("idle", load.Idle, 4)
	g.Hold = 1500 * time.Millisecond
	r := newRig(t, load.Scenario{Name: "full", Groups: []load.Group{g}, Thresholds: []string{"failed_ratio<1%"}})
	r.most = 2
	got, err := r.runner.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var refused *load.RefusedError
	if got.Verdict != load.Refused || !errors.As(got.Err(), &refused) || got.Clients.Failed != 2 || !strings.Contains(got.Unplaced, "2 of 4 clients: arm protocol: limit") {
		t.Errorf("%s, %v, %+v, %q", got.Verdict, got.Err(), got.Clients, got.Unplaced)
	}
}

func TestArmsThatDoNotStart(t *testing.T) {
	r := newRig(t, load.Scenario{Name: "none", Groups: []load.Group{group("idle", load.Idle, 1)}})
	broken := errors.New("no such program")
	r.runner.Start = func(load.Launch) (func() error, error) { return nil, broken }
	if _, err := r.runner.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// TestAnArmThatDoesNotComeIsMissed: the error says which came.
func TestAnArmThatDoesNotComeIsMissed(t *testing.T) {
	r := newRig(t, load.Scenario{
		Name: "alone", Arms: load.Arms{Local: 1, Remote: 1}, Groups: []load.Group{{Name: "g", Behavior: load.Idle, Clients: 1, Hold: time.Second}},
	})
	r.runner.Wait = 2 * time.Second
	_, err := r.runner.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), " of 3 came (") {
		t.Error(err)
	}
}
