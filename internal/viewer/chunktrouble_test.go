package viewer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
)

// audience has viewers come a second after each other, and play for so long.
func (c *chunkStream) audience(n int, plays time.Duration, change ...func(*Config)) {
	for range n {
		c.s.viewer(fast, func(cfg *Config) {
			lowDASH(cfg)
			cfg.Leave = plays
			for _, f := range change {
				f(cfg)
			}
		})
		c.s.w.run(time.Second)
	}
}

// fine fails the test unless all viewers have played what the origin has, without a stall, at the edge, and have banned no peer.
func (s *scene) fine() {
	s.t.Helper()
	s.check()
	for i, a := range s.viewers {
		sum := a.now()
		if sum.Stats.Stalls > 0 || sum.Errors > 0 || sum.Leaps > 0 || sum.Banned > 0 || sum.LatencyMs > 1_700 || sum.Stats.RejectedBytes+sum.Stats.Contradictions > 0 {
			s.t.Errorf("viewer %d: %d stalls, %d errors (%s), %d leaps, %d banned, %d ms behind, %d contradictions", i, sum.Stats.Stalls, sum.Errors, sum.LastError, sum.Leaps, sum.Banned, sum.LatencyMs, sum.Stats.Contradictions)
		}
	}
}

// share is how much of what viewers had from their n-th result on came from a source.
func (s *scene) share(of Source, from int) float64 {
	sum, all := int64(0), int64(0)
	for _, a := range s.viewers {
		for _, r := range a.results[min(from, len(a.results)):] {
			sum += r.Bytes[of]
			all += int64(r.Len())
		}
	}
	return float64(sum) / float64(all)
}

func TestChunksOfAnyNumberAreShared(t *testing.T) {
	for _, each := range []int{2, 3, 10, 50} {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			s, c := newChunkScene(t, each)
			c.audience(4, 40*time.Second)
			s.w.run(40 * time.Second)
			s.check()
			if got := s.share(FromOrigin, 6); got > 0.05 {
				t.Errorf("%.2f is of the origin", got)
			}
			for i, a := range s.viewers {
				if sum := a.now(); sum.Banned > 0 || sum.Errors > 0 || sum.Stats.Stalls > 1 {
					t.Errorf("viewer %d: %d banned, %d errors, %d stalls", i, sum.Banned, sum.Errors, sum.Stats.Stalls)
				}
			}
		})
	}
}

// TestAPackagerThatIsLateIsAwaited: each seventh chunk comes 400 ms late. The origin is seldom asked for it, and parents stay.
func TestAPackagerThatIsLateIsAwaited(t *testing.T) {
	s, c := newChunkScene(t, 4)
	c.late = func(seq, n int) time.Duration {
		if (seq*4+n)%7 == 3 {
			return 400 * time.Millisecond
		}
		return 0
	}
	c.audience(4, time.Minute)
	s.w.run(60 * time.Second)
	s.fine()
	if got := s.share(FromOrigin, 6); got > 0.1 {
		t.Errorf("%.2f is of the origin", got)
	}
}

// TestAnOriginThatFailsInASegment while it sends it: peers bring the rest, or the player asks again at once.
func TestAnOriginThatFailsInASegment(t *testing.T) {
	for name, alone := range map[string]bool{"with peers": false, "alone": true} {
		t.Run(name, func(t *testing.T) {
			s, c := newChunkScene(t, 4)
			failed := map[int]bool{}
			c.breaks = func(seq, n int) bool {
				once := n == 2 && seq%5 == 0 && !failed[seq]
				failed[seq] = failed[seq] || n == 2
				return alone && once || !alone && s.w.now.Sub(worldBegin) > 15*time.Second
			}
			c.audience(map[bool]int{true: 1, false: 4}[alone], time.Minute, func(cfg *Config) {
				if alone {
					cfg.Tracker = ""
				}
			})
			s.w.run(60 * time.Second)
			s.check()
			for i, a := range s.viewers {
				if sum := a.now(); sum.Stats.Stalls > 0 || sum.Banned > 0 || sum.Stats.PlayedMs < 58_000 || sum.LatencyMs > 1_700 || alone && sum.Errors == 0 {
					t.Errorf("viewer %d: %d stalls, %d banned, %d errors, played %d ms, %d ms behind", i, sum.Stats.Stalls, sum.Banned, sum.Errors, sum.Stats.PlayedMs, sum.LatencyMs)
				}
			}
		})
	}
}

// TestViewersOfChunksPlayOnWithoutTheOrigin, which has the seed's requests answered, and leaves theirs without an answer.
func TestViewersOfChunksPlayOnWithoutTheOrigin(t *testing.T) {
	s, c := newChunkScene(t, 4)
	c.audience(4, time.Minute)
	s.w.run(15 * time.Second)
	c.dead = true
	s.w.run(45 * time.Second)
	s.fine()
	for i, a := range s.viewers {
		if sum := a.now(); sum.Stats.PlayedMs < 58_000 {
			t.Errorf("viewer %d played %d ms", i, sum.Stats.PlayedMs)
		}
	}
}

// TestAnEndThatIsToldBehindTheLastChunkIsSeen at once: no further chunk is waited for.
func TestAnEndThatIsToldBehindTheLastChunkIsSeen(t *testing.T) {
	s, c := newChunkScene(t, 4)
	s.seed.parts.ends = 100 * time.Millisecond
	c.audience(4, 40*time.Second)
	s.w.run(40 * time.Second)
	s.fine()
	if got := s.share(FromOrigin, 6); got > 0.05 {
		t.Errorf("%.2f is of the origin", got)
	}
}

