package seed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestANewcomerHasWhatIsWantedBeforeViewersCome: a third seed joins over HTTP, and then the two others vanish. The origin
// notices neither.
func TestANewcomerHasWhatIsWantedBeforeViewersCome(t *testing.T) {
	o := newOrigin(t)
	o.film(8)
	c := newSeedFleet(t, o, 2)
	c.name(30)                  // so many that three seeds serve the title
	for i, m := range c.seeds { // so that it is enough to hear one of them in time
		v := m.connect(byte(1+i), 30)
		for _, name := range names(8) {
			if _, none := v.certificate(name); none != nil {
				t.Fatalf("%s: reason %d", name, none.Reason)
			}
		}
	}
	c.addWarm(&fleet.WarmUp{Bytes: 64 << 20, Rate: 1 << 30, Longest: patience}, nil)
	newcomer := c.seeds[2]
	for {
		b := wait(t, newcomer.keys, "the newcomer to be warm")
		if b.Seed == newcomer.seed.ID() && !b.Draining {
			break
		}
	}
	if err := newcomer.seed.Ready(); err != nil {
		t.Errorf("it is warm, and %v", err)
	}
	if n := newcomer.count(t, "leeway_seed_warm_up_segments_total", "fetched"); n != 16 {
		t.Errorf("%v segments of 16 were fetched", n)
	}
	if n, sum := newcomer.count(t, "leeway_seed_warm_up_bytes_total"), o.bytes(names(8)); n != sum || newcomer.count(t, "leeway_seed_warm") != 1 {
		t.Errorf("%v bytes of %v", n, sum)
	}
	for _, m := range c.seeds[:2] {
		m.server.CloseClientConnections()
		m.server.Listener.Close()
	}
	v := newcomer.connect(3, 30)
	for _, name := range names(8) {
		if _, none := v.certificate(name); none != nil {
			t.Errorf("%s: reason %d", name, none.Reason)
		}
		if n := o.count(path(name)); n != 1 {
			t.Errorf("%s: the origin was asked %d times", name, n)
		}
	}
	if newcomer.metrics.Dropped() != 0 {
		t.Error("observations were outside their definitions")
	}
}

func (o *origin) bytes(names []segment.Name) (sum float64) {
	for _, name := range names {
		sum += float64(len(o.files[path(name)]))
	}
	return sum
}

// village is a fleet in virtual time: seeds that ask each other by calls, and an origin that answers at once.
type village struct {
	t       *testing.T
	bus     *memoryBus
	mu      sync.Mutex
	asked   map[string]int                  // guarded by mu: of the origin, by path
	files   map[string][]byte               //
	seeds   map[signal.ID]*seed.Service     // guarded by mu
	wanted  map[signal.ID]sibling.Wanted    // guarded by mu
	refuse  map[signal.ID]bool              // guarded by mu: busy
	history []signal.ID                     // guarded by mu: the seeds that were asked for a segment
	metrics map[signal.ID]*testkit.Recorder // guarded by mu
}

const villageSegment = 100_000 // bytes

func newVillage(t *testing.T, segments int) *village {
	v := &village{
		t: t, bus: &memoryBus{}, asked: map[string]int{}, files: map[string][]byte{}, seeds: map[signal.ID]*seed.Service{},
		wanted: map[signal.ID]sibling.Wanted{}, refuse: map[signal.ID]bool{}, metrics: map[signal.ID]*testkit.Recorder{},
	}
	list := "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n"
	for i := range segments {
		list += fmt.Sprintf("#EXTINF:4,\n%d.m4s\n", i)
		v.files[fmt.Sprintf("/film/%d.m4s", i)] = noise(villageSegment)
	}
	v.files["/film/index.m3u8"] = []byte(list + "#EXT-X-ENDLIST\n")
	return v
}

// Get implements seed.Origin.
func (v *village) Get(_ context.Context, f seed.Fetch) (*seed.Fetched, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked[f.Path]++
	data, ok := v.files[f.Path]
	if !ok {
		return nil, &seed.FetchError{Outcome: seed.OutcomeNotFound, Path: f.Path, Cause: errors.New("no such file")}
	}
	return &seed.Fetched{Data: data, ObjectLength: int64(len(data)), Path: f.Path}, nil
}

// Flow implements seed.Origin.
func (*village) Flow(context.Context, seed.Fetch, func([]byte) error) (*seed.Fetched, error) {
	panic("nothing flows")
}

