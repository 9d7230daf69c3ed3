package viewer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// onAirByMPD is onAir of n segments with an MPD beside the playlist.
func onAirByMPD(n int, text func(b *broadcast, edge int) string) func(*world) *film {
	return func(w *world) *film {
		f := onAir(n, 100_000)(w)
		f.live.mpd = func(edge int) string { return text(f.live, edge) }
		return f
	}
}

// began is the availabilityStartTime by which segment number 0 began.
func (b *broadcast) began() time.Time { return b.published(-1) }

// live is a live MPD with some attributes and periods; a static one when the stream is over.
func (b *broadcast) dynamic(edge int, attributes, periods string) string {
	if edge == b.ends {
		return fmt.Sprintf(`<MPD type="static" mediaPresentationDuration="PT%fS">%s</MPD>`, (time.Duration(b.ends) * b.duration).Seconds(), periods)
	}
	return fmt.Sprintf(`<MPD type="dynamic" availabilityStartTime="%s" timeShiftBufferDepth="PT%fS" %s>%s</MPD>`,
		b.began().UTC().Format(time.RFC3339Nano), (time.Duration(b.window) * b.duration).Seconds(), attributes, periods)
}

// numbered is an MPD with a template by number: it does not change when a segment comes.
func numbered(attributes string) func(*broadcast, int) string {
	return func(b *broadcast, edge int) string {
		return b.dynamic(edge, attributes, `<Period start="PT0S">`+videoSet(0, `duration="2"`, 400_000)+`</Period>`)
	}
}

// timed is an MPD with a timeline.
func timed(attributes string) func(*broadcast, int) string {
	return func(b *broadcast, edge int) string {
		first := max(0, edge-b.window)
		set := videoSet(first, `timescale="90000"><SegmentTimeline><S t="%d" d="180000" r="%d"/></SegmentTimeline></SegmentTemplate`, 400_000)
		return b.dynamic(edge, attributes, fmt.Sprintf(`<Period start="PT0S">`+unslashed(set)+`</Period>`, first*180_000, edge-first-1))
	}
}

// unslashed is a set whose template has a timeline within it.
func unslashed(set string) string {
	return replaceOnce(set, "</SegmentTemplate/>", "</SegmentTemplate>")
}

func TestALiveMPDIsPlayedAtItsEdge(t *testing.T) {
	for name, c := range map[string]struct {
		text         func(*broadcast, int) string
		least, most  int64 // ms behind
		loads, bound int   // of the MPD in a minute
	}{
		"by number":       {numbered(`minimumUpdatePeriod="PT4S"`), 6_000, 8_200, 14, 18},
		"by a timeline":   {timed(`minimumUpdatePeriod="PT2S"`), 6_000, 8_200, 29, 32},
		"at any time":     {timed(`minimumUpdatePeriod="PT0S"`), 6_000, 8_200, 29, 32},
		"as it suggests":  {numbered(`minimumUpdatePeriod="PT4S" suggestedPresentationDelay="PT9.5S"`), 9_400, 9_700, 14, 18},
		"for low latency": {numbered(`minimumUpdatePeriod="PT4S" suggestedPresentationDelay="PT3S"`), 6_000, 8_200, 14, 18},
	} {
		t.Run(name, func(t *testing.T) {
			loads := 0
			s := newScene(t, onAirByMPD(40, func(b *broadcast, edge int) string { loads++; return c.text(b, edge) }))
			s.w.run(700 * time.Millisecond)
			a := s.viewer(fast, byMPD)
			s.w.run(30 * time.Second)
			if sum := a.now(); sum.LatencyMs < c.least || sum.LatencyMs > c.most || sum.LengthMs != 0 || sum.BufferMs > 10_000 {
				t.Errorf("%d ms behind, of a length of %d ms, with %d ms in hand", sum.LatencyMs, sum.LengthMs, sum.BufferMs)
			}
			if n := len(a.player.tracks[0].held); n > 12+15 {
				t.Errorf("%d segments are held", n)
			}
			s.w.run(60 * time.Second)
			s.check()
			sum := a.now()
			if sum.Ended != "end" || sum.Stats.Stalls != 0 || sum.Leaps != 0 || sum.Errors > 3 || loads < c.loads || loads > c.bound {
				t.Errorf("ended %q: %d stalls, %d leaps, %d errors (%s), %d loads", sum.Ended, sum.Stats.Stalls, sum.Leaps, sum.Errors, sum.LastError, loads)
			}
		})
	}
}

