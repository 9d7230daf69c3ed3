package viewer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
)

// onAir makes a broadcast of so many segments of 2 s, of which the playlist has twelve.
func onAir(n, size int) func(*world) *film {
	return func(w *world) *film { return newBroadcast(w, 2*time.Second, 12, n, []float64{1}, size) }
}

func TestALiveStreamIsPlayedAtItsEdge(t *testing.T) {
	s := newScene(t, onAir(40, 100_000))
	a := s.viewer(fast, alone)
	s.w.run(30 * time.Second)
	// Three segments behind the end of the playlist, whose last one was published up to 2 s ago and began 2 s before that.
	if sum := a.now(); sum.LatencyMs < 6_000 || sum.LatencyMs > 8_200 || sum.LengthMs != 0 || sum.BufferMs > 8_000 {
		t.Errorf("%d ms behind, of a length of %d ms, with %d ms in hand", sum.LatencyMs, sum.LengthMs, sum.BufferMs)
	}
	if n := len(a.player.tracks[0].held); n > 12+15 {
		t.Errorf("%d segments are held", n)
	}
	s.w.run(60 * time.Second)
	s.check()
	sum := a.now()
	if sum.Ended != "end" || sum.Stats.Stalls != 0 || sum.Leaps != 0 || sum.Stats.PlayedMs != (40-12)*2_000+6_000 {
		t.Errorf("ended %q: %d stalls, %d leaps, %d ms played", sum.Ended, sum.Stats.Stalls, sum.Leaps, sum.Stats.PlayedMs)
	}
}

// TestAPlayheadThatKeepsItsPaceIsAlwaysAsFarBehind, whenever it is looked at: after the seek the end of a segment is played between two
// looks, which are made when a segment comes.
func TestAPlayheadThatKeepsItsPaceIsAlwaysAsFarBehind(t *testing.T) {
	s := newScene(t, onAir(40, 100_000))
	a := s.viewer(fast, func(c *Config) { alone(c); c.Seeks = []Seek{{After: 5 * time.Second, To: 14_300 * time.Millisecond}} })
	s.w.run(10 * time.Second)
	from := a.now()
	s.w.run(20 * time.Second)
	to := a.now()
	mean := (to.Stats.LiveLag - from.Stats.LiveLag) * 1000 / (to.Stats.LiveMs - from.Stats.LiveMs)
	if d := mean - to.LagMs; d < -2 || d > 2 || from.LagMs != to.LagMs || to.Stats.Stalls > 0 {
		t.Errorf("%d ms behind on average, %d and %d ms at the ends, %d stalls", mean, from.LagMs, to.LagMs, to.Stats.Stalls)
	}
}

// TestAPlayheadThatFallsOutOfTheWindowLeapsToTheEdge, and no sooner than what it was to play has gone.
func TestAPlayheadThatFallsOutOfTheWindowLeapsToTheEdge(t *testing.T) {
	s := newScene(t, onAir(120, 100_000))
	a := s.viewer(access{up: 1e6, down: 35_000}, func(c *Config) { alone(c); c.Leave = 3 * time.Minute }) // a segment takes 2.9 s
	s.w.run(190 * time.Second)
	s.check()
	sum := a.now()
	// It gets 2 of 2.9 s: of 18 s until what is next has left, it loses 0.86 in 2.86, so that it leaps about once a minute.
	if sum.Leaps < 2 || sum.Leaps > 5 || sum.Stats.Stalls == 0 || sum.Ended != "left" {
		t.Errorf("%d leaps, %d stalls, ended %q", sum.Leaps, sum.Stats.Stalls, sum.Ended)
	}
}

func TestAPause(t *testing.T) {
	for name, c := range map[string]struct {
		pause         time.Duration
		catchUp       float64
		leaps         int
		behind, until int64 // ms, at the end
	}{
		"within the window":          {10 * time.Second, 1, 0, 16_000, 18_500},
		"within it, and catches up":  {10 * time.Second, 1.5, 0, 6_000, 9_500},
		"longer than what is listed": {time.Minute, 1, 2, 6_000, 28_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, onAir(120, 100_000))
			a := s.viewer(fast, func(cfg *Config) {
				alone(cfg)
				cfg.Pauses, cfg.CatchUp = []Pause{{After: 10 * time.Second, For: c.pause}}, c.catchUp
				cfg.Leave = 160 * time.Second
			})
			s.w.run(150 * time.Second)
			late := a.player.tracks[0].live.latency(a.player.head.now()).Milliseconds()
			s.w.run(20 * time.Second)
			s.check()
			sum := a.now()
			if sum.Leaps != c.leaps || sum.Stats.Stalls != 0 || late < c.behind || late > c.until {
				t.Errorf("%d leaps, %d stalls, %d ms behind", sum.Leaps, sum.Stats.Stalls, late)
			}
		})
	}
}

