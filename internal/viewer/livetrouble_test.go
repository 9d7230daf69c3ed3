package viewer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
)

// evening is a broadcast with an audience on mixed lines, and what happens to it.
type evening struct {
	viewers int
	segment time.Duration                // 0: 2 s
	lines   int                          // what the first viewer's line is, of homeLines
	window  int                          // segments in the playlist; 0: 12
	length  time.Duration                // 0: 70 s
	arrive  func(i int) time.Duration    // nil: one a second
	config  func(i int, c *Config)       // nil: as it is
	happens func(s *scene)               // before the first viewer comes
	checks  func(t *testing.T, s *scene) // beside those of play, of the audience with peers
	share   float64                      // that comes from viewers, at least
}

func (e evening) play(t testing.TB, alone bool) *scene {
	if e.segment == 0 {
		e.segment = 2 * time.Second
	}
	size := func(of2s int) int { return of2s * int(e.segment/time.Second) / 2 }
	s := newScene(t, func(w *world) *film {
		return newBroadcast(w, e.segment, max(12, e.window), 400, shape, size(121_431), size(253_067), size(469_340))
	})
	s.film.node.delay, s.seed.node.delay, s.film.node.up.Rate, s.seed.node.up.Rate = 0, 0, 125e6, 125e6
	s.tracker.home = swarm.New()
	if e.happens != nil {
		e.happens(s)
	}
	length := e.length
	if length == 0 {
		length = 70 * time.Second
	}
	for i := range e.viewers {
		at := time.Duration(i) * time.Second
		if e.arrive != nil {
			at = e.arrive(i)
		}
		s.w.run(at - s.w.now.Sub(worldBegin))
		s.viewer(homeLines[(i+e.lines)%len(homeLines)].access, func(c *Config) {
			c.Leave = length - at
			if e.config != nil {
				e.config(i, c)
			}
			if alone {
				c.Tracker = ""
			}
		})
	}
	s.w.run(length + 10*time.Second - s.w.now.Sub(worldBegin))
	s.check()
	return s
}

// flash has three viewers come, and 20 s later all others of so many within ten seconds.
func flash(viewers int) func(i int) time.Duration {
	return func(i int) time.Duration {
		if i < 3 {
			return 0
		}
		return 20*time.Second + time.Duration(i)*10*time.Second/time.Duration(viewers)
	}
}

// after does something at a moment of the evening.
func (s *scene) after(d time.Duration, f func()) { s.w.at(worldBegin.Add(d), f) }

// TestWhatHappensToALiveStream costs no stall that the origin alone does not have, and no byte that is wrong: each audience is
// played without peers too.
func TestWhatHappensToALiveStream(t *testing.T) {
	testkit.InOneGoroutine(t)
	for name, e := range evenings() {
		t.Run(name, func(t *testing.T) {
			with, alone := e.play(t, false), e.play(t, true)
			one, other := with.tally(), alone.tally()
			t.Logf("with peers %+v, without %+v", one, other)
			if one.stall > other.stall || one.stalls > other.stalls || one.bitrate < 0.99*other.bitrate {
				t.Errorf("with peers %d stalls, %.4f of the time, at %.2f Mbit/s; without %d, %.4f, %.2f", one.stalls, one.stall, one.bitrate, other.stalls, other.stall, other.bitrate)
			}
			leaps := 0
			for i, a := range with.viewers {
				leaps += a.now().Leaps - alone.viewers[i].now().Leaps
			}
			if leaps > 0 || one.offload < e.share {
				t.Errorf("%d leaps more than without peers, %.3f from viewers", leaps, one.offload)
			}
			if e.checks != nil {
				e.checks(t, with)
			}
		})
	}
}

// BenchmarkLiveTrouble plays the same with segments of 4 and 6 s, each on three orders of lines, and says how much more viewers stall
// than they do without peers.
func BenchmarkLiveTrouble(b *testing.B) {
	for name, e := range evenings() {
		for _, seconds := range []int{2, 4, 6} {
			b.Run(fmt.Sprintf("%s/segment=%ds", name, seconds), func(b *testing.B) {
				e.segment = time.Duration(seconds) * time.Second
				var with, alone tally
				for b.Loop() {
					for e.lines = range homeLines {
						with.add(e.play(b, false).tally(), 1)
						alone.add(e.play(b, true).tally(), 1)
					}
				}
				b.ReportMetric(with.offload/float64(len(homeLines)), "offload_ratio")
				b.ReportMetric(float64(with.stalls-alone.stalls), "stalls_added")
				b.ReportMetric((with.stall-alone.stall)/float64(len(homeLines)), "stall_added_ratio")
				b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
			})
		}
	}
}