func TestViewersOfALiveStreamByHLSAndByDASHShare(t *testing.T) {
	s := newScene(t, onAirByMPD(60, numbered(`minimumUpdatePeriod="PT4S"`)))
	s.fourByTurns(3 * time.Second)
	s.w.run(120 * time.Second)
	s.check()
	for i, a := range s.viewers {
		if sum := a.now(); sum.Stats.Bytes["peer"] == 0 && i > 0 || sum.Stats.Stalls > 0 || sum.Ended != "end" {
			t.Errorf("viewer %d of %s: %v, %d stalls, ended %q", i, sum.Manifest, sum.Stats.Bytes, sum.Stats.Stalls, sum.Ended)
		}
	}
	if a, b := s.viewers[0].title.span, s.viewers[1].title.span; max(a.To-b.To, b.To-a.To) > 4_000 {
		t.Errorf("the tracker is told of %v by HLS, of %v by DASH", a, b)
	}
}

func TestAPauseOfALiveMPDThatIsLongerThanItsWindowEndsAtTheEdge(t *testing.T) {
	s := newScene(t, onAirByMPD(120, timed(`minimumUpdatePeriod="PT2S"`)))
	a := s.viewer(fast, func(c *Config) {
		byMPD(c)
		c.Pauses, c.Leave = []Pause{{After: 10 * time.Second, For: time.Minute}}, 2*time.Minute
	})
	s.w.run(2*time.Minute + time.Second)
	s.check()
	if sum := a.now(); sum.Leaps == 0 || sum.LagMs < 6_000 || sum.LagMs > 28_000 {
		t.Errorf("%d leaps, %d ms behind", sum.Leaps, sum.LagMs)
	}
}

func TestALiveMPDWhoseOriginFailsForAWhile(t *testing.T) {
	s := newScene(t, onAirByMPD(60, timed(`minimumUpdatePeriod="PT2S"`)))
	a := s.viewer(fast, byMPD)
	s.w.run(20 * time.Second)
	s.film.broken = true
	s.w.run(20 * time.Second)
	s.film.broken = false
	s.w.run(120 * time.Second)
	s.check()
	if sum := a.now(); sum.Ended != "end" || sum.Stats.Stalls == 0 || sum.Stats.StallMs > 25_000 || sum.Errors == 0 || sum.Errors > 12 {
		t.Errorf("ended %q, %d stalls of %d ms, %d errors", sum.Ended, sum.Stats.Stalls, sum.Stats.StallMs, sum.Errors)
	}
}

