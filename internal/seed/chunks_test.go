package seed_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	chunkedDuration = 12 * time.Second
	chunkedManifest = "/film/manifest.mpd"
	movedManifest   = "/now/manifest.mpd" // leads to the other
	firstChunked    = 8                   // s of the segment that can be asked for first
)

// chunkOrigin is an origin of low-latency DASH: it sends of a segment what the test has made.
type chunkOrigin struct {
	*httptest.Server
	mu    sync.Mutex
	some  *sync.Cond
	mpd   string
	made  map[string]*made // guarded by mu; by path
	asked map[string]int   // guarded by mu
	ended bool             // guarded by mu
}

// made is what there is of a segment.
type made struct {
	data        []byte
	over, fails bool
}

func newChunkOrigin(t *testing.T, begun time.Time) *chunkOrigin {
	o := &chunkOrigin{made: map[string]*made{}, asked: map[string]int{}}
	o.some = sync.NewCond(&o.mu)
	o.mpd = `<MPD type="dynamic" availabilityStartTime="` + begun.UTC().Format(time.RFC3339Nano) + `"><Period start="PT0S"><AdaptationSet mimeType="video/mp4">
		<SegmentTemplate duration="12" availabilityTimeOffset="12" media="$RepresentationID$/$Number$.m4s"/>
		<Representation id="low" bandwidth="5000000"/><Representation id="high" bandwidth="5500000"/></AdaptationSet></Period></MPD>`
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	return o
}

func (o *chunkOrigin) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[r.URL.Path]++
	o.some.Broadcast()
	if r.URL.Path == "/vod"+chunkedManifest {
		fmt.Fprint(w, o.mpd)
		return
	}
	if r.URL.Path == "/vod"+movedManifest {
		http.Redirect(w, r, "/vod"+chunkedManifest, http.StatusFound)
		return
	}
	m := o.made[r.URL.Path]
	if m == nil {
		http.NotFound(w, r)
		return
	}
	for sent := 0; ; {
		if sent < len(m.data) {
			_, _ = w.Write(m.data[sent:])
			_ = http.NewResponseController(w).Flush()
			sent = len(m.data)
		}
		switch {
		case m.fails, o.ended:
			panic(http.ErrAbortHandler)
		case m.over:
			return
		}
		o.some.Wait()
	}
}

// make changes what there is of a segment.
func (o *chunkOrigin) make(name segment.Name, f func(m *made)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.made["/vod"+string(name)]
	if m == nil {
		m = &made{}
		o.made["/vod"+string(name)] = m
	}
	f(m)
	o.some.Broadcast()
}

func (o *chunkOrigin) adds(name segment.Name, data []byte) {
	o.make(name, func(m *made) { m.data = append(m.data, data...) })
}

func (o *chunkOrigin) ends(name segment.Name) { o.make(name, func(m *made) { m.over = true }) }

func (o *chunkOrigin) end() {
	o.mu.Lock()
	o.ended = true
	o.some.Broadcast()
	o.mu.Unlock()
	o.Close()
}

func (o *chunkOrigin) count(name segment.Name) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked["/vod"+string(name)]
}

// await waits until a segment has been asked for so often.
func (o *chunkOrigin) await(name segment.Name, times int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.asked["/vod"+string(name)] < times && !o.ended {
		o.some.Wait()
	}
}

// chunkOf is a chunk of a bit more than so many bytes.
func chunkOf(n int) []byte {
	box := func(kind string, content []byte) []byte {
		return slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(8+len(content))), []byte(kind), content)
	}
	return slices.Concat(box("styp", []byte("msdh")), box("moof", make([]byte, 30)), box("mdat", noise(n)))
}

// still is a clock that goes on when it is told to. The machine may be as slow as it likes.
type still struct {
	begun time.Time
	jump
}

func (s *still) now() time.Time { return s.begun.Add(time.Duration(s.offset.Load())) }

// chunkWorld is a world of low-latency DASH with a viewer that follows its stream low.
type chunkWorld struct {
	*world
	*chunkOrigin
	*follower
	clock *still
}

