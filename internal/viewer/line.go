package viewer

import (
	"cmp"
	"math"
	"sync"
	"time"
)

// line is what is known of the way to the origin: what it carries, and how soon the origin answers. It learns from every
// fetch, also from one that is given up.
type line struct {
	loop   Loop
	origin Origin
	took   func(n int) // bytes came; on the loop
	capacity
	last     float64       // rate of the last transfer, bits/s: those of a stream may all be too short for a sample
	segment  float64       // the same, of the last segment that was the origin's: what hls.js goes by where there is no sample
	answer   time.Duration // until the first byte
	received int64         // bytes from peers
	wholes   bool          // the origin was asked for a part and did not send it
	parts    shortParts
	failing  bool      // the last fetch brought an error
	failed   time.Time // when one did last
}

func newLine(loop Loop, origin Origin) *line {
	return &line{loop: loop, origin: origin, took: func(int) {}, answer: 100 * time.Millisecond}
}

// originRest is how long after an error the origin counts as unable to serve. Then the next segment is asked of it again,
// and not of a relay.
const originRest = 30 * time.Second

// fails says whether the origin counts as unable to serve.
func (l *line) fails() bool { return l.failing && l.loop.Now().Sub(l.failed) < originRest }

// others notes bytes from a peer.
func (l *line) others(bytes int) { l.received += int64(bytes) }

// byPeers notes a segment of which the origin sent nothing. While it fails, what peers bring is what there is to choose a
// rendition by: a newcomer would otherwise stay with the first, which no other viewer plays.
func (l *line) byPeers(bytes int64, took time.Duration) {
	if l.failing {
		l.sample(bytes, took, 0, time.Time{})
	}
}

// lacks says whether nothing is known of the line to choose a rendition by, and a segment that may still be made is to show it.
func (l *line) lacks(r request) bool {
	return r.made != nil && r.adaptive && l.estimate() == 0 && !l.fails()
}

// timeUs is what the origin takes to answer and to send so many bytes; -1 unknown.
func (l *line) timeUs(bytes float64) int64 {
	bps := cmp.Or(l.estimate(), l.last)
	if bps == 0 || bytes == 0 {
		return -1
	}
	return int64(math.Ceil(float64(l.answer.Microseconds()) + bytes*8e6/bps))
}

// looks are what progress showed of one fetch, from other goroutines.
type looks struct {
	mu                sync.Mutex
	first, last       time.Time // guarded by mu
	begin, loadedLast int64     // guarded by mu
}

// note takes a look; it returns how much came since the last one.
func (k *looks) note(loaded int64, now time.Time) (more int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	more = loaded - k.loadedLast
	if k.first.IsZero() {
		k.first, k.begin = now, loaded
	}
	k.last, k.loadedLast = now, loaded
	return more
}

// loaded is how many bytes were in at the last look.
func (k *looks) loaded() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.loadedLast
}

// fetch asks the origin, for a part of a segment perhaps. done comes once, on the loop, unless cancel came first.
func (l *line) fetch(f Fetch, part bool, done func(Fetched, error)) (cancel func(), seen *looks) {
	started, before, over := l.loop.Now(), l.received, false
	seen = &looks{}
	if g := f.Growing; g != nil {
		f.Growing = &Growing{g.Plays, func(b []byte, unshared bool) {
			l.loop.Post(func() {
				if !over {
					g.Heard(b, unshared)
				}
			})
		}}
	}
	stop := l.origin.Get(f, func(n int64) {
		more := int(seen.note(n, l.loop.Now()))
		l.loop.Post(func() { l.took(more) })
	}, func(got Fetched, err error) {
		l.loop.Post(func() {
			if over {
				return
			}
			over = true
			now := l.loop.Now()
			if l.failing = err != nil; l.failing {
				l.failed = now
			} else {
				l.answered(now.Sub(started) - got.Transfer)
				others := l.received - before + l.paced(f.Growing, got.Transfer)
				if part { // too short for a measurement, but a bound
					others += int64(len(got.Data)) / 8
				}
				l.last = float64(len(got.Data)) * 8 / max(got.Transfer, time.Millisecond).Seconds()
				l.sample(int64(len(got.Data)), got.Transfer, others, now)
			}
			done(got, err)
		})
	})
	return func() {
		if over {
			return
		}
		over = true
		stop()
		// Up to the last look, not to now: what came since then is not known. Bytes behind a lost packet are there and not
		// seen, so it is only a bound, as with peers beside it.
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if !seen.first.IsZero() {
			l.answered(seen.first.Sub(started))
			l.sample(seen.loadedLast-seen.begin, seen.last.Sub(seen.first), l.received-before+seen.loadedLast/8+l.paced(f.Growing, -1), time.Time{})
		}
	}, seen
}

// crowded are bytes of others beside which a transfer says only that the line is no slower.
const crowded = 1e12

// paced are bytes of others that stand for the pace at which a segment was made while it was sent: that is no sample of the line, unless there
// is no other. took is below zero where it was given up.
func (l *line) paced(g *Growing, took time.Duration) int64 {
	if g == nil || l.estimate() == 0 || took > g.Plays || took >= 0 && took <= g.Plays/2 {
		return 0
	}
	return crowded
}

// beside loads at most so many bytes of what is no media. It is no measurement of the line. done comes once, on the loop, unless
// stop came first.
func (l *line) beside(url string, most int64, done func(data []byte, err error)) (stop func()) {
	stopped, seen := false, &looks{}
	cancel := l.origin.Get(Fetch{URL: url, MaxBytes: most}, func(n int64) {
		more := int(seen.note(n, l.loop.Now()))
		l.loop.Post(func() { l.others(more) })
	}, func(got Fetched, err error) {
		l.loop.Post(func() {
			if !stopped {
				done(got.Data, err)
			}
		})
	})
	return func() {
		stopped = true
		cancel()
	}
}

func (l *line) answered(d time.Duration) { l.answer = (3*l.answer + max(d, 0)) / 4 }
