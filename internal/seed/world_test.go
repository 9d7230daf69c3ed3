package seed_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const patience = 20 * time.Second

// memoryBus is the port in one process: every subscriber gets its messages in order, on a goroutine of its own.
type memoryBus struct {
	mu     sync.Mutex
	topics map[string][]*subscriber
	lose   func(subject string) bool // guarded by mu; nil loses nothing
}

// Connected implements seed.Bus.
func (b *memoryBus) Connected() bool { return true }

// loses has what is published get lost where f says so.
func (b *memoryBus) loses(f func(subject string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lose = f
}

type subscriber struct {
	in   chan delivered
	done chan struct{}
}

type delivered struct {
	data  []byte
	taken func() // called when the subscriber has dealt with it
}

func (b *memoryBus) Publish(subject string, data []byte) error {
	b.send(subject, data)
	return nil
}

// send publishes; the group is done when every subscriber has dealt with it.
func (b *memoryBus) send(subject string, data []byte) *sync.WaitGroup {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := &sync.WaitGroup{}
	if b.lose != nil && b.lose(subject) {
		return all
	}
	for _, s := range b.topics[subject] {
		all.Add(1)
		s.in <- delivered{bytes.Clone(data), all.Done}
	}
	return all
}

func (b *memoryBus) Subscribe(subject string, f func(string, []byte, func([]byte) error)) (func(), error) {
	s := &subscriber{in: make(chan delivered, 4096), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for m := range s.in {
			f(subject, m.data, nil)
			m.taken()
		}
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics == nil {
		b.topics = map[string][]*subscriber{}
	}
	b.topics[subject] = append(b.topics[subject], s)
	return func() {
		b.mu.Lock()
		for i, o := range b.topics[subject] {
			if o == s {
				b.topics[subject] = append(b.topics[subject][:i:i], b.topics[subject][i+1:]...)
				close(s.in)
			}
		}
		b.mu.Unlock()
		<-s.done
	}, nil
}

func (b *memoryBus) Request(context.Context, string, []byte) ([]byte, error) {
	return bus.Encode(&bus.RevokeList{})
}

// origin is a real HTTP origin on loopback whose files may change.
type origin struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	asked map[string]int
	gates map[string]chan struct{} // by path: a response is made when it is asked for, and goes out when the gate is closed
	head  http.Header
}

func newOrigin(t *testing.T) *origin {
	o := &origin{files: map[string][]byte{}, asked: map[string]int{}, gates: map[string]chan struct{}{}, head: http.Header{}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked[r.URL.Path]++
	data, ok := o.files[r.URL.Path]
	gate := o.gates[r.URL.Path]
	for k, v := range o.head {
		w.Header()[k] = v
	}
	o.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%d-%x", len(data), certificate.DigestPieces(data[:min(len(data), 1<<16)]))[:24]))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func (o *origin) put(path string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.files[path] = data
}

// hold keeps responses for a path back until the returned function is called.
func (o *origin) hold(path string) (release func()) {
	gate := make(chan struct{})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gates[path] = gate
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.gates, path)
		close(gate)
	}
}

func (o *origin) count(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// film puts a title with two renditions of count segments each on the origin.
func (o *origin) film(count int) {
	o.put("/vod/film/master.m3u8", []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1500000\nlow/index.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=3000000\nhigh/index.m3u8\n"))
	for _, r := range []string{"low", "high"} {
		list := "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\"\n"
		o.put("/vod/film/"+r+"/init.mp4", noise(800))
		for i := range count {
			list += fmt.Sprintf("#EXTINF:4,\n%d.m4s\n", i)
			o.put(fmt.Sprintf("/vod/film/%s/%d.m4s", r, i), noise(200_000+i))
		}
		o.put("/vod/film/"+r+"/index.m3u8", []byte(list+"#EXT-X-ENDLIST\n"))
	}
}

// world is a seed with its site, its origin, and a tracker's place on the bus.
type world struct {
	t       *testing.T
	bus     *memoryBus
	origin  *origin
	site    *site.Site
	seed    *seed.Service
	metrics *testkit.Recorder
	host    *rtclink.Host
	dial    *rtclink.Host
	tracker signal.ID
	swarm   signal.ID
	dir     string
	stop    func()

	mu      sync.Mutex
	viewers map[signal.ID]*viewer // by link
	keys    chan bus.SeedBeat
	inbox   cluster.Inbox[*bus.Delivery] // only the subscription to what is for viewers
}

func newWorld(t *testing.T, o *origin, change func(*site.Config, *seed.Config)) *world {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	return newWorldOn(t, &memoryBus{}, signal.ID{1}, o, change)
}

// newWorldOn is a world on a bus that others may be on, with a tracker of its own.
func newWorldOn(t *testing.T, b *memoryBus, tracker signal.ID, o *origin, change func(*site.Config, *seed.Config)) *world {
	t.Helper()
	return newWorldWith(t, b, tracker, o, rtclink.Config{Listen: "127.0.0.1:0"}, change)
}

// newWorldWith is one whose seed's links are made as links says.
func newWorldWith(t *testing.T, b *memoryBus, tracker signal.ID, o *origin, links rtclink.Config, change func(*site.Config, *seed.Config)) *world {
	t.Helper()
	w := &world{
		t: t, bus: b, origin: o, metrics: &testkit.Recorder{}, tracker: tracker, swarm: signal.ID{2},
		viewers: map[signal.ID]*viewer{}, keys: make(chan bus.SeedBeat, 4096),
	}
	siteConfig := site.Config{Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: o.URL + "/vod", Policy: site.Policy{CertifyFrom: 1}}
	config := seed.Config{DataDir: t.TempDir(), Metrics: w.metrics}
	if change != nil {
		change(&siteConfig, &config)
	}
	var err error
	if w.site, err = site.New(siteConfig); err != nil {
		t.Fatal(err)
	}
	client, err := originhttp.New(originhttp.Config{Base: w.site.Config().FetchBase})
	if err != nil {
		t.Fatal(err)
	}
	config.Sites = []seed.Site{{Site: w.site, Origin: client, Rate: config.Rate, BytesDaily: 0}}
	w.dir = config.DataDir
	if w.host, err = rtclink.Listen(links); err != nil {
		t.Fatal(err)
	}
	if w.dial, err = rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0", SocketPerLink: true}); err != nil {
		t.Fatal(err)
	}
	if w.seed, err = seed.New(config, w.bus, w.host); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	w.subscribe(bus.SubjectSeedSignal(w.tracker), w.toViewers)
	w.subscribe(bus.SubjectSeedBeat, func(b []byte) {
		var m bus.SeedBeat
		if err := bus.Decode(b, &m); err != nil {
			t.Errorf("beat: %v", err)
		}
		w.keys <- m
	})
	go func() { ended <- w.seed.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("seed ended with %v", err)
			}
			_ = w.dial.Close()
			_ = w.host.Close()
			client.Close()
		})
	}
	t.Cleanup(w.stop)
	w.keys <- wait(t, w.keys, "the first beat, after which the seed listens")
	return w
}