// TestAnMPDByNumberNeedsNoReloadToGoOn: its origin has segments, and not the MPD any more.
func TestAnMPDByNumberNeedsNoReloadToGoOn(t *testing.T) {
	gone := false
	s := newScene(t, onAirByMPD(60, func(b *broadcast, edge int) string {
		if gone {
			return ""
		}
		return numbered(`minimumUpdatePeriod="PT5S"`)(b, edge)
	}))
	a := s.viewer(fast, func(c *Config) { byMPD(c); c.Leave = time.Minute })
	s.w.run(10 * time.Second)
	gone = true
	s.w.run(55 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.Stalls != 0 || sum.Errors < 5 || sum.Errors > 12 {
		t.Errorf("%d stalls, %d errors", sum.Stats.Stalls, sum.Errors)
	}
}

// TestAnOriginThatIsLateIsAskedAgain: its segments come 600 ms after the clock says so.
func TestAnOriginThatIsLateIsAskedAgain(t *testing.T) {
	s := newScene(t, onAirByMPD(60, func(b *broadcast, edge int) string {
		early := *b
		world := *b.w
		world.now = world.now.Add(600 * time.Millisecond)
		early.w = &world
		text := numbered(``)(&early, edge)
		return replaceOnce(text, b.began().UTC().Format(time.RFC3339Nano), b.began().Add(-600*time.Millisecond).UTC().Format(time.RFC3339Nano))
	}))
	a := s.viewer(fast, func(c *Config) { byMPD(c); c.Leave = time.Minute })
	s.w.run(61 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.Stalls != 0 || sum.Errors < 20 || sum.Errors > 32 {
		t.Errorf("%d stalls, %d errors", sum.Stats.Stalls, sum.Errors)
	}
}

func TestALivePeriodFollowsAnother(t *testing.T) {
	for name, template := range map[string]string{"of segments of a length": `duration="2"`, "that are as long as rounding has them": `timescale="30000" duration="60060"`} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, onAirByMPD(40, func(b *broadcast, edge int) string {
				periods := `<Period id="a" start="PT0S">` + videoSet(0, template, 400_000) + `</Period>`
				if edge > 18 { // it begins with segment 20
					periods += `<Period id="b" start="PT40S">` + videoSet(20, template, 400_000) + `</Period>`
				}
				return b.dynamic(edge, `minimumUpdatePeriod="PT2S"`, periods)
			}))
			a := s.viewer(fast, byMPD)
			s.w.run(90 * time.Second)
			s.check()
			if sum := a.now(); sum.Ended != "end" || sum.Stats.Stalls != 0 || sum.Leaps != 0 {
				t.Errorf("ended %q, %d stalls, %d leaps", sum.Ended, sum.Stats.Stalls, sum.Leaps)
			}
		})
	}
}

// TestAPackagerOfDASHThatBeginsAnew has a later availabilityStartTime, and numbers from the beginning.
func TestAPackagerOfDASHThatBeginsAnew(t *testing.T) {
	s := newScene(t, onAirByMPD(60, func(b *broadcast, edge int) string {
		if edge <= 22 {
			return numbered(`minimumUpdatePeriod="PT2S"`)(b, min(edge, 20))
		}
		text := b.dynamic(edge, `minimumUpdatePeriod="PT2S"`, `<Period start="PT0S">`+videoSet(22, `duration="2"`, 400_000)+`</Period>`)
		return replaceOnce(text, b.began().UTC().Format(time.RFC3339Nano), b.began().Add(44*time.Second).UTC().Format(time.RFC3339Nano))
	}))
	a := s.viewer(fast, func(c *Config) { byMPD(c); c.Leave = time.Minute })
	s.w.run(61 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.PlayedMs < 50_000 || sum.LagMs < 6_000 || sum.LagMs > 9_000 {
		t.Errorf("played %d ms, %d ms behind at last; %d stalls, %d leaps, %d errors", sum.Stats.PlayedMs, sum.LagMs, sum.Stats.Stalls, sum.Leaps, sum.Errors)
	}
}

func TestALiveMPDThatBecomesBadEndsThePlayback(t *testing.T) {
	s := newScene(t, onAirByMPD(60, func(b *broadcast, edge int) string {
		if edge > 16 {
			return "<MPD"
		}
		return timed(`minimumUpdatePeriod="PT2S"`)(b, edge)
	}))
	a := s.viewer(fast, byMPD)
	s.w.run(30 * time.Second)
	var refused *mpd.Error
	if !errors.As(a.Err(), &refused) || refused.Code != mpd.Malformed {
		t.Errorf("%v", a.Err())
	}
}

// TestALiveMPDBeforeItsStartIsWaitedFor: no segment is there yet.
func TestALiveMPDBeforeItsStartIsWaitedFor(t *testing.T) {
	s := newScene(t, onAirByMPD(60, func(b *broadcast, edge int) string {
		text := b.dynamic(edge, `minimumUpdatePeriod="PT10S"`, `<Period start="PT0S">`+videoSet(14, `duration="2"`, 400_000)+`</Period>`)
		return replaceOnce(text, b.began().UTC().Format(time.RFC3339Nano), b.began().Add(28*time.Second).UTC().Format(time.RFC3339Nano))
	}))
	a := s.viewer(fast, func(c *Config) { byMPD(c); c.Leave = time.Minute })
	s.w.run(61 * time.Second)
	s.check()
	if sum := a.now(); sum.Stats.PlayedMs < 45_000 || sum.Stats.Stalls > 0 || sum.Errors > 0 {
		t.Errorf("played %d ms, %d stalls, %d errors (%s)", sum.Stats.PlayedMs, sum.Stats.Stalls, sum.Errors, sum.LastError)
	}
}

func replaceOnce(text, from, to string) string { return strings.Replace(text, from, to, 1) }

// TestALiveMPDWithSound: sound is cut elsewhere than the picture, and the MPD says where it is loaded from the next time.
func TestALiveMPDWithSound(t *testing.T) {
	for name, c := range map[string]struct {
		delay    string
		stalls   int64
		from, to int64 // ms behind
	}{
		"three segments behind":             {"", 0, 6_000, 8_300},
		"two and a quarter, as it suggests": {`suggestedPresentationDelay="PT4.5S"`, 0, 4_400, 4_700},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, onAirByMPD(60, func(b *broadcast, edge int) string {
				// Segments of sound are 2 ms shorter than those of the picture, and drift away from them.
				sound := `<AdaptationSet mimeType="audio/mp4"><SegmentTemplate media="0/seg-$Number$.ts" startNumber="0" timescale="48000" duration="96000"/><Representation id="a" bandwidth="64000"/></AdaptationSet>`
				picture := videoSet(0, `timescale="30000" duration="60060"`, 400_000)
				return b.dynamic(edge, c.delay+` minimumUpdatePeriod="PT4S"`, `<Location>moved.mpd</Location><Period start="PT0S">`+sound+picture+`</Period>`)
			}))
			first := true
			s.wrap = func(o origin) Origin { return moved{o, &first, t} }
			a := s.viewer(fast, func(cfg *Config) { byMPD(cfg); cfg.Leave = time.Minute })
			s.w.run(61 * time.Second)
			s.check()
			if sum := a.now(); sum.Stats.Stalls != c.stalls || sum.Leaps != 0 || sum.LagMs < c.from || sum.LagMs > c.to {
				t.Errorf("%d stalls, %d leaps, %d ms behind, %d errors (%s)", sum.Stats.Stalls, sum.Leaps, sum.LagMs, sum.Errors, sum.LastError)
			}
		})
	}
}

