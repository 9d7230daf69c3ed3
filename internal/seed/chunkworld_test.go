package seed_test

import (
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

// revokeKey has the seed hear that its key is revoked.
func (c *chunkWorld) revokeKey() {
	c.follower.mu.Lock()
	defer c.follower.mu.Unlock()
	id := c.told[firstChunked*256].KeyID
	c.revoke(signal.Revocation{KeyID: id[:]})
}
