package tracker

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func controlled(t *testing.T) func(*Config) {
	return func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Policy: configured.Policy{ControlGroupPermille: 500}})
	}
}

// TestATrackerRunsWithoutAJudge: control groups are drawn, reports are taken, and what judges say on the bus is not heard.
func TestATrackerRunsWithoutAJudge(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(controlled(t))
	groups := map[bool]int{}
	for i := range 40 {
		s := n.enters(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}))
		defer s.End(nil)
		groups[s.rule.allowed().ControlGroup]++
		s.receive(t, &signal.Stats{Swarm: n.swarmID("demo", testTitle), Interval: 60_000, StallMs: 60_000, Stalls: 1})
	}
	if groups[true] == 0 || groups[false] == 0 {
		t.Errorf("of 40 sessions %d are in the control group", groups[true])
	}
	n.Publish(bus.SubjectExperiment, &bus.Experiment{Site: "demo", Permille: 500})
	w.clock.Move(time.Hour)
	n.maintain()
	if off, _ := n.SiteSwitch("demo"); off {
		t.Error("the site is off without a judge")
	}
}

// noting is a bus that notes what is subscribed to.
type noting struct {
	Bus
	subjects []string
}

func (n *noting) Subscribe(subject string, f func(string, []byte, func([]byte) error)) (func(), error) {
	n.subjects = append(n.subjects, subject)
	return n.Bus.Subscribe(subject, f)
}

// TestOnlyAJudgeHearsOtherJudges: a tracker without one asks the bus for none of what they say.
func TestOnlyAJudgeHearsOtherJudges(t *testing.T) {
	for _, judged := range []bool{false, true} {
		w := newWorld(t)
		b := &noting{Bus: w.bus}
		w.through = b
		w.tracker(func(c *Config) {
			if judged {
				c.Judge = func(*Tracker) Judge { return &listener{} }
			}
		})
		if slices.Contains(b.subjects, bus.SubjectExperiment) != judged || !slices.Contains(b.subjects, bus.SubjectTrackerBeat) {
			t.Errorf("with a judge: %v; subscribed to %v", judged, b.subjects)
		}
	}
}

// listener is a judge that notes what it is told.
type listener struct {
	mu    sync.Mutex
	calls []string                 // guarded by mu
	heard []bus.Experiment         // guarded by mu
	lasts map[string]signal.Policy // guarded by mu: of sessions, by address
	seen  map[string][3]float64    // guarded by mu: last report, by address
	beats int                      // guarded by mu
}

type listening struct {
	*listener
	from string
}

func (l *listener) Observer() Observer { return &listening{listener: l} }
func (l *listener) Hear(m *bus.Experiment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, *m)
}

func (l *listener) Maintain(time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats++
}

func (l *listening) Begin(_ string, from netip.Addr, p *signal.Policy, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = from.String()
	l.calls, l.lasts[l.from] = append(l.calls, "begin "+l.from), *p
}

func (l *listening) Report(played, stalled, startup float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[l.from] = [3]float64{played, stalled, startup}
}

func (l *listening) Look(_ string, _ time.Time, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended {
		l.calls = append(l.calls, "end "+l.from)
	}
}

// TestWhatAJudgeIsTold: each new session once, a resumed one not, reports in seconds, the end, and what other judges say.
func TestWhatAJudgeIsTold(t *testing.T) {
	w := newWorld(t)
	l := &listener{lasts: map[string]signal.Policy{}, seen: map[string][3]float64{}}
	n := w.tracker(func(c *Config) {
		controlled(t)(c)
		c.Judge = func(*Tracker) Judge { return l }
	})
	s := n.enters(netip.MustParseAddr("10.0.0.1"))
	w.clock.Move(time.Minute)
	s.receive(t, &signal.Stats{Swarm: n.swarmID("demo", testTitle), Interval: 20_000, PlayedMs: 15_000, StallMs: 5_000, Stalls: 1, StartupMs: 700})
	again := n.Accept(nowhere{}, Visitor{Origin: testOrigin, Address: netip.MustParseAddr("10.0.0.2")}).(*session)
	again.receive(t, &signal.Hello{Version: 1, Client: "test/1", Site: "demo", Ticket: s.ticket(w.clock.Now())})
	s.End(nil)
	n.Publish(bus.SubjectExperiment, &bus.Experiment{Site: "demo", Permille: 500})
	testkit.Eventually(t, "the judge hears another and beats", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.heard) == 1 && l.heard[0].Permille == 500 && l.beats > 0
	})
	again.End(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	want := []string{"begin 10.0.0.1", "end 10.0.0.1", "end "}
	if len(l.calls) != 3 || l.calls[0] != want[0] || l.calls[1] != want[1] || l.calls[2] != want[2] {
		t.Errorf("the judge is told %v, want %v", l.calls, want)
	}
	if l.lasts["10.0.0.1"] != s.rule.allowed() || l.seen["10.0.0.1"] != [3]float64{15, 5, 0.7} {
		t.Errorf("%+v, %v", l.lasts, l.seen)
	}
}