// Ask implements fleet.Siblings.
func (v *village) Ask(ctx context.Context, _ signal.ID, to fleet.Sibling, q sibling.Question, accept func([]byte, int) error) (*sibling.Answer, error) {
	v.mu.Lock()
	s, busy := v.seeds[to.ID], v.refuse[to.ID]
	v.history = append(v.history, to.ID)
	v.mu.Unlock()
	if busy {
		return nil, &fleet.AskError{Outcome: fleet.OutcomeRefused, Cause: errors.New("busy")}
	}
	a := s.Answer(ctx, q)
	if a.Certificate != nil {
		if err := accept(a.Certificate, len(a.Data)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Wanted implements fleet.Siblings.
func (v *village) Wanted(_ context.Context, _ signal.ID, to fleet.Sibling) (sibling.Wanted, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted[to.ID], nil
}

// Answer implements seed.Links: no viewer comes.
func (v *village) Answer(transfer.Description, transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return nil, transfer.Description{}, errors.New("no viewers here")
}

// add starts a seed; the test's end ends it.
func (v *village) add(warm *fleet.WarmUp) *seed.Service {
	v.t.Helper()
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com", Policy: site.Policy{CertifyFrom: 1}})
	if err != nil {
		v.t.Fatal(err)
	}
	rec := &testkit.Recorder{}
	s, err := seed.New(seed.Config{
		DataDir: v.t.TempDir(), Sites: []seed.Site{{Site: rules, Origin: v}}, Metrics: rec,
		Fleet: fleet.New(fleet.Config{ID: sibling.FleetID{1}, Address: netip.MustParseAddrPort("10.0.0.1:4602"), Siblings: v, WarmUp: warm, Metrics: rec}),
	}, v.bus, v)
	if err != nil {
		v.t.Fatal(err)
	}
	v.mu.Lock()
	v.seeds[s.ID()], v.metrics[s.ID()] = s, rec
	v.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	v.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			v.t.Error(err)
		}
	})
	synctest.Wait()
	return s
}

func (v *village) title(seeds ...*seed.Service) bus.Title {
	m := bus.Title{Site: "demo", Title: "/film", Manifest: "/film/index.m3u8", Swarm: signal.ID{2}, Viewers: 30}
	for _, s := range seeds {
		m.Seeds = append(m.Seeds, s.ID())
	}
	return m
}

// serve has seeds serve the film, the first of them hold all of it, and each say that its viewers want the later segments most.
func (v *village) serve(seeds ...*seed.Service) {
	v.t.Helper()
	title := v.title(seeds...)
	var wanted []sibling.WantedSegment
	for i := range len(v.files) - 1 {
		wanted = append(wanted, sibling.WantedSegment{ID: signal.ID(villageID(i)), N: i + 1})
	}
	for _, s := range seeds {
		b, err := bus.Encode(&bus.SeedDelivery{Kind: bus.KindTitle, Title: &title})
		if err != nil {
			v.t.Fatal(err)
		}
		v.bus.send(bus.SubjectSeedDeliver(s.ID()), b).Wait()
		v.mu.Lock()
		v.wanted[s.ID()] = sibling.Wanted{Titles: []sibling.WantedTitle{{Title: title, Segments: wanted}}}
		v.mu.Unlock()
	}
	for i := range wanted {
		for _, s := range seeds {
			if a := s.Answer(v.t.Context(), sibling.Question{Segment: villageID(i), Swarm: title.Swarm}); a.Certificate == nil {
				v.t.Fatalf("segment %d: reason %d", i, a.None)
			}
		}
	}
}

func villageID(i int) segment.ID {
	return segment.NewID("demo", segment.Name(fmt.Sprintf("/film/%d.m4s", i)))
}

func (v *village) count(t *testing.T, s *seed.Service, name string, labels ...string) float64 {
	return (&member{world: &world{metrics: v.metrics[s.ID()]}}).count(t, name, labels...)
}

// until waits in virtual time for a seed to take viewers.
func (v *village) until(s *seed.Service) time.Duration {
	began := time.Now()
	for s.Ready() != nil {
		<-time.After(100 * time.Millisecond)
		if time.Since(began) > time.Hour {
			v.t.Fatal("it never takes viewers")
		}
	}
	synctest.Wait() // what the seed does at that instant is done, its metric too
	return time.Since(began)
}

