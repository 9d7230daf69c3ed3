package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

// What hls.js multiplies its estimate with before a rendition has to fit into it.
const (
	bandwidthFactor   = 0.95
	bandwidthUpFactor = 0.7
	// firstEstimate is hls.js's guess before anything was measured, bits per second.
	firstEstimate = 500_000
)

// track is one of the streams that are played side by side: video, or audio of its own.
type track struct {
	p      *player
	number int
	levels []*rendition // the lowest bitrate first
	fixed  int          // always this level; -1: by the estimate
	level  int          // last asked for; -1 none
	held   []*rendition // by segment: what is buffered of it
	inits  map[Reference]bool
	asked  int // index of the segment that is on its way
	pull   *pull
	list   bool // a playlist is on its way
	tries  int
	timer  func()
}

func newTrack(p *player, levels []*rendition) *track {
	return &track{p: p, levels: levels, fixed: -1, level: -1, inits: map[Reference]bool{}}
}

// any is a level whose playlist is here, nil before that. Renditions are cut alike.
func (t *track) any() *rendition {
	for _, l := range t.levels {
		if l.fetched {
			return l
		}
	}
	return nil
}

func (t *track) end() time.Duration {
	if l := t.any(); l != nil {
		return l.end()
	}
	return 0
}

// bufferedTo is where the gapless stretch from a moment on ends; the moment itself if nothing is there.
func (t *track) bufferedTo(from time.Duration) time.Duration {
	l := t.any()
	if l == nil {
		return from
	}
	to := from
	for i := l.at(from); i < len(l.list) && i < len(t.held) && t.held[i] != nil; i++ {
		to = l.list[i].Start + l.list[i].Duration
	}
	return to
}

// shown is the rendition on screen at a moment that is buffered, and until when.
func (t *track) shown(at time.Duration) (*rendition, time.Duration) {
	l := t.any()
	i := l.at(at)
	return t.held[i], l.list[i].Start + l.list[i].Duration
}

// choose picks the level of the next segment.
func (t *track) choose() int {
	if t.fixed >= 0 {
		return t.fixed
	}
	estimate := t.p.title.line.told()
	if estimate == 0 {
		estimate = firstEstimate
	}
	for i := len(t.levels) - 1; i > 0; i-- {
		factor := bandwidthUpFactor
		if i <= t.level {
			factor = bandwidthFactor
		}
		if float64(t.levels[i].bitrate) <= estimate*factor {
			return i
		}
	}
	return 0
}

// fill asks for the next segment unless the buffer is full or one is on its way.
func (t *track) fill() {
	p := t.p
	if t.pull != nil || t.list || p.over || t.timer != nil {
		return
	}
	level := t.choose()
	l := t.levels[level]
	if !l.fetched {
		t.fetchList(l)
		return
	}
	from := min(p.head.now(), p.end())
	to := t.bufferedTo(from)
	i := l.at(to)
	if i >= len(l.list) {
		return // all of it is here
	}
	if full := to - from - p.cfg.Buffer; full >= 0 {
		if p.head.playing {
			t.after(full + time.Millisecond)
		}
		return
	}
	t.level = level
	e := l.list[i]
	if e.init != nil && !t.inits[*e.init] {
		// It cannot wait: nothing can be shown before it.
		t.load(l, *e.init, -1, func() time.Duration { return 0 })
		return
	}
	t.load(l, e.Reference, i, func() time.Duration {
		if !t.anything() {
			return 0
		}
		return max(0, e.Start-p.head.now())
	})
}

// anything says whether anything at all is buffered.
func (t *track) anything() bool {
	for _, h := range t.held {
		if h != nil {
			return true
		}
	}
	return false
}

func (t *track) after(d time.Duration) {
	t.timer = t.p.loop.After(d, func() {
		t.timer = nil
		t.fill()
	})
}

func (t *track) fetchList(l *rendition) {
	t.list = true
	t.p.fetch(l.url, 0, func(got Fetched) error {
		_, _, list, err := parsePlaylist(got.URL, got.Data, t.p.cfg.Speed)
		if err != nil {
			return err
		}
		l.url, l.list, l.fetched, t.list = got.URL, list, true, false
		t.p.fill()
		return nil
	})
}

func (t *track) load(l *rendition, r Reference, index int, deadline func() time.Duration) {
	req := request{
		Reference: r, track: t.number, playlist: l.url, rendition: l.name, bitrate: l.bitrate, adaptive: t.fixed < 0 && len(t.levels) > 1, deadline: deadline,
	}
	if index >= 0 {
		for _, next := range l.list[index+1 : min(index+1+schedule.MostAhead, len(l.list))] {
			req.upcoming = append(req.upcoming, next.Reference)
		}
	}
	t.asked = index
	t.pull = t.p.title.load(req, func(got *Result, err error) { t.came(l, r, index, got, err) })
}

func (t *track) came(l *rendition, r Reference, index int, got *Result, err error) {
	t.pull = nil
	p := t.p
	if p.over {
		return
	}
	if err != nil {
		p.faults.add(err)
		t.tries++
		t.after(retryDelay(t.tries - 1))
		return
	}
	t.tries = 0
	if p.cfg.OnSegment != nil {
		p.cfg.OnSegment(got)
	}
	if index < 0 {
		t.inits[r] = true
	} else {
		for len(t.held) < len(l.list) {
			t.held = append(t.held, nil)
		}
		t.held[index] = l
	}
	p.buffered()
	t.fill()
}

// sought takes back what is not wanted at the new place.
func (t *track) sought() {
	if t.timer != nil {
		t.timer()
		t.timer = nil
	}
	l := t.any()
	if t.pull == nil || l == nil || t.asked < 0 || t.asked == l.at(t.bufferedTo(t.p.head.now())) {
		return
	}
	t.pull.abort()
	t.pull = nil
}

func (t *track) stop() {
	if t.timer != nil {
		t.timer()
	}
	if t.pull != nil {
		t.pull.abort()
	}
}