// moved is an origin that has the MPD under its Location from the second time on.
type moved struct {
	origin
	first *bool
	t     *testing.T
}

func (m moved) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	if strings.HasSuffix(f.URL, ".mpd") {
		if *m.first != strings.HasSuffix(f.URL, mpdPath) {
			m.t.Errorf("%s is asked for", f.URL)
		}
		*m.first = false
		f.URL = "http://film.test" + mpdPath
	}
	return m.origin.Get(f, progress, done)
}

// TestALiveMPDThatListsNothingMoreEnds: one of indexes alone is no live stream to the player, and may become a film without a segment.
func TestALiveMPDThatListsNothingMoreEnds(t *testing.T) {
	for name, then := range map[string]string{
		"no set":      ``,
		"sound alone": `<AdaptationSet contentType="audio"><SegmentTemplate media="a-$Number$.ts" duration="2"/><Representation id="s"/></AdaptationSet>`,
	} {
		t.Run(name, func(t *testing.T) {
			loads, indexed := 0, ""
			s := newScene(t, func(w *world) *film {
				f := onAirByMPD(40, func(b *broadcast, _ int) string {
					if loads++; loads > 4 {
						return fmt.Sprintf(filmMPD, 60, then)
					}
					return replaceOnce(indexed, "static", fmt.Sprintf(`dynamic" minimumUpdatePeriod="PT1S" availabilityStartTime="%s`, b.began().UTC().Format(time.RFC3339Nano)))
				})(w)
				f.files = single(w, []uint32{4000}).files
				indexed = replaceOnce(string(f.files[mpdPath]), "<Period>", `<Period start="PT0S">`)
				return f
			})
			a := s.viewer(fast, byMPD)
			s.w.run(time.Minute)
			if sum := a.now(); sum.Ended != "error" || !strings.Contains(sum.Error, "no renditions") || sum.Stats.PlayedMs == 0 {
				t.Errorf("ended %q: %s, after %d loads and %d ms", sum.Ended, sum.Error, loads, sum.Stats.PlayedMs)
			}
		})
	}
}