// TestASeekInALiveStream leads to what is listed alone: not beyond the edge, nor before the window.
func TestASeekInALiveStream(t *testing.T) {
	s := newScene(t, onAir(120, 100_000))
	a := s.viewer(fast, func(c *Config) {
		alone(c)
		c.Leave = 70 * time.Second
		c.Seeks = []Seek{{After: 20 * time.Second, To: 0}, {After: 40 * time.Second, To: time.Hour}}
	})
	behind := func() time.Duration {
		return a.player.tracks[0].live.latency(a.player.head.now())
	}
	s.w.run(30 * time.Second)
	if b := behind(); b < 23*time.Second || b > 27*time.Second {
		t.Errorf("%v behind after a seek back", b)
	}
	s.w.run(30 * time.Second)
	if b := behind(); b < 6*time.Second || b > 9*time.Second {
		t.Errorf("%v behind after a seek to the edge", b)
	}
	s.w.run(20 * time.Second)
	s.check()
}

// TestAStalePlaylistTakesNothingBack: caches before an origin do not agree.
func TestAStalePlaylistTakesNothingBack(t *testing.T) {
	for name, undated := range map[string]bool{"with a clock": false, "by numbers": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, onAir(60, 100_000))
			loads := 0
			s.film.live.undated = undated
			s.film.live.stale = func(_, now int) int {
				if loads++; loads%3 == 0 {
					return now - 2
				}
				return now
			}
			a := s.viewer(fast, alone)
			s.w.run(110 * time.Second)
			s.check()
			if sum := a.now(); sum.Stats.Stalls != 0 || sum.Leaps != 0 || sum.Errors != 0 || sum.Ended != "end" {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// TestAPackagerThatBeginsAnewIsFollowed, with lower numbers or far higher ones: what is buffered is played, and then what is new.
func TestAPackagerThatBeginsAnewIsFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		undated bool
		again   int
	}{"with a clock": {}, "by numbers": {undated: true}, "by what numbers stand for": {undated: true, again: 22}, "with far higher ones": {undated: true, again: 1 << 51}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, onAir(60, 100_000))
			s.film.live.anew, s.film.live.undated, s.film.live.again = 32, c.undated, c.again
			a := s.viewer(fast, alone)
			s.w.run(120 * time.Second)
			s.check()
			sum := a.now()
			if sum.Ended != "end" || sum.Stats.Stalls != 0 || sum.Leaps != 1 || sum.Errors != 0 || sum.Stats.PlayedMs != (60-12)*2_000+4_000 {
				t.Errorf("ended %q: %d stalls, %d leaps, %d errors, %d ms played", sum.Ended, sum.Stats.Stalls, sum.Leaps, sum.Errors, sum.Stats.PlayedMs)
			}
			if n := len(a.results); n != 60-9-1 { // one was not published before
				t.Errorf("%d segments came", n)
			}
		})
	}
}

