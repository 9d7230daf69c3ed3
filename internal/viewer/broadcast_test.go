package viewer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
)

// broadcast is a live stream on an origin of the world: a playlist in which segments appear when they have been made, and from which
// they go.
type broadcast struct {
	w        *world
	film     *film
	duration time.Duration
	window   int                      // segments in a playlist
	ends     int                      // number of segments; then the playlist has an end
	seedAt   time.Time                // when the seed loaded the playlist last
	breaks   map[int]bool             // segments behind a discontinuity
	undated  bool                     // the playlist says nothing of the wall clock
	name     func(r, seq int) string  // of a segment; nil: seg-<seq>.ts
	stale    func(r int, now int) int // the playlist that a cache shows; nil: that of now
	signed   map[string][]byte        // what a packager has signed, by path; nil: it signs nothing
	anew     int                      // segment with which the packager begins anew, with lower numbers; 0: it does not
	mpd      func(edge int) string    // the MPD that lists the segments before a number; nil: there is none
	again    int                      // number of that segment, which another one had before; 0: numbers were above all that come
	uneven   *uneven                  // segments of other lengths, or published late; nil: neither
	target   int                      // what the playlist says, s; 0: the duration
	seedLate time.Duration            // the seed knows a segment so long after it is published; 0: as seedKnows says
}

// kept is how many segments an origin still has that have left the playlist.
const kept = 2

func newBroadcast(w *world, duration time.Duration, window, n int, pattern []float64, sizes ...int) *film {
	f := newVaried(w, n, duration, pattern, sizes...)
	f.live = &broadcast{w: w, film: f, duration: duration, window: window, ends: n}
	return f
}

// published is when a segment is in the playlist.
func (b *broadcast) published(seq int) time.Time {
	if b.uneven != nil {
		return b.uneven.published[seq]
	}
	return worldBegin.Add(time.Duration(seq+1-b.window) * b.duration)
}

// begins is when a segment begins on the clock, and how long it plays.
func (b *broadcast) begins(seq int) (time.Time, time.Duration) {
	if b.uneven != nil {
		return b.uneven.begins[seq], b.uneven.begins[seq+1].Sub(b.uneven.begins[seq])
	}
	return b.published(seq).Add(-b.duration), b.duration
}

// clock is the date of a segment in a playlist.
func (b *broadcast) clock(seq int) string {
	begins, _ := b.begins(seq)
	return "#EXT-X-PROGRAM-DATE-TIME:" + begins.UTC().Format("2006-01-02T15:04:05.000Z") + "\n"
}

// edge is how many segments have been published.
func (b *broadcast) edge() int {
	if b.uneven != nil {
		return b.uneven.edge(b.w.now)
	}
	return min(b.ends, b.window+int(b.w.now.Sub(worldBegin)/b.duration))
}

// get is a playlist, or a segment that is there; is is false for what is not of the broadcast.
func (b *broadcast) get(path string) (data []byte, is bool) {
	var r, seq int
	if n, _ := fmt.Sscanf(path, "/media/film/%d/seg-%d.ts", &r, &seq); n == 2 && strings.HasSuffix(path, ".ts") {
		if b.name != nil {
			return b.film.files[path], true
		}
		if edge := b.edge(); seq >= edge || seq < edge-b.window-kept {
			return nil, true
		}
		return b.film.files[path], true
	}
	if b.mpd != nil && path == mpdPath {
		text := b.mpd(b.edge())
		return []byte(text), text != ""
	}
	if n, _ := fmt.Sscanf(path, "/media/film/%d/index.m3u8", &r); n == 1 && strings.HasSuffix(path, ".m3u8") {
		return b.list(r), true
	}
	if b.signed != nil && strings.HasSuffix(path, "index.m3u8"+certificate.ListSuffix) {
		return b.signatures(r), true
	}
	return nil, false
}

// signatures is the packager's list of a playlist: it names what the playlist names.
func (b *broadcast) signatures(r int) []byte {
	var entries [][]byte
	edge := b.edge()
	for seq := max(0, edge-b.window); seq < edge; seq++ {
		path := fmt.Sprintf("/media/film/%d/seg-%d.ts", r, seq)
		if b.signed[path] == nil {
			life := time.Duration(b.window)*b.duration + 10*time.Minute
			b.signed[path] = short(later(worldBegin.Add(-time.Minute), b.published(seq)), life, segment.WholeName(path), b.film.files[path])
		}
		entries = append(entries, b.signed[path])
	}
	return listOf(entries...)
}

// first is the first segment in a playlist that ends before edge, and its number.
func (b *broadcast) first(edge int) (seq, number int) {
	seq = max(0, edge-b.window)
	switch {
	case b.anew == 0:
		return seq, seq
	case edge < b.anew && b.again > 0:
		return seq, seq
	case edge < b.anew:
		return seq, seq + 1000
	}
	seq = max(seq, b.anew)
	return seq, seq - b.anew + b.again
}

