package viewer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

// lowLatencyMPD is the MPD of a broadcast whose segments can be asked for when their first chunk is there, and which is to be played three chunks
// behind the clock.
func lowLatencyMPD(b *broadcast, each int, sizes ...int) func(edge int) string {
	chunk := b.duration / time.Duration(each)
	var bandwidths []int
	for _, size := range sizes {
		bandwidths = append(bandwidths, int(float64(size)*8/b.duration.Seconds()))
	}
	template := fmt.Sprintf(`duration="%g" availabilityTimeOffset="%g"`, b.duration.Seconds(), (b.duration - chunk).Seconds())
	head := fmt.Sprintf(`<ServiceDescription><Latency target="%d"/></ServiceDescription>`, 3*max(chunk, 500*time.Millisecond).Milliseconds())
	return func(edge int) string {
		return b.dynamic(edge, `minimumUpdatePeriod="PT10S"`, head+`<Period start="PT0S">`+videoSet(0, template, bandwidths...)+`</Period>`)
	}
}

// lowDASH is a viewer of low-latency DASH.
func lowDASH(c *Config) { c.URL, c.LowLatency = "http://film.test"+mpdPath, true }

// newChunkScene is a scene with a stream of segments of 2 s.
func newChunkScene(t testing.TB, each int, sizes ...int) (*scene, *chunkStream) {
	if len(sizes) == 0 {
		sizes = []int{240_000}
	}
	s := newScene(t, func(w *world) *film {
		f := newBroadcast(w, 2*time.Second, 12, 200, []float64{1, 0.8, 0.9}, sizes...)
		f.live.mpd = lowLatencyMPD(f.live, each, sizes...)
		return f
	})
	return s, s.byChunks(each)
}

// TestALiveMPDIsPlayedByChunks of the origin alone, as far behind it as the MPD wants.
func TestALiveMPDIsPlayedByChunks(t *testing.T) {
	s, c := newChunkScene(t, 4)
	s.w.run(700 * time.Millisecond)
	a := s.viewer(fast, func(c *Config) { alone(c); lowDASH(c); c.Leave = time.Minute })
	s.w.run(61 * time.Second)
	s.check()
	sum := a.now()
	if sum.Stats.Stalls != 0 || sum.Errors != 0 || sum.LatencyMs < 1450 || sum.LatencyMs > 1600 || sum.Stats.PlayedMs < 58_000 || c.asked[a.node.name] < 28 {
		t.Errorf("%d ms behind, %d stalls, %d errors (%s), played %d ms, asked for %d while they were made", sum.LatencyMs, sum.Stats.Stalls, sum.Errors, sum.LastError, sum.Stats.PlayedMs, c.asked[a.node.name])
	}
}

// TestSoundIsPlayedByChunksToo, which is apart.
func TestSoundIsPlayedByChunksToo(t *testing.T) {
	s, c := newChunkScene(t, 4, 24_000, 240_000)
	b := s.film.live
	text := b.mpd
	b.mpd = func(edge int) string { // the first rendition is the sound
		set := func(kind, id string) string {
			return `<AdaptationSet contentType="` + kind + `"><SegmentTemplate media="$RepresentationID$/seg-$Number$.ts" startNumber="0" duration="2" availabilityTimeOffset="1.5"/><Representation id="` + id + `" bandwidth="96000"/></AdaptationSet>`
		}
		one := text(edge)
		return one[:strings.Index(one, "<AdaptationSet")] + set("audio", "0") + set("video", "1") + "</Period></MPD>"
	}
	c.audience(3, 40*time.Second)
	s.w.run(40 * time.Second)
	s.fine()
	for i, a := range s.viewers {
		if n := len(a.player.tracks); n != 2 {
			t.Errorf("viewer %d plays %d tracks", i, n)
		}
	}
	if got := s.share(FromOrigin, 12); got > 0.1 {
		t.Errorf("%.2f is of the origin", got)
	}
}

// TestViewersOfChunksShare them: what a viewer is not pushed in time it has from the origin.
func TestViewersOfChunksShare(t *testing.T) {
	s, c := newChunkScene(t, 4)
	for range 4 {
		s.viewer(fast, func(c *Config) { lowDASH(c); c.Leave = time.Minute })
		s.w.run(1300 * time.Millisecond)
	}
	s.w.run(65 * time.Second)
	s.check()
	for i, a := range s.viewers {
		sum := a.now()
		t.Logf("viewer %d: %v of %v, %d ms behind, %d asked, %d wasted, held %d", i, sum.Stats.Bytes, sum.Stats.Segments, sum.LatencyMs, c.asked[a.node.name], sum.Stats.WastedBytes, len(a.title.engine.store.ids()))
		if sum.Stats.Stalls != 0 || sum.Errors != 0 || sum.LatencyMs > 1700 || sum.Banned > 0 {
			t.Errorf("viewer %d: %d ms behind, %d stalls, %d errors (%s), banned %d", i, sum.LatencyMs, sum.Stats.Stalls, sum.Errors, sum.LastError, sum.Banned)
		}
	}
}

// TestAnAudienceOfChunksServesItself: twelve viewers of mixed lines, two minutes, in virtual time, beside the same ones without peers.
func TestAnAudienceOfChunksServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	c := crowd{viewers: 12, segment: 2 * time.Second, chunks: 4, window: 12, length: 2 * time.Minute, within: 30 * time.Second, seed: 1, thin: 2}
	c.servesItself(t, 0.5, 0.001)
}

// BenchmarkChunkAudience plays streams of chunks in virtual time, with peers and by the origin alone.
func BenchmarkChunkAudience(b *testing.B) {
	const traces = 3
	for _, of := range []struct {
		viewers, seconds, chunks int
		thin                     float64
		signed                   bool
	}{{4, 2, 4, 2, false}, {8, 2, 4, 2, false}, {12, 2, 4, 2, false}, {12, 4, 8, 2, false}, {12, 2, 4, 0, false}, {6, 2, 4, 2, true}, {12, 2, 4, 2, true}} {
		b.Run(fmt.Sprintf("viewers=%d/segment=%ds/chunks=%d/thin=%v/signed=%v", of.viewers, of.seconds, of.chunks, of.thin, of.signed), func(b *testing.B) {
			c := crowd{viewers: of.viewers, segment: time.Duration(of.seconds) * time.Second, chunks: of.chunks, window: 12, length: 2 * time.Minute, within: 30 * time.Second, thin: of.thin, signed: of.signed}
			with, alone := c.besideTheOrigin(b, traces)
			b.ReportMetric(with.saved/traces, "egress_saved_ratio")
			b.ReportMetric(alone.lag/traces, "lag_alone_seconds")
		})
	}
}
