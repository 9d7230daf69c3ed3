package seed_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// street is a seed in virtual time whose links are made of nothing, so that hundreds can come: each opens when the test says
// so. Its origin is a function.
type street struct {
	t       *testing.T
	bus     *memoryBus
	seed    *seed.Service
	metrics *testkit.Recorder
	origin  func(path string) []byte

	mu      sync.Mutex
	asked   map[string]int        // guarded by mu: of the origin, by path
	links   map[string]*wire      // guarded by mu: by the SDP of their offer
	failed  map[signal.ID]string  // guarded by mu: by link, what the seed said
	callers map[signal.ID]*caller // guarded by mu: by link
}

func newStreet(t *testing.T, origin func(path string) []byte, change func(*seed.Config)) *street {
	t.Helper()
	s := &street{
		t: t, bus: &memoryBus{}, metrics: &testkit.Recorder{}, origin: origin, asked: map[string]int{}, links: map[string]*wire{},
		failed: map[signal.ID]string{}, callers: map[signal.ID]*caller{},
	}
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com", Policy: site.Policy{CertifyFrom: 1}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := seed.Config{DataDir: t.TempDir(), Sites: []seed.Site{{Site: rules, Origin: s}}, Metrics: s.metrics}
	if change != nil {
		change(&cfg)
	}
	if s.seed, err = seed.New(cfg, s.bus, s); err != nil {
		t.Fatal(err)
	}
	undo, err := s.bus.Subscribe(bus.SubjectSeedSignal(signal.ID{1}), func(_ string, b []byte, _ func([]byte) error) { s.said(b) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.seed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		undo()
		if n := s.metrics.Dropped(); n != 0 {
			t.Errorf("%d observations were outside their definitions", n)
		}
	})
	synctest.Wait()
	return s
}

// Get implements seed.Origin.
func (s *street) Get(_ context.Context, f seed.Fetch) (*seed.Fetched, error) {
	s.mu.Lock()
	s.asked[f.Path]++
	s.mu.Unlock()
	data := s.origin(f.Path)
	if data == nil {
		return nil, &seed.FetchError{Outcome: seed.OutcomeNotFound, Path: f.Path, Cause: errors.New("no such file")}
	}
	if int64(len(data)) > f.MaxBytes {
		return nil, &seed.FetchError{Outcome: seed.OutcomeTooLarge, Path: f.Path, ObjectLength: int64(len(data)), Cause: errors.New("too long")}
	}
	return &seed.Fetched{Data: data, ObjectLength: int64(len(data)), Path: f.Path}, nil
}

// Flow implements seed.Origin.
func (*street) Flow(context.Context, seed.Fetch, func([]byte) error) (*seed.Fetched, error) {
	panic("nothing flows")
}

func (s *street) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func (s *street) value(name string, labels ...string) float64 {
	return (&member{world: &world{metrics: s.metrics}}).count(s.t, name, labels...)
}

// Answer implements seed.Links.
func (s *street) Answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	if offer.SDP == "rubbish" {
		return nil, transfer.Description{}, errors.New("no description")
	}
	l := &wire{events: events, done: make(chan struct{}), sent: make(chan []byte, 1024)}
	s.mu.Lock()
	s.links[offer.SDP] = l
	s.mu.Unlock()
	return l, transfer.Description{SDP: "answer", Plan: offer.Plan}, nil
}

// said takes in what the seed says to viewers.
func (s *street) said(b []byte) {
	m := &bus.Delivery{}
	if err := bus.Decode(b, m); err != nil {
		s.t.Errorf("delivery: %v", err)
		return
	}
	if m.Signal.Kind == "fail" {
		s.mu.Lock()
		s.failed[m.Signal.Link] = m.Signal.Reason
		s.mu.Unlock()
	}
	ack, err := bus.Encode(&bus.Ack{From: signal.ID{1}, Next: m.Stream.N + 1})
	if err != nil {
		s.t.Error(err)
	}
	s.bus.send(bus.SubjectAck(m.Stream.From), ack)
}

// wire is a link of nothing. It satisfies transfer.Link.
type wire struct {
	events transfer.LinkEvents
	done   chan struct{}
	sent   chan []byte

	mu       sync.Mutex
	ended    bool             // guarded by mu
	reason   peer.CloseReason // guarded by mu
	farewell []byte           // guarded by mu
}