func (w *world) subscribe(subject string, f func([]byte)) {
	undo, err := w.bus.Subscribe(subject, func(_ string, b []byte, _ func([]byte) error) { f(b) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(undo)
}

func (w *world) toSeed(m *bus.SeedDelivery) *sync.WaitGroup {
	b, err := bus.Encode(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.bus.send(bus.SubjectSeedDeliver(w.seed.ID()), b)
}

// revoke publishes revocations and returns when the seed has taken them in.
func (w *world) revoke(list ...signal.Revocation) {
	w.t.Helper()
	b, err := bus.Encode(&bus.RevokeMessage{Revocations: list})
	if err != nil {
		w.t.Fatal(err)
	}
	w.bus.send(bus.SubjectRevoke, b).Wait()
}

// say publishes switches and returns when the seed has taken them in.
func (w *world) say(list ...bus.Switch) {
	w.t.Helper()
	b, err := bus.Encode(&bus.RevokeMessage{Switches: list})
	if err != nil {
		w.t.Fatal(err)
	}
	w.bus.send(bus.SubjectRevoke, b).Wait()
}

// beatTracker has the seed hear of a tracker.
func (w *world) beatTracker(id signal.ID) {
	w.t.Helper()
	b, err := bus.Encode(&bus.TrackerBeat{Tracker: id})
	if err != nil {
		w.t.Fatal(err)
	}
	w.bus.send(bus.SubjectTrackerBeat, b).Wait()
}

func (w *world) title(viewers int) *bus.Title {
	return &bus.Title{Site: "demo", Title: "/film", Manifest: "/film/master.m3u8", Swarm: w.swarm, Viewers: viewers}
}

// name returns when the seed has taken it in.
func (w *world) name(viewers int) {
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: w.title(viewers)}).Wait()
}

// toViewers takes in what the seed says, as a tracker does.
func (w *world) toViewers(b []byte) {
	m := &bus.Delivery{}
	if err := bus.Decode(b, m); err != nil {
		w.t.Errorf("delivery: %v", err)
		return
	}
	for _, m := range w.inbox.Take(m.Stream.N, m.Stream.Base, m) {
		w.toViewer(m)
	}
	ack, err := bus.Encode(&bus.Ack{From: w.tracker, Next: w.inbox.Next()})
	if err != nil {
		w.t.Error(err)
	}
	w.bus.send(bus.SubjectAck(m.Stream.From), ack)
}

func (w *world) toViewer(m *bus.Delivery) {
	w.mu.Lock()
	v := w.viewers[m.Signal.Link]
	w.mu.Unlock()
	if v != nil {
		v.signaled(m.Signal)
	}
}

func (w *world) keySet() *certificate.KeySet {
	beat := wait(w.t, w.keys, "a beat with keys")
	keys := make([]certificate.VerifyKey, len(beat.VerifyKeys))
	for i, k := range beat.VerifyKeys {
		keys[i] = certificate.VerifyKey{KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: k.Sites}
	}
	set, err := certificate.NewKeySet(keys...)
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *world) id(name segment.Name) segment.ID { return segment.NewID("demo", name) }

func wait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
		panic("unreachable")
	}
}