// TestOtherSegmentsUnderTheSameNumbers are those of a packager that has begun anew; the same ones with another token are not, and parts
// say nothing of the segments that they are of.
func TestOtherSegmentsUnderTheSameNumbers(t *testing.T) {
	list := func(from int64, names ...string) (out []entryRef) {
		for i, name := range names {
			out = append(out, entryRef{Reference: Reference{URL: "http://film.test/" + name, Start: time.Duration(from) * time.Second}, place: place{from + int64(i), whole}})
		}
		return out
	}
	known := list(5, "a5.ts?t=1", "a6.ts?t=1", "a7.ts?t=1")
	parts := list(6, "b6.0.ts", "b7.0.ts")
	for i := range parts {
		parts[i].part = 0
	}
	for name, c := range map[string]struct {
		came []entryRef
		want bool
	}{
		"of a cache":         {list(4, "a4.ts", "a5.ts?t=2", "a6.ts?t=2"), false},
		"of one that begins": {list(5, "b5.ts", "b6.ts"), true},
		"an advert":          {list(4, "a4.ts", "ad.ts", "a6.ts"), false},
		"nothing in common":  {list(1, "a1.ts", "a2.ts"), false},
		"parts":              {parts, false},
	} {
		if got := others(known, c.came); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// gapped is an origin whose playlists have segments without media.
type gapped struct {
	origin
	gaps []int
}

func (o gapped) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	return o.origin.Get(f, progress, func(got Fetched, err error) {
		for _, seq := range o.gaps {
			name := fmt.Sprintf("#EXTINF:2.000,\nseg-%d.ts", seq)
			got.Data = bytes.ReplaceAll(got.Data, []byte(name), []byte("#EXT-X-GAP\n"+name))
		}
		done(got, err)
	})
}

// TestWhatIsBehindAGapIsLoadedOnce, and played: the viewer joins at a gap, comes to one, and is led into one.
func TestWhatIsBehindAGapIsLoadedOnce(t *testing.T) {
	s := newScene(t, onAir(40, 100_000))
	s.wrap = func(o origin) Origin { return gapped{o, []int{9, 16}} }
	a := s.viewer(fast, func(c *Config) { alone(c); c.Seeks = []Seek{{After: 20 * time.Second, To: 33 * time.Second}} })
	s.w.run(90 * time.Second)
	s.check()
	came := map[string]int{}
	for _, r := range a.results {
		came[r.URL]++
	}
	for url, n := range came {
		if n > 1 {
			t.Errorf("%s came %d times", url, n)
		}
	}
	sum := a.now()
	if sum.Ended != "end" || sum.Leaps != 3 || sum.Errors != 0 {
		t.Errorf("ended %q: %d leaps, %d errors", sum.Ended, sum.Leaps, sum.Errors)
	}
}

// TestTheClockOfAStreamMayJump at a discontinuity: how far behind a viewer is stays true.
func TestTheClockOfAStreamMayJump(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	s.film.live.breaks = map[int]bool{20: true, 33: true}
	a := s.viewer(fast, func(c *Config) { alone(c); c.Leave = time.Minute })
	s.w.run(70 * time.Second)
	s.check()
	if sum := a.now(); sum.LatencyMs < 6_000 || sum.LatencyMs > 8_200 || sum.Stats.Stalls != 0 {
		t.Errorf("%d ms behind, %d stalls", sum.LatencyMs, sum.Stats.Stalls)
	}
}

// TestABroadcastThatHangsIsWaitedFor: nothing new is listed for 20 s. The viewer stalls, and goes on where it was.
func TestABroadcastThatHangsIsWaitedFor(t *testing.T) {
	s := newScene(t, onAir(60, 100_000))
	from, to := worldBegin.Add(20*time.Second), worldBegin.Add(40*time.Second)
	s.film.live.stale = func(_, now int) int {
		if s.w.now.After(from) && s.w.now.Before(to) {
			return 12 + 10
		}
		return now
	}
	a := s.viewer(fast, alone)
	s.w.run(70 * time.Second)
	if sum := a.now(); sum.Stats.Stalls != 1 || sum.Errors != 0 {
		t.Errorf("%d stalls of %d ms, %d errors", sum.Stats.Stalls, sum.Stats.StallMs, sum.Errors)
	}
}

// TestViewersOfAStreamTellTheSameTimeline, whenever they have joined: the tracker compares what they hold.
func TestViewersOfAStreamTellTheSameTimeline(t *testing.T) {
	for name, undated := range map[string]bool{"with a clock": false, "by numbers": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, onAir(120, 100_000))
			s.film.live.undated = undated
			s.tracker.home = swarm.New()
			for range 2 {
				s.viewer(fast, nil)
				s.w.run(80 * time.Second)
			}
			var told []swarm.Range
			for _, id := range s.tracker.order {
				told = append(told, s.tracker.home.Member(id).Range)
			}
			if a, b := told[0], told[1]; max(a.From-b.From, b.From-a.From) > 12_000 || max(a.To-b.To, b.To-a.To) > 12_000 || a.To <= a.From {
				t.Errorf("both are at the edge, and tell %v and %v", a, b)
			}
			if wall := s.w.now.UnixMilli(); !undated && (told[1].To > wall || told[1].To < wall-30_000) {
				t.Errorf("at %d one tells %v", wall, told[1])
			}
		})
	}
}

