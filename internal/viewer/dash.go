package viewer

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// dash plays an MPD: its representations are the renditions of tracks as media playlists are. What is the same for all
// renditions of HLS too stays with the tracks; what is not is that one document lists all of them, by the clock if it is live.
type dash struct {
	p      *player
	timers timers
	doc    *mpd.Document // that came last
	at     *url.URL
	began  time.Time     // when its load began
	zero   time.Time     // availabilityStartTime of the first one
	shift  time.Duration // how much later that of the last one is
	again  *url.URL      // where it is loaded from
	asked  bool          // it is on its way
}

// newDash takes the MPD that came first.
func newDash(p *player, got Fetched, began time.Time) error {
	d := &dash{p: p, timers: newTimers(p.loop)}
	if err := d.came(got, began); err != nil {
		return err
	}
	m, err := d.read()
	if err != nil {
		return err
	}
	d.zero = m.Start
	for _, kind := range []string{"video", "audio"} {
		if levels := levelsOf(m, kind, got.URL, p.cfg.Speed); len(levels) > 0 {
			t := newTrack(p, levels)
			t.kind, t.number = kind, len(p.tracks)
			p.tracks = append(p.tracks, t)
			if d.list(t, m); len(t.levels) == 0 {
				p.tracks = p.tracks[:t.number]
			}
		}
	}
	if len(p.tracks) == 0 {
		return fmt.Errorf("manifest %s: %w", d.at.Path, refusal(m))
	}
	main := p.tracks[0]
	if main.fixed, err = p.cfg.fixed(main.levels); err != nil {
		return err
	}
	d.listed(m)
	return nil
}

// came takes an MPD.
func (d *dash) came(got Fetched, began time.Time) (err error) {
	if d.at, err = url.Parse(got.URL); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if d.doc, err = mpd.Parse(got.Data, d.at); err != nil {
		return fmt.Errorf("manifest %s: %w", d.at.Path, err)
	}
	d.began, d.again = began, d.at
	return nil
}

// read lists the MPD as of now.
func (d *dash) read() (*mpd.Manifest, error) {
	m, err := listMPD(d.doc, d.at, d.p.loop.Now(), d.p.cfg.Speed)
	if err == nil && m.At != nil {
		d.again = m.At
	}
	return m, err
}

// list puts what an MPD lists of a track on the timeline. Renditions that are not cut as the first one is are not played.
func (d *dash) list(t *track, m *mpd.Manifest) {
	if m.Live {
		d.shift = m.Start.Sub(d.zero)
	}
	film := !m.Live && t.live.last == nil
	on := timeline{d.shift, d.p.cfg.Speed, d.zero, d.p.cfg.LowLatency && m.Live}
	sets, lists := setsOf(m, t.kind, t.levels), map[*rendition][]entryRef{}
	target := leastTarget
	var first []entryRef
	for _, l := range slices.Clone(t.levels) {
		l.mpd = representationOf(sets, l, d.p.cfg.Speed)
		if l.mpd.indexed() {
			continue
		}
		if on.low {
			l.mpd.begin(d.p.loop.Now())
		}
		list := l.mpd.entries(on)
		if len(first) == 0 {
			first = list
		}
		list, ok := alike(list, first)
		if film && (!ok || len(list) == 0) {
			t.drop(l)
			continue
		}
		lists[l] = list
		for _, e := range list {
			target = max(target, e.Duration)
		}
	}
	pace := target
	if n := len(first); n > 0 && first[n-1].chunked != nil {
		pace = usualChunk(first[n-1].chunked)
	}
	t.took(lists, growth{target: target, holdBack: d.holdBack(m, target, first), pace: pace, timed: true}, m.Live, d.p.loop.Now())
}

// holdBack is how far behind the end of what is listed the player is to stay: so much behind the clock as the MPD suggests, or three
// segments behind the end. Less than two segments behind the clock is for players that take a segment while it is made: these are as far
// behind it as the latency that the MPD wants, or else as it suggests, or three chunks.
func (d *dash) holdBack(m *mpd.Manifest, target time.Duration, list []entryRef) time.Duration {
	if len(list) == 0 {
		return holdTargets * target
	}
	last, delay := list[len(list)-1], m.Delay
	if last.chunked != nil {
		delay = cmp.Or(m.Latency, m.Delay, partTargets*usualChunk(last.chunked))
	} else if delay < 2*target {
		return holdTargets * target
	}
	return max(0, delay-d.p.loop.Now().Sub(last.at.Add(last.Duration)))
}

// usualChunk is how long a chunk is taken to play: a segment can be asked for when its first one is there, if not sooner.
func usualChunk(c *mpd.Chunks) time.Duration {
	return max(leastTarget, c.Duration-c.Sooner, c.Duration/usualChunks)
}