func newChunkWorld(t *testing.T, change func(*site.Config)) *chunkWorld {
	clock := &still{begun: time.Now()}
	o := newChunkOrigin(t, clock.now().Add(500*time.Millisecond-firstChunked*chunkedDuration))
	w := newWorld(t, &origin{Server: o.Server}, func(s *site.Config, c *seed.Config) {
		c.Now = clock.now
		if change != nil {
			change(s)
		}
	})
	t.Cleanup(func() { o.end(); w.stop() })
	c := &chunkWorld{world: w, chunkOrigin: o, clock: clock}
	title := c.title()
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
	c.follower = c.follow(1, "low")
	clock.forward(time.Second)
	return c
}

// forward goes on to the next segment, in steps in which viewers renew their subscriptions.
func (c *chunkWorld) forward(all ...*follower) {
	for range chunkedDuration / (2 * time.Second) {
		c.clock.forward(2 * time.Second)
		for _, f := range append(all, c.follower) {
			f.with(func(now int64) { f.node.Tick(now) })
			f.settle(c.t)
		}
	}
}

func (c *chunkWorld) title() *bus.Title {
	title := c.world.title(5)
	title.Manifest = chunkedManifest
	return title
}

// follow connects a viewer that follows a rendition, and returns when the seed does so, too.
func (c *chunkWorld) follow(n byte, rendition string) *follower {
	c.t.Helper()
	f := c.comes(n, rendition)
	wait(c.t, f.subscribed, "the seed's places")
	f.settle(c.t)
	return f
}

// comes connects one while a segment is made, of which the seed tells nothing to it.
func (c *chunkWorld) comes(n byte, rendition string) *follower {
	c.t.Helper()
	f := c.connectFollowerOf(n, c.title(), segment.Name(chunkedManifest+"."+rendition))
	f.clock = c.clock.now
	f.with(func(now int64) { f.stream.Listed(now, firstChunked*256-1, segment.ID{1}, 0) })
	f.settle(c.t)
	return f
}

func chunkedName(rendition string, s int) segment.Name {
	return segment.Name(fmt.Sprintf("/film/%s/%d.m4s", rendition, s+1))
}

// takes waits for a chunk of segment s, and has the viewer's playlist list it.
func (f *follower) takes(t *testing.T, s, n int, want []byte) {
	t.Helper()
	turn := uint32(s*256 + n)
	f.takeTurn(t, turn, want)
	f.with(func(now int64) { f.stream.Listed(now, turn, segment.NewID("demo", f.told[turn].Name), len(want)) })
}

// hears waits until a turn was told.
func (f *follower) hears(t *testing.T, s, n int) *certificate.Certificate {
	t.Helper()
	turn := uint32(s*256 + n)
	testkit.Eventually(t, fmt.Sprintf("turn %d.%d is told", s, n), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.told[turn] != nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[turn]
}

// turns are those that were told.
func (f *follower) turns() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, turn := range slices.Sorted(maps.Keys(f.told)) {
		all = append(all, fmt.Sprintf("%d.%d", turn/256, turn%256))
	}
	return append(all, f.faults...)
}