// TestNumbersThatAreADateMakeATimeline: what is told has a place in a number of the tracker's, and differs as the numbers do.
func TestNumbersThatAreADateMakeATimeline(t *testing.T) {
	v := live{last: &rendition{live: &liveList{growth: growth{target: 6 * time.Second}}}}
	const date = 20_261_129_184_500
	if a, b := v.zero(entryRef{place: place{date, whole}}), v.zero(entryRef{place: place{date + 2, whole}}); a != 2_775_107_000*time.Second || b-a != 12*time.Second {
		t.Errorf("%v, then %v", a, b)
	}
	if z := v.zero(entryRef{place: place{1<<53 - 1, whole}}); z < 0 || z.Milliseconds() > wrapMs {
		t.Errorf("the last number is at %v", z)
	}
}

// TestNothingIsFetchedAheadOfALiveStream, even where it lies ready: the viewer is an hour's window behind the edge.
func TestNothingIsFetchedAheadOfALiveStream(t *testing.T) {
	play := func(ends int) int64 {
		s := newScene(t, func(w *world) *film { return newBroadcast(w, 2*time.Second, 60, ends, []float64{1}, 100_000) })
		s.tracker.policy.Prefetch = true
		for range 3 {
			s.viewer(fast, func(c *Config) { c.Seeks = []Seek{{After: 2 * time.Second, To: 0}} })
			s.w.run(25 * time.Second)
		}
		ahead := int64(0)
		for _, a := range s.viewers {
			ahead += a.now().Stats.PrefetchedBytes
		}
		return ahead
	}
	if n := play(600); n > 0 {
		t.Errorf("%d bytes of a live stream", n)
	}
	if play(60) == 0 {
		t.Error("nothing either where the playlist has an end: the test says nothing")
	}
}

func TestALivePlaylistIsReadAtItsSpeedAlone(t *testing.T) {
	const text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"
	if _, _, _, err := parsePlaylist("http://film.test/a.m3u8", nil, []byte(text), 2); err == nil || !strings.Contains(err.Error(), "speed 1") {
		t.Errorf("at speed 2: %v", err)
	}
	_, _, list, err := parsePlaylist("http://film.test/a.m3u8", nil, []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-SERVER-CONTROL:HOLD-BACK=13.5\n#EXT-X-PROGRAM-DATE-TIME:2026-11-24T08:00:00Z\n#EXTINF:4,\na.ts\n#EXTINF:2,\nb.ts\n"), 1)
	if err != nil || !list.live || list.holdBack != 13500*time.Millisecond || list.target != 4*time.Second {
		t.Fatalf("%+v, %v", list, err)
	}
	second := list.entries[1]
	if second.sequence != 8 || !second.at.Equal(time.Date(2026, 11, 24, 8, 0, 4, 0, time.UTC)) || second.Start != 4*time.Second {
		t.Errorf("%+v", second)
	}
}

// BenchmarkAReloadOfALongLivePlaylist takes in a playlist with segments of 2 s that has gone on by one, in the goroutine that does all else.
func BenchmarkAReloadOfALongLivePlaylist(b *testing.B) {
	for _, of := range []struct {
		name     string
		segments int
	}{{"window=30s", 15}, {"window=1h", 1800}, {"window=12h", 21_600}} {
		b.Run(of.name, func(b *testing.B) {
			s := newScene(b, func(w *world) *film {
				return newBroadcast(w, 2*time.Second, of.segments, of.segments+5, []float64{1}, 1000)
			})
			a := s.viewer(fast, alone)
			s.w.run(time.Second)
			t := a.player.tracks[0]
			list := s.film.live.list(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				from, to := fmt.Sprintf("SEQUENCE:%d\n", i), fmt.Sprintf("SEQUENCE:%d\n", i+1)
				list = bytes.Replace(list, []byte(from), []byte(to), 1)
				if err := t.take(t.levels[0], Fetched{URL: t.levels[0].url, Data: list}, s.w.now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestALiveStreamThatIsOverLaterThanItsLastSegment ends when its playlist says so, after the playhead has come to its end.
func TestALiveStreamThatIsOverLaterThanItsLastSegment(t *testing.T) {
	s := newScene(t, onAir(41, 100_000))
	s.film.live.stale = func(_, now int) int { return min(now, 40) }
	a := s.viewer(fast, alone)
	s.w.run(75 * time.Second)
	if sum := a.now(); sum.Stats.Stalls != 1 || a.isDone() {
		t.Fatalf("%d stalls, done %v", sum.Stats.Stalls, a.isDone())
	}
	s.film.live.ends = 40
	s.w.run(10 * time.Second)
	s.check()
}