func (b *broadcast) list(r int) []byte {
	edge := b.edge()
	if b.stale != nil {
		edge = b.stale(r, edge)
	}
	first, number := b.first(edge)
	list := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:%d\n#EXT-X-MEDIA-SEQUENCE:%d\n", max(b.target, int(b.duration.Seconds())), number)
	list += b.clock(first)
	for seq := first; seq < edge; seq++ {
		if b.breaks[seq] {
			list += "#EXT-X-DISCONTINUITY\n" + b.clock(seq)
		}
		name := fmt.Sprintf("seg-%d.ts", seq)
		if b.name != nil {
			name = b.name(r, seq)
		}
		_, lasts := b.begins(seq)
		list += fmt.Sprintf("#EXTINF:%.3f,\n%s\n", lasts.Seconds(), name)
	}
	if edge == b.ends {
		list += "#EXT-X-ENDLIST\n"
	}
	if b.undated {
		list = dates.ReplaceAllString(list, "")
	}
	return []byte(list)
}

var dates = regexp.MustCompile("#EXT-X-PROGRAM-DATE-TIME:.*\n")

// seedKnows is when the seed's copy of the playlist names a segment. The seed loads the playlist as often as it changes. It also loads it when
// a viewer asks for a segment that the copy does not name, half of a segment after the last load at the soonest, or a second (internal/seed).
func (b *broadcast) seedKnows(path string) time.Time {
	var r, seq int
	if n, _ := fmt.Sscanf(path, "/media/film/%d/seg-%d.ts", &r, &seq); n != 2 {
		return b.w.now
	}
	for !b.seedAt.Add(b.duration).After(b.w.now) {
		if b.seedAt.IsZero() {
			b.seedAt = b.w.now
		} else {
			b.seedAt = b.seedAt.Add(b.duration)
		}
	}
	if b.seedLate > 0 {
		return b.published(seq).Add(b.seedLate)
	}
	if !b.published(seq).After(b.seedAt) {
		return b.w.now
	}
	b.seedAt = later(b.w.now, b.seedAt.Add(min(time.Second, b.duration/2)))
	return b.seedAt.Add(oneWay)
}

// TestALiveAudienceServesItself: twelve viewers of mixed lines at the edge of a stream with segments of 2 s, two minutes, in virtual
// time, beside the same ones without peers. Bounds are what is measured, less what another lot of viewers makes of it.
func TestALiveAudienceServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	c := crowd{viewers: 12, segment: 2 * time.Second, window: 12, length: 2 * time.Minute, within: 30 * time.Second, seed: 1}
	_, with := c.play(t)
	c.alone = true
	_, alone := c.play(t)
	t.Logf("with peers %+v, without %+v", with, alone)
	if with.offload < 0.65 || with.saved < 0.55 || with.lag > alone.lag+0.1 || with.stall > alone.stall || with.bitrate < alone.bitrate || with.leaps > 0 {
		t.Errorf("with peers %+v, without %+v", with, alone)
	}
}

// TestAnAudienceOfShortSegmentsServesItself: segments of 1 s with 6 to 23 kB, of which none is long enough to measure a line by. Without a
// time for the origin all of them were urgent at once, and 0.14 came from viewers.
func TestAnAudienceOfShortSegmentsServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	c := crowd{viewers: 12, segment: time.Second, window: 12, length: 2 * time.Minute, within: 30 * time.Second, seed: 1, thin: 10}
	c.servesItself(t, 0.5, 0)
}

// BenchmarkLiveAudience plays broadcasts in virtual time, and prints what `bench swarm --case live-*` calls by the same names.
func BenchmarkLiveAudience(b *testing.B) {
	for _, of := range []struct {
		seconds []int
		viewers int
		traces  uint64
		thin    float64
	}{{[]int{2, 4, 6}, 12, 6, 0}, {[]int{2, 4, 6}, 30, 3, 0}, {[]int{1, 2}, 12, 6, 10}} {
		for _, seconds := range of.seconds {
			b.Run(fmt.Sprintf("viewers=%d/segment=%ds/thin=%v", of.viewers, seconds, of.thin), func(b *testing.B) {
				for b.Loop() {
					var with, alone aired
					for seed := range of.traces {
						c := crowd{viewers: of.viewers, segment: time.Duration(seconds) * time.Second, window: 12, length: 2 * time.Minute, within: 30 * time.Second, seed: seed + 1, thin: of.thin}
						with.add(c.play(b))
						c.alone = true
						alone.add(c.play(b))
					}
					traces := float64(of.traces)
					b.ReportMetric(with.offload/traces, "offload_ratio")
					b.ReportMetric(with.saved/traces, "egress_saved_ratio")
					b.ReportMetric((with.lag-alone.lag)/traces, "lag_added_seconds")
					b.ReportMetric((with.stall-alone.stall)/traces, "stall_added_ratio")
					b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
				}
			})
		}
	}
}

// BenchmarkLiveElsewhere plays broadcasts on traces on which nothing of the schedule was chosen. tools/ablation runs it with and without
// the rules that live streams chose (docs/experiments/live.md).
func BenchmarkLiveElsewhere(b *testing.B) {
	for _, seconds := range []int{2, 4, 6} {
		for seed := range uint64(8) {
			b.Run(fmt.Sprintf("%ds/%d", seconds, seed), func(b *testing.B) {
				c := crowd{viewers: 12, segment: time.Duration(seconds) * time.Second, window: 12, length: 2 * time.Minute, within: 30 * time.Second, seed: seed + 41}
				for b.Loop() {
					_, got := c.play(b)
					b.ReportMetric(100*got.offload, "offload-%")
					b.ReportMetric(100*got.saved, "saved-%")
					b.ReportMetric(100*got.stall, "stalled-%")
					b.ReportMetric(got.lag, "behind-s")
					b.ReportMetric(got.bitrate, "Mbit/s")
				}
			})
		}
	}
}
