package seed_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// waits is as what requests for a playlist with a part that is not there yet are counted.
const waits = "waits"

// perSegment parts make a segment of the tests.
const perSegment = 4

// llOrigin is an origin of a low-latency stream: a request for a playlist with a part that is not there, or for the part that the
// playlist hints at, waits for it.
type llOrigin struct {
	*httptest.Server
	mu    sync.Mutex
	some  *sync.Cond
	parts [][]byte       // guarded by mu
	asked map[string]int // guarded by mu; by path
	ended bool           // guarded by mu
	gone  chan struct{}  // a request that waited was given up
}

func newLLOrigin(t *testing.T) *llOrigin {
	o := &llOrigin{asked: map[string]int{}, gone: make(chan struct{}, 64)}
	o.some = sync.NewCond(&o.mu)
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	return o
}

// end answers all requests that wait, and closes the origin.
func (o *llOrigin) end() {
	o.mu.Lock()
	o.ended = true
	o.some.Broadcast()
	o.mu.Unlock()
	o.Close()
}

// publish adds a part.
func (o *llOrigin) publish(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts = append(o.parts, data)
	o.some.Broadcast()
}

func (o *llOrigin) count(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

// await waits until a path has been asked for.
func (o *llOrigin) await(path string) { o.awaits(path, 1) }

// awaits waits until it has been asked for so often.
func (o *llOrigin) awaits(path string, times int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.asked[path] < times && !o.ended {
		o.some.Wait()
	}
}

func (o *llOrigin) serve(w http.ResponseWriter, r *http.Request) {
	stop := context.AfterFunc(r.Context(), func() { o.gone <- struct{}{} })
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[r.URL.Path]++
	o.some.Broadcast()
	switch {
	case r.URL.Path == "/vod/film/master.m3u8":
		fmt.Fprint(w, "#EXTM3U\n#EXT-X-DEFINE:NAME=\"name\",VALUE=\"live\"\n#EXT-X-STREAM-INF:BANDWIDTH=8000000\nlow/index.m3u8\n")
	case r.URL.Path == "/vod/film/low/index.m3u8":
		if msn := r.FormValue("_HLS_msn"); msn != "" {
			o.asked[waits]++
			o.some.Broadcast()
			m, _ := strconv.Atoi(msn)
			p, _ := strconv.Atoi(r.FormValue("_HLS_part"))
			for len(o.parts) <= m*perSegment+p && !o.ended {
				o.some.Wait()
			}
		}
		fmt.Fprint(w, o.playlist())
	case strings.HasSuffix(r.URL.Path, ".m4s"):
		var m, p int
		_, _ = fmt.Sscanf(r.URL.Path, "/vod/film/low/live-%d.%d.m4s", &m, &p)
		n := m*perSegment + p
		for len(o.parts) <= n && !o.ended {
			o.some.Wait()
		}
		if n < len(o.parts) {
			_, _ = w.Write(o.parts[n])
		}
	default:
		http.NotFound(w, r)
	}
}

// paths are those that were asked for.
func (o *llOrigin) paths() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.asked)
}

// playlist lists the parts that there are. Under mu.
func (o *llOrigin) playlist() string {
	list := "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n" +
		"#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-DEFINE:IMPORT=\"name\"\n"
	for n := range o.parts {
		list += fmt.Sprintf("#EXT-X-PART:DURATION=0.5,URI=\"{$name}-%d.%d.m4s\"\n", n/perSegment, n%perSegment)
		if n%perSegment == perSegment-1 {
			list += fmt.Sprintf("#EXTINF:2,\nlive-%d.m4s\n", n/perSegment)
		}
	}
	n := len(o.parts)
	return list + fmt.Sprintf("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"live-%d.%d.m4s\"\n", n/perSegment, n%perSegment)
}

func partName(n int) segment.Name {
	return segment.WholeName(fmt.Sprintf("/film/low/live-%d.%d.m4s", n/perSegment, n%perSegment))
}

