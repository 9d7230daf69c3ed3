package viewer

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
)

const partsEach = 4

// parted is an origin of a broadcast that is published in parts. A request for a playlist waits for the part that it names.
type parted struct {
	origin
	c       *chunkStream
	reloads *int // requests for playlists
	blocks  bool
}

// inParts has the broadcast of a scene published in parts.
func (s *scene) inParts(blocks bool) (reloads *int) {
	_, reloads = s.partedIn(partsEach, blocks)
	return reloads
}

// partedIn is inParts with so many of a segment.
func (s *scene) partedIn(each int, blocks bool) (c *chunkStream, reloads *int) {
	for file, data := range s.film.files {
		var r, seq int
		if n, _ := fmt.Sscanf(file, "/media/film/%d/seg-%d.ts", &r, &seq); n != 2 {
			continue
		}
		for p := range each {
			s.film.files[partFile(r, seq, p)] = data[p*len(data)/each : (p+1)*len(data)/each]
		}
	}
	c, reloads = &chunkStream{s: s, each: each, late: func(int, int) time.Duration { return 0 }, hls: true}, new(int)
	s.wrap = func(o origin) Origin { return parted{o, c, reloads, blocks} }
	return c, reloads
}

func partFile(r, seq, part int) string {
	return fmt.Sprintf("/media/film/%d/part-%d.%d.ts", r, seq, part)
}

// Get implements Origin.
func (o parted) Get(f Fetch, progress func(int64), done func(Fetched, error)) (cancel func()) {
	u, err := url.Parse(f.URL)
	if err != nil {
		panic(err)
	}
	w, at, b := o.node.w, o.node.w.now, o.film.live
	if o.c.packager != nil && strings.HasSuffix(u.Path, certificate.ListSuffix) {
		return o.c.packager.get(o.origin, f, progress, done)
	}
	numbered := func() int {
		seq, number := b.first(b.edge())
		return number - seq
	}
	var r, seq, part int
	shift, fails := numbered(), func() bool { return false }
	switch n, _ := fmt.Sscanf(u.Path, "/media/film/%d/", &r); {
	case n == 1 && strings.HasSuffix(u.Path, ".m3u8"):
		*o.reloads++
		if q := u.Query(); q.Has("_HLS_msn") && o.blocks {
			seq, _ = strconv.Atoi(q.Get("_HLS_msn"))
			part, _ = strconv.Atoi(q.Get("_HLS_part"))
			if seq -= shift; seq > b.edge()+2 {
				seq = b.edge()
				fails = func() bool { return true }
			} else {
				fails = func() bool { return numbered() != shift }
			}
			if wait := o.c.made(seq, part); wait.After(at) {
				at = wait
			}
		}
	default:
		if n, _ := fmt.Sscanf(u.Path, "/media/film/%d/part-%d.%d.ts", &r, &seq, &part); n == 3 && o.c.made(seq, part).After(at) {
			w.Post(func() { done(Fetched{}, errors.New("the part is not there yet")) })
			return func() {}
		}
		return o.origin.Get(f, progress, done)
	}
	stopped := false
	w.at(at, func() {
		w.After(2*o.film.node.away(o.node), func() {
			switch {
			case stopped:
			case fails():
				done(Fetched{}, errors.New("400 Bad Request")) // RFC 8216bis, section 6.2.5.2
			default:
				done(Fetched{Data: o.list(r), URL: f.URL}, nil)
			}
		})
	})
	return func() { stopped = true }
}

// list is the playlist of a rendition now, with the parts of three segments and of the one that grows.
func (o parted) list(r int) []byte {
	b := o.film.live
	edge := b.edge()
	for edge > 0 && o.c.made(edge-1, o.c.each-1).After(b.w.now) {
		edge-- // its last part is late
	}
	first, number := b.first(edge)
	part := b.duration.Seconds() / float64(o.c.each)
	list := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:%d\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=%.3f\n#EXT-X-PART-INF:PART-TARGET=%.3f\n#EXT-X-MEDIA-SEQUENCE:%d\n", int(b.duration.Seconds()), 3*part, part, number)
	list += "#EXT-X-PROGRAM-DATE-TIME:" + b.published(first).Add(-b.duration).UTC().Format("2006-01-02T15:04:05.000Z") + "\n"
	for seq := first; seq <= edge; seq++ {
		for p := 0; p < o.c.each && seq >= edge-3 && !o.c.made(seq, p).After(b.w.now); p++ {
			list += fmt.Sprintf("#EXT-X-PART:DURATION=%.3f,URI=\"part-%d.%d.ts\"%s\n", part, seq, p, map[bool]string{true: ",INDEPENDENT=YES"}[p == 0])
		}
		if seq < edge {
			list += fmt.Sprintf("#EXTINF:%.3f,\nseg-%d.ts\n", b.duration.Seconds(), seq)
		}
	}
	return []byte(list)
}

func lowLatency(c *Config) {
	alone(c)
	c.LowLatency, c.Leave = true, time.Minute
}

// TestPartsArePlayedAsTheyCome: the player begins three parts behind the edge and stays there.
func TestPartsArePlayedAsTheyCome(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	reloads := s.inParts(true)
	a := s.viewer(fast, lowLatency)
	s.w.run(70 * time.Second)
	s.check()
	sum := a.now()
	if sum.Stats.Stalls != 0 || sum.Errors != 0 || sum.Leaps != 0 || sum.LatencyMs < 1500 || sum.LatencyMs > 2000 || sum.Stats.PlayedMs < 59_000 {
		t.Errorf("%d ms behind, %d stalls, %d errors (%s), %d leaps, played %d ms", sum.LatencyMs, sum.Stats.Stalls, sum.Errors, sum.LastError, sum.Leaps, sum.Stats.PlayedMs)
	}
	if n := len(a.results); n < 116 || n > 128 || *reloads > 126 {
		t.Errorf("%d parts and %d playlists in a minute of two parts a second", n, *reloads)
	}
	if n := len(a.player.tracks[0].held); n > 40 {
		t.Errorf("%d segments and parts are held", n)
	}
	if !strings.Contains(a.results[0].URL, ".0.ts") {
		t.Errorf("the first part that came is %s, which needs others", a.results[0].URL)
	}
}