// TestChunksAreToldAndPushedWhileTheirSegmentIsMade: each as soon as it is there, under its turn and its name; then the whole, which viewers
// that ask for the segment get, too. The origin is asked once for a segment that is there.
func TestChunksAreToldAndPushedWhileTheirSegmentIsMade(t *testing.T) {
	w := newChunkWorld(t, nil)
	high := w.comes(2, "high")
	for s := firstChunked; s < firstChunked+2; s++ {
		name := chunkedName("low", s)
		w.await(name, 2) // it is not there at once
		whole, from := []byte(nil), int64(0)
		for n, size := range []int{50_000, 9, 120_000, 16_384} {
			data := chunkOf(size)
			whole = append(whole, data...)
			w.adds(name, data[:7])
			w.adds(name, data[7:])
			w.takes(t, s, n, data)
			c := w.hears(t, s, n)
			last := from + int64(len(data)) - 1
			if c.Name != segment.RangeName(string(name), from, last) || c.ObjectLength != last+1 || c.Length != int64(len(data)) || c.NotAfter.Sub(c.IssuedAt) != 10*time.Minute {
				t.Errorf("chunk %d.%d: %+v", s, n, c)
			}
			from = last + 1
		}
		asked := w.count(name)
		w.ends(name)
		c := w.hears(t, s, 255)
		if c.Name != name || c.ObjectLength != from || c.Length != from || !slices.Equal(c.Digests, certificate.DigestPieces(whole)) {
			t.Errorf("the end of %d: %+v", s, c)
		}
		w.forward()
		if s == firstChunked {
			testkit.Eventually(t, "the segment is listed", func() bool { c, _ = w.v.certificate(name); return c != nil })
			if data, _ := w.v.fetch(c); !bytes.Equal(data, whole) || w.count(name) != asked {
				t.Errorf("%d bytes of %d; the origin was asked %d times more", len(data), len(whole), w.count(name)-asked)
			}
		}
	}
	if want := []string{"8.0", "8.1", "8.2", "8.3", "8.255", "9.0", "9.1", "9.2", "9.3", "9.255"}; !slices.Equal(w.turns(), want) {
		t.Errorf("told %v, want %v", w.turns(), want)
	}
	if got := high.turns(); len(got) > 0 {
		t.Errorf("of another rendition %v", got)
	}
	if n := w.counted("leeway_seed_parts_total", "demo", "signed"); n != 8 {
		t.Errorf("%v chunks are counted", n)
	}
	if n := w.counted("leeway_seed_origin_bytes_total", "demo"); n < 2*186_000 {
		t.Errorf("%v bytes are counted", n)
	}
}

// TestChunksOfTwoRenditionsAreToldApart: of each from the first segment on that began after the stream was followed.
func TestChunksOfTwoRenditionsAreToldApart(t *testing.T) {
	w := newChunkWorld(t, nil)
	low, data := chunkOf(70_000), chunkOf(2000)
	w.adds(chunkedName("low", firstChunked), low)
	w.takes(t, firstChunked, 0, low)
	w.ends(chunkedName("low", firstChunked))
	w.hears(t, firstChunked, 255)
	high := w.comes(2, "high")
	w.forward(high)
	w.adds(chunkedName("low", firstChunked+1), low)
	w.adds(chunkedName("high", firstChunked+1), data)
	w.takes(t, firstChunked+1, 0, low)
	if c := high.hears(t, firstChunked+1, 0); c.Name != segment.RangeName(string(chunkedName("high", firstChunked+1)), 0, int64(len(data))-1) {
		t.Errorf("%+v", c)
	}
	if a, b := w.turns(), high.turns(); !slices.Equal(a, []string{"8.0", "8.255", "9.0"}) || !slices.Equal(b, []string{"9.0"}) {
		t.Errorf("told %v and %v", a, b)
	}
	if n := w.chunkOrigin.count(chunkedName("high", firstChunked)); n != 0 {
		t.Errorf("the origin was asked %d times for a segment that had begun before the stream was followed", n)
	}
}

// TestViewersHearOfAStreamOfChunksWhenSomeCome: half a second before the next segment can be asked for. One that subscribes sooner would take the seed for
// silent, and leave it alone for 16 s.
func TestViewersHearOfAStreamOfChunksWhenSomeCome(t *testing.T) {
	w := newChunkWorld(t, nil)
	high := w.comes(2, "high")
	testkit.Eventually(t, "the seed follows both", func() bool { return w.counted("leeway_seed_part_streams") == 2 })
	w.clock.forward(chunkedDuration - 2*time.Second)
	high.settle(t)
	high.mu.Lock()
	sooner := high.stripes
	high.mu.Unlock()
	w.clock.forward(time.Second)
	wait(t, high.subscribed, "the seed's places")
	if sooner > 0 {
		t.Error("it has heard of it sooner")
	}
}