// TestAnEndOfAnotherVersionIsNotBelieved: the origin is asked, and what the player gets is the origin's.
func TestAnEndOfAnotherVersionIsNotBelieved(t *testing.T) {
	for name, length := range map[string]int{"in a chunk": 100_000, "behind a chunk": 120_000} {
		t.Run(name, func(t *testing.T) {
			s, c := newChunkScene(t, 4)
			from := 0
			s.seed.parts.tells = func(seq, n int, _, whole []byte) (segment.Name, []byte) {
				if n != parts.End || from == 0 || seq < from || len(whole) < length {
					return "", nil
				}
				return segment.WholeName(segmentFile(0, seq)), make([]byte, length)
			}
			c.audience(4, 30*time.Second)
			from = s.film.live.edge() + 2
			s.w.run(30 * time.Second)
			s.check()
			for i, a := range s.viewers {
				if sum := a.now(); sum.Errors > 0 || sum.Banned > 0 || sum.Stats.PlayedMs < 28_000 {
					t.Errorf("viewer %d: %d errors (%s), %d banned, played %d ms", i, sum.Errors, sum.LastError, sum.Banned, sum.Stats.PlayedMs)
				}
			}
		})
	}
}

// TestChunksOfAnotherVersionAreTheOrigins: one viewer's origin has other bytes. No peer is blamed for it.
func TestChunksOfAnotherVersionAreTheOrigins(t *testing.T) {
	s, c := newChunkScene(t, 4)
	c.other = func(n *node) bool { return n.name == "viewer 3" }
	c.audience(4, 30*time.Second)
	s.w.run(30 * time.Second)
	for i, a := range s.viewers {
		if sum := a.now(); !a.isDone() || sum.Banned > 0 || sum.Errors > 0 || i < 3 && a.wrong > 0 {
			t.Errorf("viewer %d: %d banned, %d errors, %d segments of another version", i, sum.Banned, sum.Errors, a.wrong)
		}
	}
}

// TestAViewerThatPushesWrongChunksIsDropped at the first piece, and no viewer plays it.
func TestAViewerThatPushesWrongChunksIsDropped(t *testing.T) {
	s, c := newChunkScene(t, 4)
	c.audience(1, 50*time.Second)
	s.w.run(5 * time.Second)
	s.viewers[0].node.garble = flip
	c.audience(4, 40*time.Second)
	s.w.run(40 * time.Second)
	s.check()
	banned := 0
	for i, a := range s.viewers[1:] {
		sum := a.now()
		if banned += sum.Banned; sum.Stats.Stalls > 0 || sum.Errors > 0 || sum.Banned > 1 {
			t.Errorf("viewer %d: %d stalls, %d errors, banned %v", i+1, sum.Stats.Stalls, sum.Errors, sum.BannedPeers)
		}
	}
	if banned == 0 {
		t.Error("it is dropped by no viewer")
	}
}

// TestAPeriodOfChunksFollowsAnother whose segments are cut anew: the last one of the first period is half as long. It is loaded as any other,
// and the stream is followed from the next one on.
func TestAPeriodOfChunksFollowsAnother(t *testing.T) {
	s, c := newChunkScene(t, 4)
	b := s.film.live
	text := b.mpd
	b.mpd = func(edge int) string {
		one := text(edge)
		period := one[strings.Index(one, "<Period"):strings.Index(one, "</MPD>")]
		second := strings.NewReplacer(`start="PT0S"`, `start="PT60S"`, `startNumber="0"`, `startNumber="30"`).Replace(period)
		return strings.Replace(one, "</MPD>", second+"</MPD>", 1)
	}
	c.audience(4, time.Minute)
	s.w.run(60 * time.Second)
	s.fine()
	if got := s.share(FromOrigin, 6); got > 0.1 {
		t.Errorf("%.2f is of the origin", got)
	}
}

// TestAViewerOfChunksThatIsPausedIsChargedNothing, and afterwards, behind the edge, it has whole segments of the others.
func TestAViewerOfChunksThatIsPausedIsChargedNothing(t *testing.T) {
	s, c := newChunkScene(t, 4)
	c.audience(3, 100*time.Second)
	c.audience(1, 90*time.Second, func(cfg *Config) {
		cfg.Buffer, cfg.Pauses = 6*time.Second, []Pause{{After: 20 * time.Second, For: 15 * time.Second}}
	})
	s.w.run(100 * time.Second)
	s.check()
	late := s.viewers[3]
	sum := late.now()
	var behind int64
	for _, r := range late.results[len(late.results)-10:] {
		behind += r.Bytes[FromPeer]
		if r.Source == FromOrigin {
			t.Errorf("%s is of the origin: %s", r.URL, r.Reason)
		}
	}
	if sum.LagMs < 15_000 || sum.Stats.Stalls > 0 || behind == 0 {
		t.Errorf("%d ms behind, %d stalls, %d bytes of viewers", sum.LagMs, sum.Stats.Stalls, behind)
	}
	for i, a := range s.viewers {
		if sum := a.now(); sum.Banned > 0 || sum.Errors > 0 {
			t.Errorf("viewer %d: banned %d, %d errors", i, sum.Banned, sum.Errors)
		}
	}
}

// TestAViewerOfChunksMeasuresItsLine by segments of the origin alone, here of less than a sample each: else it stays without a measurement, and with
// the lowest rendition.
func TestAViewerOfChunksMeasuresItsLine(t *testing.T) {
	s, c := newChunkScene(t, 4, 60_000, 240_000)
	c.audience(6, 40*time.Second)
	s.w.run(40 * time.Second)
	s.check()
	for i, a := range s.viewers {
		if sum := a.now(); sum.Capacity == 0 {
			t.Errorf("viewer %d has no measurement after %d segments: %v", i, len(a.results), sum.Stats.Bytes)
		}
	}
}
