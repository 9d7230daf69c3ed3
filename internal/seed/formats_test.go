package seed_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

const partsManifest = "/film/master.m3u8"

// formatsWorld is a world of one title as low-latency HLS and as low-latency DASH.
type formatsWorld struct {
	*world
	parts  *llOrigin
	chunks *chunkOrigin
	clock  *still
}

func newFormatsWorld(t *testing.T) *formatsWorld {
	clock := &still{begun: time.Now()}
	w := &formatsWorld{parts: newLLOrigin(t), chunks: newChunkOrigin(t, clock.now().Add(500*time.Millisecond-firstChunked*chunkedDuration)), clock: clock}
	for range perSegment {
		w.parts.publish(noise(70_000))
	}
	both := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".m3u8") || strings.Contains(r.URL.Path, "/live-") {
			w.parts.serve(rw, r)
			return
		}
		w.chunks.serve(rw, r)
	}))
	w.world = newWorld(t, &origin{Server: both}, func(_ *site.Config, c *seed.Config) { c.Now = clock.now })
	t.Cleanup(func() {
		w.parts.end()
		w.chunks.end()
		w.stop()
		both.Close()
	})
	return w
}

// names tells the seed the title's manifests, as its home does.
func (w *formatsWorld) names(first, beside string) {
	title := w.title(5)
	title.Manifest, title.Beside, title.Chosen = first, beside, true
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
}

// follow connects a viewer that follows a stream. Its offer names one manifest, as those of trackers do.
func (w *formatsWorld) follow(n byte, stream segment.Name, listed uint32) *follower {
	w.t.Helper()
	f := w.connectFollowerOf(n, w.title(5), stream)
	f.clock = w.clock.now
	f.with(func(now int64) { f.stream.Listed(now, listed, segment.ID{1}, 0) })
	return f
}

// TestViewersOfBothFormatsHaveTheirStreams: the home has chosen one manifest, and named the other one beside it. A viewer of each follows its
// stream, and is pushed its parts or chunks. When the choice goes over to the other one they go on, and when one is not named any more its
// stream is left.
func TestViewersOfBothFormatsHaveTheirStreams(t *testing.T) {
	for name, c := range map[string]struct{ first, beside string }{
		"HLS is chosen":  {partsManifest, chunkedManifest},
		"DASH is chosen": {chunkedManifest, partsManifest},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFormatsWorld(t)
			w.names(c.first, c.beside)
			hls := w.follow(1, "/film/low/index.m3u8", turnOf(perSegment-1))
			dash := w.follow(2, chunkedManifest+".low", firstChunked*256-1)
			for _, f := range []*follower{hls, dash} {
				wait(t, f.subscribed, "the seed's places")
				f.settle(t)
			}
			w.parts.await("/vod" + string(partName(perSegment)))
			w.clock.forward(time.Second)
			one := chunkedName("low", firstChunked)
			for n := range 3 {
				if n == 2 {
					w.names(c.beside, c.first)
				}
				chunk, part := chunkOf(50_000+n), noise(100_000)
				w.chunks.adds(one, chunk)
				dash.takes(t, firstChunked, n, chunk)
				w.parts.publish(part)
				hls.list(perSegment+n, len(part))
				hls.take(t, perSegment+n, part)
			}
			w.followed(2)
			w.names(c.first, "")
			w.followed(1)
			w.names(c.first, c.beside)
			w.clock.forward(time.Second) // so long it rests
			w.followed(2)
			for _, f := range []*follower{hls, dash} {
				f.mu.Lock()
				if len(f.faults) > 0 || len(f.v.closed) > 0 {
					t.Errorf("%v, ended: %v", f.faults, len(f.v.closed) > 0)
				}
				f.mu.Unlock()
			}
		})
	}
}

// TestAViewerOfTheOtherFormatNeedNotWaitForTheChoice: the viewers of one format have left, so the title's swarm is a new one at its home, which
// has chosen nothing yet. What a part of a swarm names is not followed.
func TestAViewerOfTheOtherFormatNeedNotWaitForTheChoice(t *testing.T) {
	w := newFormatsWorld(t)
	w.names(partsManifest, "")
	dash := w.follow(2, chunkedManifest+".low", firstChunked*256-1)
	title := w.title(1)
	title.Manifest = chunkedManifest
	name := func() { w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait() }
	name()
	w.parts.awaits("/vod"+partsManifest, 1)
	w.followed(0)
	title.Credited = new(int64)
	name()
	w.followed(1)
	wait(t, dash.subscribed, "the seed's places")
	dash.settle(t)
	w.clock.forward(time.Second)
	chunk := chunkOf(50_000)
	w.chunks.adds(chunkedName("low", firstChunked), chunk)
	dash.takes(t, firstChunked, 0, chunk)
	w.names(chunkedManifest, "")
	w.followed(1)
}

// followed waits until the seed follows so many streams.
func (w *formatsWorld) followed(n float64) {
	w.t.Helper()
	testkit.Eventually(w.t, "the streams are followed, or left", func() bool { return w.counted("leeway_seed_part_streams") == n })
}

// TestNoStreamOfAnMPDThatIsNotNamedIsFollowed: what viewers follow brings no manifest in.
func TestNoStreamOfAnMPDThatIsNotNamedIsFollowed(t *testing.T) {
	w := newFormatsWorld(t)
	w.names(partsManifest, "/../elsewhere/manifest.mpd")
	w.follow(1, "/film/low/index.m3u8", turnOf(perSegment-1))
	w.follow(2, chunkedManifest+".low", firstChunked*256-1)
	w.followed(1)
	w.clock.forward(time.Second)
	w.parts.awaits("/vod/film/master.m3u8", 1)
	w.chunks.mu.Lock()
	defer w.chunks.mu.Unlock()
	if len(w.chunks.asked) > 0 {
		t.Errorf("the origin was asked for %v", w.chunks.asked)
	}
}