func (l *wire) SendControl(b []byte) {
	select {
	case l.sent <- append([]byte(nil), b...):
	default:
	}
}
func (l *wire) SendData(b []byte) bool                { l.SendControl(b); return true }
func (l *wire) MaxMessage() int                       { return 16384 }
func (l *wire) Path() transfer.Path                   { return transfer.Direct }
func (l *wire) AddCandidate(transfer.Candidate) error { return nil }
func (l *wire) Done() <-chan struct{}                 { return l.done }
func (l *wire) Close(reason peer.CloseReason, farewell []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended, l.reason, l.farewell = true, reason, farewell
	go func() {
		l.events.Closed(reason)
		close(l.done)
	}()
}

// caller is a viewer of the street.
type caller struct {
	s       *street
	session signal.ID
	link    signal.ID
	swarm   signal.ID
	sdp     string
}

// call offers a link. n tells sessions apart; manifests and subnets are the caller's choice.
func (s *street) call(n int, subnet, manifest string) *caller {
	return s.callAs(n, n, subnet, manifest, fmt.Sprintf("/title/%d", n), fmt.Sprint("offer ", n))
}

func number(kind byte, n int) (id signal.ID) {
	id[0] = kind
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// name says to the seed that a title is wanted, as its home does.
func (s *street) name(n int, manifest string) {
	s.t.Helper()
	b, err := bus.Encode(&bus.SeedDelivery{Kind: bus.KindTitle, Title: &bus.Title{
		Site: "demo", Title: fmt.Sprintf("/title/%d", n), Manifest: manifest, Swarm: number(30, n), Viewers: 1,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.bus.send(bus.SubjectSeedDeliver(s.seed.ID()), b).Wait()
}

// callAs offers link n of a session for a title, and waits for what the seed makes of it.
func (s *street) callAs(session, n int, subnet, manifest, title, sdp string) *caller {
	s.t.Helper()
	c := s.offers(session, n, subnet, manifest, title, sdp)
	synctest.Wait()
	return c
}

// revoke publishes revocations and returns when the seed has taken them in.
func (s *street) revoke(list ...signal.Revocation) {
	s.t.Helper()
	b, err := bus.Encode(&bus.RevokeMessage{Revocations: list})
	if err != nil {
		s.t.Fatal(err)
	}
	s.bus.send(bus.SubjectRevoke, b).Wait()
}

func (s *street) offers(session, n int, subnet, manifest, title, sdp string) *caller {
	s.t.Helper()
	c := &caller{s: s, session: number(10, session), link: number(20, n), swarm: number(30, n), sdp: sdp}
	m := &bus.SeedDelivery{
		Kind: bus.KindSignal, Subnet: subnet,
		Title: &bus.Title{Site: "demo", Title: title, Manifest: manifest, Swarm: c.swarm, Viewers: 1},
		Signal: &bus.Signal{Tracker: signal.ID{1}, Signal: signal.Signal{
			Swarm: c.swarm, From: c.session, To: s.seed.ID(), Role: "viewer", Link: c.link, Kind: "offer", SDP: sdp,
			Plan: &signal.Plan{V: 1, Data: 2, Message: 16384},
		}},
	}
	b, err := bus.Encode(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.bus.send(bus.SubjectSeedDeliver(s.seed.ID()), b).Wait()
	return c
}

// wire is the caller's link, nil where the seed made none.
func (c *caller) wire() *wire {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.links[c.sdp]
}

// refused is why the seed turned the offer down; empty: it did not.
func (c *caller) refused() string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.failed[c.link]
}

// open ends the handshake: hellos both ways.
func (c *caller) open() {
	w := c.wire()
	if w == nil {
		c.s.t.Fatalf("no link to open: %s", c.refused())
	}
	w.events.Open()
	c.says(peer.Hello{MinVersion: 1, MaxVersion: 1, MaxRequests: 64, Peer: c.session, Swarm: c.swarm})
	synctest.Wait()
}

func (c *caller) says(m peer.Message) {
	b, err := peer.Append(nil, m)
	if err != nil {
		c.s.t.Fatal(err)
	}
	c.wire().events.Control(b)
}

// ended is how the seed ended the link, and the reason that it told; false: it did not.
func (c *caller) ended() (reason peer.CloseReason, told peer.ByeReason, yes bool) {
	w := c.wire()
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, err := peer.Decode(peer.Control, w.farewell); err == nil {
		told = m.(peer.Bye).Reason
	}
	return w.reason, told, w.ended
}