// TestChunksOfAManifestThatIsElsewhereAreToldUnderItsName: players name the stream by the URL that they were given, whatever it led to, and
// the segments by where they are.
func TestChunksOfAManifestThatIsElsewhereAreToldUnderItsName(t *testing.T) {
	w := newChunkWorld(t, nil)
	w.swarm = signal.ID{6}
	title := w.world.title(5)
	title.Manifest = movedManifest
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
	f := w.connectFollowerOf(2, title, movedManifest+".low")
	f.clock = w.clock.now
	f.with(func(now int64) { f.stream.Listed(now, firstChunked*256-1, segment.ID{1}, 0) })
	testkit.Eventually(t, "the seed follows both", func() bool { return w.counted("leeway_seed_part_streams") == 2 })
	w.forward(f)
	data := chunkOf(9)
	w.adds(chunkedName("low", firstChunked+1), data)
	if c := f.hears(t, firstChunked+1, 0); c.Name != segment.RangeName(string(chunkedName("low", firstChunked+1)), 0, int64(len(data))-1) {
		t.Errorf("%+v", c)
	}
}

// TestOfASegmentThatFailsNothingMoreIsTold: neither a further chunk nor the end. The next one is told again.
func TestOfASegmentThatFailsNothingMoreIsTold(t *testing.T) {
	first := chunkOf(70_000) // of all stripes
	for name, c := range map[string]struct {
		then func(w *chunkWorld, name segment.Name)
		told []string
	}{
		"the origin dies":          {func(w *chunkWorld, name segment.Name) { w.make(name, func(m *made) { m.fails = true }) }, nil},
		"the answer ends in a box": {func(w *chunkWorld, name segment.Name) { w.adds(name, chunkOf(50)[:60]); w.ends(name) }, nil},
		"garbage": {func(w *chunkWorld, name segment.Name) {
			w.adds(name, []byte{0, 0, 0, 3, 1, 2, 3, 4})
			w.adds(name, chunkOf(9))
			w.ends(name)
		}, nil},
		"media alone": {func(w *chunkWorld, name segment.Name) { w.adds(name, []byte("\x00\x00\x00\x08mdat")); w.ends(name) }, nil},
		"it is too long": {func(w *chunkWorld, name segment.Name) {
			w.adds(name, chunkOf(9))
			w.adds(name, chunkOf(segment.MaxLength))
			w.ends(name)
		}, []string{"8.1"}},
		"it is purged": {func(w *chunkWorld, name segment.Name) {
			w.revoke(purge(w.clock.now()))
			w.adds(name, chunkOf(9))
			w.ends(name)
		}, nil},
		"the site is off": {func(w *chunkWorld, name segment.Name) {
			w.say(w.seed.Statements("demo", true, cluster.ByOperator, time.Time{})...)
			w.adds(name, chunkOf(9))
			w.ends(name)
		}, nil},
		"the key is revoked": {func(w *chunkWorld, name segment.Name) { w.revokeKey(); w.adds(name, chunkOf(9)); w.ends(name) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newChunkWorld(t, nil)
			one := chunkedName("low", firstChunked)
			w.adds(one, first)
			w.takes(t, firstChunked, 0, first)
			c.then(w, one)
			testkit.Eventually(t, "it has failed", func() bool { return w.counted("leeway_seed_parts_total", "demo", "failed") == 1 || len(w.v.closed) > 0 })
			if got, want := w.turns(), append([]string{"8.0"}, c.told...); !slices.Equal(got, want) {
				t.Fatalf("told %v, want %v", got, want)
			}
			if name == "the site is off" || name == "the key is revoked" || name == "it is too long" {
				return
			}
			w.forward()
			next := chunkOf(30_000)
			w.adds(chunkedName("low", firstChunked+1), next)
			w.takes(t, firstChunked+1, 0, next)
		})
	}
}

// revokeKey has the seed hear that its key is revoked.
func (c *chunkWorld) revokeKey() {
	c.follower.mu.Lock()
	defer c.follower.mu.Unlock()
	id := c.told[firstChunked*256].KeyID
	c.revoke(signal.Revocation{KeyID: id[:]})
}