// TestWarmingUpIsBounded: in bytes, in bytes a second, and in time.
func TestWarmingUpIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		fleet.WarmUp
		segments    int
		least, most time.Duration
	}{
		"all of it":        {fleet.WarmUp{Bytes: 1 << 30, Rate: 1 << 30, Longest: time.Minute}, 40, 0, time.Second},
		"so many bytes":    {fleet.WarmUp{Bytes: 10*villageSegment - 1, Rate: 1 << 30, Longest: time.Minute}, 10, 0, time.Second},
		"so many a second": {fleet.WarmUp{Bytes: 1 << 30, Rate: villageSegment, Longest: time.Hour}, 40, 39 * time.Second, 42 * time.Second},
		"so long":          {fleet.WarmUp{Bytes: 1 << 30, Rate: villageSegment, Longest: 14500 * time.Millisecond}, 15, 14 * time.Second, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVillage(t, 40)
				a, b := v.add(nil), v.add(nil)
				v.serve(a, b)
				v.mu.Lock()
				before := maps.Clone(v.asked)
				v.mu.Unlock()
				newcomer := v.add(&c.WarmUp)
				if err := newcomer.Ready(); err == nil || !strings.Contains(err.Error(), "warming up") {
					t.Errorf("it takes viewers at once: %v", err)
				}
				if took := v.until(newcomer); took < c.least || took > c.most+time.Second {
					t.Errorf("viewers come after %s", took)
				}
				if n := v.count(t, newcomer, "leeway_seed_warm_up_segments_total", "fetched"); n != float64(c.segments) {
					t.Errorf("%v segments were fetched, want %d", n, c.segments)
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				for path, n := range v.asked {
					if n != before[path] && path != "/film/index.m3u8" {
						t.Errorf("the origin was asked for %s", path)
					}
				}
			})
		})
	}
}

// TestWhatItWillOwnComesFirst: a newcomer with room for little has its own segments, the most wanted ones.
func TestWhatItWillOwnComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVillage(t, 40)
		a, b := v.add(nil), v.add(nil)
		v.serve(a, b)
		newcomer := v.add(&fleet.WarmUp{Bytes: 5 * villageSegment, Rate: 1 << 30, Longest: time.Minute})
		v.until(newcomer)
		all := []swarm.ID{a.ID(), b.ID(), newcomer.ID()}
		own, held := 0, 0
		for i := 39; i >= 0; i-- { // the last is wanted most
			has := newcomer.Answer(t.Context(), sibling.Question{Segment: villageID(i), Swarm: signal.ID{2}, Held: true}).Certificate != nil
			if has {
				held++
			}
			if swarm.Order(all, swarm.ID(villageID(i)))[0] != newcomer.ID() {
				continue
			}
			if own++; own <= 5 && !has {
				t.Errorf("segment %d, the %d. most wanted of its own, is missing", i, own)
			}
		}
		if own >= 5 && held != 5 {
			t.Errorf("it holds %d, want 5", held)
		}
	})
}

// TestASeedThatIsAloneTakesViewersSoon: no other seed beats, so there is none to wait for.
func TestASeedThatIsAloneTakesViewersSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVillage(t, 1)
		s := v.add(&fleet.WarmUp{Bytes: 1 << 30, Rate: 1 << 30, Longest: time.Minute})
		if took := v.until(s); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("after %s", took)
		}
		if v.count(t, s, "leeway_seed_warm") != 1 {
			t.Error("the metric says otherwise")
		}
	})
}

// TestABusySeedIsLeftAlone: a sibling that refuses one question is not asked another, and the next one has what it has.
func TestABusySeedIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVillage(t, 20)
		a, b := v.add(nil), v.add(nil)
		v.serve(a, b)
		v.mu.Lock()
		v.refuse[a.ID()], v.history = true, nil
		v.mu.Unlock()
		newcomer := v.add(&fleet.WarmUp{Bytes: 1 << 30, Rate: 1 << 30, Longest: time.Minute})
		v.until(newcomer)
		if n := v.count(t, newcomer, "leeway_seed_warm_up_segments_total", "fetched"); n != 20 {
			t.Errorf("%v of 20 came from the other", n)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		asked := 0
		for _, id := range v.history {
			if id == a.ID() {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("a busy seed was asked %d times", asked)
		}
	})
}