// follower is a viewer's part in the stream of the tests.
type follower struct {
	v          *viewer
	keys       *certificate.KeySet
	id         segment.ID // of the stream
	pongs      chan uint32
	subscribed chan struct{} // closed once the viewer has asked to be pushed all stripes

	mu      sync.Mutex
	node    *parts.Node
	stream  *parts.Stream
	faults  []string                            // guarded by mu
	told    map[uint32]*certificate.Certificate // guarded by mu; by turn
	stripes int                                 // guarded by mu: subscriptions
	now     int64                               // guarded by mu: stands still until the first piece has come, however slow the machine is
	begun   bool                                // guarded by mu
	clock   func() time.Time
}

// connectFollower offers a link of a viewer that speaks parts.
func (w *world) connectFollower(n byte) *follower {
	w.t.Helper()
	return w.connectFollowerOf(n, w.title(5), "/film/low/index.m3u8")
}

// connectFollowerOf is connectFollower of a title and a stream.
func (w *world) connectFollowerOf(n byte, title *bus.Title, stream segment.Name) *follower {
	w.t.Helper()
	f := &follower{keys: w.keySet(), id: w.id(stream), pongs: make(chan uint32, 64), subscribed: make(chan struct{}), told: map[uint32]*certificate.Certificate{}, clock: time.Now}
	f.v = w.newViewer(n)
	f.v.flags, f.v.parts = peer.SpeaksParts, f
	f.node = parts.New(parts.Config{Self: f.v.id})
	f.v.offer(title)
	if h := wait(w.t, f.v.ready, "the seed's hello"); h.Flags&peer.SpeaksParts == 0 {
		w.t.Fatal("the seed does not speak parts")
	}
	f.with(func(now int64) {
		f.node.Linked(w.seed.ID(), true)
		f.stream = f.node.Follow(now, f.id, parts.Settings{Slots: 4, Part: 500_000})
	})
	return f
}

// with hands the node to do, and does what it wants.
func (f *follower) with(do func(now int64)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun || f.now == 0 {
		f.now = f.clock().UnixMicro()
	}
	do(f.now)
	for acts := f.node.Take(); acts != nil; acts = f.node.Take() {
		for _, a := range acts {
			f.act(f.now, a)
		}
	}
}

func (f *follower) act(now int64, a parts.Act) {
	switch a := a.(type) {
	case parts.Say:
		f.v.session.Send(a.Message)
		if _, ok := a.Message.(peer.Subscribe); ok {
			if f.stripes++; f.stripes == peer.Stripes {
				close(f.subscribed)
			}
		}
	case parts.Verify:
		c, err := certificate.Parse(a.Raw)
		if err != nil || f.keys.Verify(c, "demo", c.Name, time.Now(), nil) != nil {
			f.faults = append(f.faults, fmt.Sprintf("a certificate does not verify: %v", err))
			f.node.Refused(now, a)
			return
		}
		f.told[a.Turn] = c
		f.node.Certified(now, a, parts.Content{Segment: segment.NewID("demo", c.Name), Length: int(c.Length), Digests: c.Digests, Raw: a.Raw})
	case parts.Check:
		f.begun = true
		f.node.Checked(now, a, sha256.Sum256(a.Data) == a.Digest)
	case parts.Fetch, parts.Blame:
		f.faults = append(f.faults, fmt.Sprintf("%+v", a))
	}
}

func (f *follower) heard(m peer.Message) {
	if p, ok := m.(peer.Part); ok {
		p.Raw = bytes.Clone(p.Raw)
		m = p
	}
	f.with(func(now int64) { f.node.Heard(now, f.v.w.seed.ID(), m) })
}

func (f *follower) pushed(m peer.Data) error {
	f.with(func(now int64) { f.node.Data(now, f.v.w.seed.ID(), m) })
	return nil
}

// list says that the playlist lists a part.
func (f *follower) list(n, length int) {
	f.with(func(now int64) { f.stream.Listed(now, turnOf(n), f.v.w.id(partName(n)), length) })
}

func turnOf(n int) uint32 {
	turn, _ := parts.Turn(int64(n/perSegment), n%perSegment)
	return turn
}

// settle returns when the seed has taken in what the viewer has said.
func (f *follower) settle(t *testing.T) {
	t.Helper()
	for nonce := f.v.session.Ping(); wait(t, f.pongs, "a pong") != nonce; {
	}
}

// take waits until all of a part has come of the seed.
func (f *follower) take(t *testing.T, n int, want []byte) {
	t.Helper()
	f.takeTurn(t, turnOf(n), want)
}

