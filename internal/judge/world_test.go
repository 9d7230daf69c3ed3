package judge

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/experiment"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/testkit/testbus"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	testOrigin   = "https://video.example.com"
	testTitle    = "/media/bbb"
	testManifest = "/media/bbb/master.m3u8"
)

// world is trackers with their judges on a real NATS server.
type world struct {
	t       *testing.T
	bus     *natsbus.Bus
	clock   testkit.Clock
	metrics testkit.Recorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bus: testbus.Open(t)}
	t.Cleanup(func() { w.metrics.Check(t) })
	return w
}

// node is one tracker with its judge.
type node struct {
	*tracker.Tracker
	judge *Judge
	world *world
}

// withControlGroup is a tracker whose site has a control group of so many.
func (w *world) withControlGroup(permille int) *node {
	w.t.Helper()
	s, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, Policy: site.Policy{ControlGroupPermille: permille}})
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{world: w}
	n.Tracker, err = tracker.New(tracker.Config{
		Secret: bytes.Repeat([]byte("s"), 32), Sites: []*site.Site{s}, Now: w.clock.Now, Metrics: &w.metrics,
		// Three of them is how long a goroutine of a busy machine may be kept waiting before others take its tracker for dead.
		BeatEvery: 150 * time.Millisecond, MessagesPerSecond: 10_000, ConnectsPerSecond: 1000,
		Judge: func(t *tracker.Tracker) tracker.Judge {
			n.judge = New(Config{}, t)
			return n.judge
		},
	}, w.bus)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = n.Close() })
	return n
}

// viewer is one session, from the other end of its socket.
type viewer struct {
	tracker.Receiver
	n *node

	mu      sync.Mutex
	welcome signal.Welcome // guarded by mu; with the last ticket
	swarm   signal.ID      // guarded by mu: of the last join
}

// Write implements tracker.Conn: it takes what the tracker sends.
func (v *viewer) Write(b []byte) error {
	m, err := signal.Decode(b)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch m := m.(type) {
	case *signal.Welcome:
		v.welcome = *m
	case *signal.Joined:
		v.swarm = m.Swarm
	case *signal.Ticket:
		v.welcome.Ticket = m.Ticket
	}
	return nil
}

// Close implements tracker.Conn.
func (*viewer) Close(int, string) {}

func (v *viewer) told() (w signal.Welcome, swarm signal.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.welcome, v.swarm
}

// controlled says whether the session is in the control group.
func (v *viewer) controlled() bool {
	w, _ := v.told()
	return w.Policy.ControlGroup
}

// say has the tracker receive a message.
func (v *viewer) say(m signal.Message) {
	v.n.world.t.Helper()
	b, err := signal.Encode(m)
	if err != nil {
		v.n.world.t.Fatal(err)
	}
	if !v.Receive(b) {
		v.n.world.t.Errorf("%T ended the session", m)
	}
}

// join enters the film.
func (v *viewer) join() { v.say(&signal.Join{Title: testTitle, Manifest: testManifest, Role: "full"}) }

// opens opens a session.
func (n *node) opens(from netip.Addr, ticket string) *viewer {
	n.world.t.Helper()
	v := &viewer{n: n}
	v.Receiver = n.Accept(v, tracker.Visitor{Origin: testOrigin, Address: from})
	v.say(&signal.Hello{Version: 1, Client: "test/1", Site: "demo", Ticket: ticket})
	return v
}

// enters opens a session and joins the film.
func (n *node) enters(from netip.Addr, ticket string) *viewer {
	n.world.t.Helper()
	v := n.opens(from, ticket)
	v.join()
	return v
}

// audience joins viewers from an address each, of a subnet of its own or all of one.
func (n *node) audience(first, count int, address func(i int) netip.Addr) (all []*viewer) {
	n.world.t.Helper()
	for i := first; i < first+count; i++ {
		v := n.enters(address(i), "")
		n.world.t.Cleanup(func() { v.End(nil) })
		all = append(all, v)
	}
	return all
}

func subnetEach(i int) netip.Addr  { return netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1}) }
func subnetOfAll(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

// report says a minute of play; those with peers stalled for a part of it.
func (n *node) report(all []*viewer, stalled time.Duration) {
	n.world.t.Helper()
	for _, v := range all {
		_, swarm := v.told()
		m := &signal.Stats{Swarm: swarm, Interval: 60_000, PlayedMs: 60_000, StartupMs: 400}
		if !v.controlled() {
			m.StallMs, m.Stalls = stalled.Milliseconds(), 1
		}
		v.say(m)
	}
}

// isOff has the judge tell and judge at the next beat, and says what came of the ones before.
func (n *node) isOff() bool {
	n.judges()
	off, _ := n.SiteSwitch("demo")
	return off
}

func (n *node) judges() {
	n.judge.mu.Lock()
	defer n.judge.mu.Unlock()
	n.judge.told = time.Time{}
}

func (w *world) counted() float64 {
	return w.metrics.Value(defViewers, "demo", "peer") + w.metrics.Value(defViewers, "demo", "control")
}

// over lets the viewers' time pass.
func (w *world) over(viewers int) {
	w.t.Helper()
	w.clock.Move(experiment.Horizon + 3*experimentSlot)
	testkit.Eventually(w.t, "all are counted", func() bool { return w.counted() == float64(viewers) })
}