// took takes what was listed of the renditions, that which is played last: it is the one that the others go by.
func (t *track) took(lists map[*rendition][]entryRef, g growth, live bool, began time.Time) {
	levels := slices.Clone(t.levels)
	if t.level >= 0 {
		levels = append(slices.Delete(levels, t.level, t.level+1), t.levels[t.level])
	}
	for _, l := range levels {
		list, ok := lists[l]
		if !ok {
			continue
		}
		l.fetched = true
		if live || t.live.last != nil {
			t.live.took(l, &mediaList{growth: g, entries: list, live: live}, began)
		} else {
			l.list = list
		}
	}
}

// drop plays a rendition no more.
func (t *track) drop(l *rendition) {
	at := slices.Index(t.levels, l)
	t.levels = slices.Delete(t.levels, at, at+1)
	if t.level >= at {
		t.level--
	}
}

// listed goes on with what was listed, and has more listed when there is more.
func (d *dash) listed(m *mpd.Manifest) {
	p := d.p
	main := &p.tracks[0].live
	if main.last != nil {
		main.joined()
		p.listed()
	}
	p.fill()
	if !m.Live || p.over {
		d.timers.clear("list", "load")
		return
	}
	main.reload = func() { d.timers.clear("list", "load") }
	next, target := d.due()
	d.timers.set("list", next, d.relist)
	if m.Updates && !d.asked && !d.timers.isSet("load") {
		// With a period of zero it may change at any time, but it has a reason to when there is a segment more.
		pace := cmp.Or(m.Update, target)
		d.timers.set("load", max(leastTarget, d.began.Add(pace).Sub(p.loop.Now())), d.load)
	}
}

// due is when the next segment of a track is complete by the clock, or can be asked for, and how long segments are.
func (d *dash) due() (wait, target time.Duration) {
	if v := d.p.tracks[0].live; v.last == nil || len(v.last.list) == 0 {
		return retryFirst, retryFirst
	}
	target = d.p.tracks[0].live.last.live.target
	wait = target // where a segment is due already, the MPD that names it has to come first
	for _, t := range d.p.tracks {
		if l := t.live.last; l != nil && len(l.list) > 0 {
			last := l.list[len(l.list)-1]
			next := last.at.Add(2*last.Duration + time.Millisecond) // times of the media are rounded down
			if last.chunked != nil {
				next = next.Add(-last.chunked.Sooner)
			}
			if due := next.Sub(d.p.loop.Now()); due > 0 {
				wait = min(wait, due)
			}
		}
	}
	return max(leastTarget, wait), target
}

// relist lists the MPD that came last as of now.
func (d *dash) relist() {
	if d.p.over {
		return
	}
	m, err := d.read()
	if err != nil {
		d.p.finish("error", fmt.Errorf("viewer: %w", err))
		return
	}
	for _, t := range d.p.tracks {
		if d.list(t, m); len(t.levels) == 0 {
			d.p.finish("error", fmt.Errorf("viewer: manifest %s: %w", d.at.Path, refusal(m)))
			return
		}
	}
	d.listed(m)
}

// load loads the MPD again.
func (d *dash) load() {
	if d.p.over {
		return
	}
	began := d.p.loop.Now()
	d.asked = true
	d.p.fetch(Fetch{URL: d.again.String()}, 0, func(got Fetched) error {
		d.asked = false
		if err := d.came(got, began); err != nil {
			return err
		}
		d.relist()
		return nil
	})
}

// fetchIndex loads the first index of a rendition that is not here yet.
func (t *track) fetchIndex(l *rendition) {
	at := slices.IndexFunc(l.mpd.periods, func(in inPeriod) bool { return in.Index != nil })
	in := &l.mpd.periods[at]
	x := in.Index.Object
	t.list = true
	t.p.fetch(Fetch{URL: x.URL.String(), Ranged: true, First: x.First, Last: x.Last, MaxBytes: mpd.MaxIndex}, 0, func(got Fetched) error {
		t.list = false
		if err := l.mpd.take(in, got.Data); err != nil {
			return fmt.Errorf("index of %s: %w", l.name, err)
		}
		if l.mpd.indexed() {
			t.fetchIndex(l)
			return nil
		}
		if t.indexed(l); len(l.list) == 0 && l.fetched {
			return fmt.Errorf("%s: no segments", l.name)
		}
		t.p.fill()
		return nil
	})
}

// indexed takes a rendition whose indexes are all here.
func (t *track) indexed(l *rendition) {
	list := l.mpd.entries(timeline{speed: t.p.cfg.Speed})
	if known := t.any(); known != nil {
		var ok bool
		if list, ok = alike(list, known.list); !ok || len(list) == 0 {
			t.drop(l)
			return
		}
	}
	l.list, l.fetched = list, true
}