func (f *follower) takeTurn(t *testing.T, turn uint32, want []byte) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var got []byte
		f.with(func(now int64) {
			f.node.Tick(now)
			for i := range f.stream.Pieces(turn) {
				got = append(got, f.stream.Bytes(turn, i)...)
			}
		})
		if bytes.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d bytes of the part at turn %d came", len(got), len(want), turn)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func newLLWorld(t *testing.T, change func(*site.Config, *seed.Config)) (*world, *llOrigin) {
	o := newLLOrigin(t)
	for range perSegment {
		o.publish(noise(70_000))
	}
	w := newWorld(t, &origin{Server: o.Server}, change)
	t.Cleanup(func() { o.end(); w.stop() })
	return w, o
}

// TestASeedSignsAndPushesPartsAsTheyAreListed: a viewer that follows a low-latency stream gets each part, signed, without asking for
// it, and the origin is asked for it once.
func TestASeedSignsAndPushesPartsAsTheyAreListed(t *testing.T) {
	w, o := newLLWorld(t, nil)
	w.name(5)
	f := w.connectFollower(1)
	f.list(perSegment-1, 70_000)
	o.await("/vod" + string(partName(perSegment))) // it is hinted at: the seed follows the playlist
	wait(t, f.subscribed, "the seed's places")
	f.settle(t)
	for n := perSegment; n < 2*perSegment+2; n++ {
		data := noise(100_000)
		o.publish(data)
		f.list(n, len(data))
		f.take(t, n, data)
		if asked := o.count("/vod" + string(partName(n))); asked != 1 {
			t.Errorf("the origin was asked %d times for part %d", asked, n)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) > 0 {
		t.Error(f.faults)
	}
}

// TestNoStreamIsFollowedThatTheTitleDoesNotList: names of streams cost the origin nothing, and a viewer that says too many loses its
// link.
func TestNoStreamIsFollowedThatTheTitleDoesNotList(t *testing.T) {
	w, o := newLLWorld(t, nil)
	w.name(5)
	f := w.connectFollower(1)
	o.await("/vod/film/low/index.m3u8")
	for i := range byte(parts.MaxStreams - 1) {
		f.v.session.Send(peer.Follow{Stream: segment.ID{i}, On: true})
	}
	f.settle(t)
	f.v.session.Send(peer.Follow{Stream: segment.ID{99}, On: true})
	if r := wait(t, f.v.closed, "the end of the link"); r != peer.CloseClosed {
		t.Errorf("it ended as %s", r)
	}
	if n := w.counted("leeway_seed_overruns_total", string(peer.LimitMessages)); n != 1 {
		t.Errorf("%v overruns are counted", n)
	}
	for path := range o.paths() {
		if path != "/vod/film/master.m3u8" && path != "/vod/film/low/index.m3u8" && path != waits && path != "/vod"+string(partName(perSegment)) {
			t.Errorf("the origin was asked for %s", path)
		}
	}
}

// TestAStreamIsLeftWithItsLastViewer: the requests that the origin keeps end.
func TestAStreamIsLeftWithItsLastViewer(t *testing.T) {
	w, o := newLLWorld(t, nil)
	w.name(5)
	f := w.connectFollower(1)
	o.await("/vod" + string(partName(perSegment)))
	o.await(waits)
	f.with(func(now int64) { f.node.Unfollow(now, f.id) })
	f.settle(t)
	for range 2 { // the playlist, and the part that it hints at
		wait(t, o.gone, "the end of a request that the origin keeps")
	}
}

// TestNoPartIsAskedForThatIsNotCertified: the title has too few viewers for certificates, and each has all parts from the origin.
func TestNoPartIsAskedForThatIsNotCertified(t *testing.T) {
	w, o := newLLWorld(t, func(c *site.Config, _ *seed.Config) { c.Policy.CertifyFrom = 6 })
	w.name(5)
	w.connectFollower(1)
	for n := range 4 {
		o.awaits(waits, n+1) // the seed follows the playlist
		o.publish(noise(70_000))
	}
	for path, asked := range o.paths() {
		if strings.HasSuffix(path, ".m4s") {
			t.Errorf("the origin was asked %d times for %s", asked, path)
		}
	}
}