func evenings() map[string]evening {
	const amid = 35 * time.Second
	var fromSeed int64
	return map[string]evening{
		"three, then thirty within ten seconds": {viewers: 30, length: 60 * time.Second, share: 0.65, arrive: flash(30)},
		"the seed is killed": {viewers: 9, share: 0.3, happens: func(s *scene) {
			s.after(amid, s.seedDies)
			s.after(amid+time.Second, func() { fromSeed = max(fromSeed, s.bytes("seed")) })
		}, checks: func(t *testing.T, s *scene) {
			if fromSeed == 0 || s.bytes("seed") > fromSeed {
				t.Errorf("%d bytes of the seed, %d when it had gone", s.bytes("seed"), fromSeed)
			}
		}},
		"the tracker is killed": {viewers: 9, share: 0.55, happens: func(s *scene) { s.after(amid, s.tracker.crash) },
			checks: func(t *testing.T, s *scene) {
				if len(s.tracker.order) > 0 {
					t.Error("sessions are open")
				}
			}},
		"a third leaves at once": {viewers: 12, share: 0.55, happens: func(s *scene) {
			s.after(amid, func() {
				for i := 0; i < len(s.viewers); i += 3 {
					s.viewers[i].Leave()
				}
			})
		}},
		"the origin is five seconds late": {viewers: 9, share: 0.5, happens: func(s *scene) {
			frozen := s.film.live.window + int(amid/s.film.live.duration)
			s.film.live.stale = func(_, now int) int {
				if s.w.now.Before(worldBegin.Add(amid + 7*time.Second)) {
					return min(now, frozen)
				}
				return now
			}
		}},
		"three of ten pollute": {viewers: 10, share: 0.2, happens: func(s *scene) {
			s.after(15*time.Second, func() {
				for i := range 3 {
					s.viewers[3*i].node.garble = flip
				}
			})
		}, checks: eachIsOutAtOnce},
		"names come again": {viewers: 9, share: 0.6, happens: func(s *scene) {
			s.film.live.name = func(_, seq int) string { return fmt.Sprintf("seg-%d.ts", seq%20) }
		}},
		"discontinuities": {viewers: 9, share: 0.55, happens: func(s *scene) {
			s.film.live.breaks = map[int]bool{20: true, 25: true, 26: true, 33: true}
		}},
		"a break that differs from viewer to viewer": {viewers: 9, share: 0.4, happens: personal, checks: ownBreaks},
		"a window of two minutes, and late ones go back": {viewers: 9, window: 60, share: 0.55, config: func(i int, c *Config) {
			if i >= 6 {
				c.Seeks = []Seek{{After: 10 * time.Second, To: time.Minute}}
			}
		}},
		"a pause, and catching up": {viewers: 9, window: 60, share: 0.5, length: 90 * time.Second, config: func(i int, c *Config) {
			if i%2 == 0 {
				c.Pauses, c.CatchUp = []Pause{{After: 15 * time.Second, For: 10 * time.Second}}, 1.5
			}
		}, checks: func(t *testing.T, s *scene) {
			for i, a := range s.viewers {
				if sum := a.now(); sum.LagMs > 10_000 || i%2 == 0 && sum.LatencyMs < sum.LagMs+500 {
					t.Errorf("viewer %d is %d ms behind at the end, and was %d on average", i, sum.LagMs, sum.LatencyMs)
				}
			}
		}},
	}
}

// eachIsOutAtOnce: a viewer that has sent a wrong piece has no link any more at the one it was sent to.
func eachIsOutAtOnce(t *testing.T, s *scene) {
	rejected := int64(0)
	for _, a := range s.viewers {
		rejected += a.now().Stats.RejectedBytes
	}
	// Of each polluter at most a piece that was under way with each of its links.
	if rejected == 0 || rejected > 3*9*4*peerPiece {
		t.Errorf("%d bytes were wrong", rejected)
	}
}

const peerPiece = 16 << 10

// advert names the segments of a break that each viewer gets its own of.
func advert(viewer string, seq int) string { return fmt.Sprintf("ad-%s-%d.ts", viewer, seq) }

// stitched is an origin that stitches a break into the playlists of one viewer.
type stitched struct {
	origin
	viewer string
}

func (o stitched) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	return o.origin.Get(f, progress, func(got Fetched, err error) {
		if err == nil && strings.HasSuffix(f.URL, "index.m3u8") {
			list := string(got.Data)
			for seq := 22; seq < 27; seq++ {
				list = strings.Replace(list, fmt.Sprintf("\nseg-%d.ts", seq), "\n"+advert(o.viewer, seq), 1)
			}
			got.Data = []byte(list)
		}
		done(got, err)
	})
}

func personal(s *scene) {
	s.wrap = func(o origin) Origin {
		viewer := fmt.Sprint(len(s.viewers))
		for r := range 3 {
			for seq := 22; seq < 27; seq++ {
				of := fmt.Sprintf("/media/film/%d/", r)
				data := bytes.Clone(s.film.files[of+fmt.Sprintf("seg-%d.ts", seq)])
				copy(data, viewer)
				s.film.files[of+advert(viewer, seq)] = data
			}
		}
		return stitched{o, viewer}
	}
}

// ownBreaks: what is a viewer's own came from the origin, all of it, and what comes behind it is shared.
func ownBreaks(t *testing.T, s *scene) {
	ads, behind := 0, int64(0)
	for _, a := range s.viewers {
		for _, r := range a.results {
			switch {
			case strings.Contains(r.URL, "/ad-"):
				ads++
				if r.Bytes[FromPeer]+r.Bytes[FromSeed] > 0 {
					t.Errorf("%s: %v", r.URL, r.Bytes)
				}
			case strings.Contains(r.URL, "seg-3"):
				behind += r.Bytes[FromPeer]
			}
		}
	}
	if ads < 9*4 || behind == 0 {
		t.Errorf("%d segments of breaks, %d bytes of viewers behind them", ads, behind)
	}
}