// TestAPackagerOfPartsThatBeginsAnewIsFollowed, with lower numbers: its origin refuses to wait for what comes much later.
func TestAPackagerOfPartsThatBeginsAnewIsFollowed(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	s.inParts(true)
	s.film.live.anew = 32
	a := s.viewer(fast, lowLatency)
	s.w.run(70 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.Stalls > 1 || sum.Errors != 1 || sum.Leaps != 1 || sum.LagMs > 2500 || sum.Stats.PlayedMs < 58_000 {
		t.Errorf("%d ms behind, %d stalls, %d errors (%s), %d leaps, played %d ms", sum.LagMs, sum.Stats.Stalls, sum.Errors, sum.LastError, sum.Leaps, sum.Stats.PlayedMs)
	}
}

// TestRenditionsOfPartsChangeWhereAPictureNeedsNoOther, and short parts tell what the line carries.
func TestRenditionsOfPartsChangeWhereAPictureNeedsNoOther(t *testing.T) {
	s := newScene(t, func(w *world) *film {
		return newBroadcast(w, 2*time.Second, 12, 60, []float64{1}, 88_000, 120_000, 200_000)
	})
	reloads := s.inParts(true)
	a := s.viewer(fast, lowLatency)
	s.w.run(70 * time.Second)
	s.check()
	if n := len(a.results); n < 116 || n > 124 || *reloads > 128 {
		t.Errorf("%d parts and %d playlists in a minute of two parts a second", n, *reloads)
	}
	for i, got := range a.results[1:] {
		var r, q, seq, part, before, n int
		for _, one := range []struct {
			url              string
			level, seq, part *int
		}{{a.results[i].URL, &q, &before, &n}, {got.URL, &r, &seq, &part}} {
			if found, _ := fmt.Sscanf(path(one.url), "/media/film/%d/part-%d.%d.ts", one.level, one.seq, one.part); found != 3 {
				t.Fatalf("%s is no part", one.url)
			}
		}
		if part > 0 && (r != q || seq != before || part != n+1) {
			t.Errorf("%s came after %s", got.URL, a.results[i].URL)
		}
	}
	if sum := a.now(); sum.Stats.Stalls != 0 || sum.Stats.Switches < 1 || a.results[len(a.results)-1].Rendition != "1x2" {
		t.Errorf("%d stalls, %d switches, the last part is of %s", sum.Stats.Stalls, sum.Stats.Switches, a.results[len(a.results)-1].Rendition)
	}
}

// TestAViewerOfPartsThatFallsBackPlaysSegments: what is no longer listed in parts is there as a whole, also where the playhead stands in
// the middle of it.
func TestAViewerOfPartsThatFallsBackPlaysSegments(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	s.inParts(true)
	a := s.viewer(fast, func(c *Config) {
		lowLatency(c)
		c.Buffer, c.Pauses = 2*time.Second, []Pause{{After: 10 * time.Second, For: 12 * time.Second}}
	})
	s.w.run(70 * time.Second)
	s.check()
	segments, parts := 0, map[int]int{}
	for _, got := range a.results {
		var r, seq, part int
		if n, _ := fmt.Sscanf(path(got.URL), "/media/film/%d/part-%d.%d.ts", &r, &seq, &part); n == 3 {
			parts[seq]++
		} else if n, _ := fmt.Sscanf(path(got.URL), "/media/film/%d/seg-%d.ts", &r, &seq); n == 2 {
			segments++
			if parts[seq] == partsEach {
				t.Errorf("segment %d came in parts, and again", seq)
			}
		}
	}
	sum := a.now()
	if played := 60_000 - 12_000; segments == 0 || sum.Leaps != 0 || sum.Errors != 0 || math.Abs(float64(sum.Stats.PlayedMs)-float64(played)) > 1500 || sum.Stats.Stalls > 1 {
		t.Errorf("%d segments, %d leaps, %d errors, %d stalls, played %d ms", segments, sum.Leaps, sum.Errors, sum.Stats.Stalls, sum.Stats.PlayedMs)
	}
}

// TestAnOriginThatDoesNotWaitIsNotAskedAllTheTime, although its playlist says that it waits.
func TestAnOriginThatDoesNotWaitIsNotAskedAllTheTime(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	reloads := s.inParts(false)
	a := s.viewer(fast, lowLatency)
	s.w.run(70 * time.Second)
	s.check()
	if sum := a.now(); *reloads > 4*2*60+10 || sum.Stats.Stalls != 0 || sum.LatencyMs > 2200 {
		t.Errorf("%d requests for playlists, %d ms behind, %d stalls", *reloads, sum.LatencyMs, sum.Stats.Stalls)
	}
}

// TestPartsAreNotPlayedUnasked: a viewer without the setting plays segments.
func TestPartsAreNotPlayedUnasked(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	s.inParts(true)
	a := s.viewer(fast, func(c *Config) { lowLatency(c); c.LowLatency = false })
	s.w.run(70 * time.Second)
	s.check()
	for _, got := range a.results {
		if !strings.Contains(got.URL, "seg-") {
			t.Fatalf("%s was played", got.URL)
		}
	}
	if sum := a.now(); sum.LatencyMs < 6000 || sum.Stats.Stalls != 0 {
		t.Errorf("%d ms behind", sum.LatencyMs)
	}
}
