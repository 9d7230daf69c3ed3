package viewer

import (
	"cmp"
	"fmt"
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
	p       *player
	number  int
	levels  []*rendition         // the lowest bitrate first
	fixed   int                  // always this level; -1: by the estimate
	level   int                  // last asked for; -1 none
	held    map[place]*rendition // what is buffered of it
	growing growing              // what is of the segment that is loaded while it is made
	inits   map[Reference]bool
	asked   *place // that is on its way; nil: an initialization segment
	pull    *pull
	list    bool // a playlist is on its way
	tries   int
	timer   func()
	live    live
	kind    string // of an MPD: video or audio
}

func newTrack(p *player, levels []*rendition) *track {
	t := &track{p: p, levels: levels, fixed: -1, level: -1, inits: map[Reference]bool{}, held: map[place]*rendition{}}
	t.live = live{t: t}
	return t
}

// any is a level whose playlist is here, nil before that. Renditions are cut alike. Of a live stream it is the one whose playlist came
// last.
func (t *track) any() *rendition {
	if t.live.last != nil {
		return t.live.last
	}
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
	for i := l.at(from); i < len(l.list); i++ {
		e := &l.list[i]
		shown, until := t.has(e)
		if shown == nil || l.live != nil && e.Start > to {
			break // what was there has left the playlist
		}
		if to = max(to, until); until < e.Start+e.Duration {
			break
		}
	}
	return to
}

// shown is the rendition on screen at a moment that is buffered, and until when.
func (t *track) shown(at time.Duration) (*rendition, time.Duration) {
	l := t.any()
	i := l.at(at)
	return t.has(&l.list[i])
}

// choose picks the level of the next segment.
func (t *track) choose() int {
	if t.fixed >= 0 {
		return t.fixed
	}
	line := t.p.title.line
	estimate := cmp.Or(line.told(), line.segment, firstEstimate)
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
	from := min(p.head.now(), p.end())
	level := t.choose()
	if t.midway(from) {
		level = t.level
	}
	l := t.levels[level]
	if !l.fetched || t.live.outdated(l) {
		t.fetchList(l)
		return
	}
	to := t.bufferedTo(from)
	i := l.at(to)
	if i >= len(l.list) || t.held[l.list[i].place] != nil {
		t.level = level // the one that is reloaded
		return          // all of it is here, or the playhead is to leap over a gap first
	}
	if full := to - from - p.cfg.Buffer; full >= 0 {
		if p.head.playing {
			t.after(full + time.Millisecond)
		}
		return
	}
	t.level = level
	i = t.decodable(l, i)
	e := l.list[i]
	if e.init != nil && !t.inits[*e.init] {
		// It cannot wait: nothing can be shown before it.
		t.load(l, *e.init, i, nil, func() time.Duration { return 0 })
		return
	}
	t.load(l, e.Reference, i, &e.place, func() time.Duration {
		if !t.anything() {
			return 0
		}
		return max(0, e.Start-p.head.now())
	})
}

// anything says whether anything at all is buffered.
func (t *track) anything() bool {
	return len(t.held) > 0 || t.growing.to > 0
}

func (t *track) after(d time.Duration) {
	t.timer = t.p.loop.After(d, func() {
		t.timer = nil
		t.fill()
	})
}

func (t *track) fetchList(l *rendition) {
	if l.mpd != nil {
		t.fetchIndex(l)
		return
	}
	t.list = true
	began := t.p.loop.Now()
	t.p.fetch(Fetch{URL: l.url}, 0, func(got Fetched) error {
		t.list = false
		if err := t.take(l, got, began); err != nil {
			return err
		}
		t.p.fill()
		return nil
	})
}

// take takes in a rendition's playlist.
func (t *track) take(l *rendition, got Fetched, began time.Time) error {
	_, _, list, err := parsePlaylist(got.URL, l.imports, got.Data, t.p.cfg.Speed)
	switch {
	case err != nil:
		return err
	case list == nil:
		return fmt.Errorf("playlist %s is a master playlist within one", got.URL)
	}
	l.url = reloaded(got.URL)
	t.listed(l, list, began)
	return nil
}

// listed puts what a playlist lists on the timeline.
func (t *track) listed(l *rendition, list *mediaList, began time.Time) {
	l.fetched = true
	if t.p.cfg.LowLatency && list.inParts != nil {
		list = list.inParts
	}
	if list.live || l.live != nil || t.live.last != nil {
		t.live.came(l, list, began)
		return
	}
	l.list = list.entries
}

// load asks for the index-th segment of a rendition, or for what that needs before it: at is nil then.
func (t *track) load(l *rendition, r Reference, index int, at *place, deadline func() time.Duration) {
	req := request{
		Reference: r, track: t.number, playlist: l.url, rendition: l.name, bitrate: l.bitrate, adaptive: t.fixed < 0 && len(t.levels) > 1, deadline: deadline,
		live: t.live.goesOn(), zero: t.live.zero(l.list[index]), part: at != nil && at.part != whole,
	}
	if req.part {
		var ok bool
		if req.parts, req.turn, ok = listedParts(l, index); !ok {
			req.parts = nil
		}
	}
	if at != nil && !req.part {
		for _, next := range l.list[index+1 : min(index+1+schedule.MostAhead, len(l.list))] {
			if next.chunked == nil || !next.at.Add(next.chunked.Duration).After(t.p.loop.Now()) {
				req.upcoming = append(req.upcoming, next.Reference)
			}
		}
		req.made = t.making(l, l.list[index])
	}
	t.asked = at
	t.pull = t.p.title.load(req, func(got *Result, err error) { t.came(l, r, at, got, err) })
}

func (t *track) came(l *rendition, r Reference, at *place, got *Result, err error) {
	t.pull = nil
	p := t.p
	if p.over {
		return
	}
	if err != nil {
		p.faults.add(err)
		t.tries++
		wait := retryDelay(t.tries - 1)
		if t.growing.level != nil { // at the edge, players of low latency ask again as much sooner
			wait /= 10
		}
		t.after(wait)
		return
	}
	t.tries = 0
	if p.cfg.OnSegment != nil {
		p.cfg.OnSegment(got)
	}
	if at == nil {
		t.inits[r] = true
	} else {
		t.held[*at] = l
		switch {
		case t.growing.level != nil:
			t.growing.grown(got)
		case got.Source == FromOrigin:
			p.title.line.segment = p.title.line.last
		}
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
	if t.pull == nil || l == nil || t.asked == nil {
		return
	}
	if i := l.at(t.bufferedTo(t.p.head.now())); i < len(l.list) && *t.asked == l.list[t.decodable(l, i)].place {
		return
	}
	t.pull.abort()
	t.pull = nil
}

func (t *track) stop() {
	t.live.stop()
	if t.timer != nil {
		t.timer()
	}
	if t.pull != nil {
		t.pull.abort()
	}
}
