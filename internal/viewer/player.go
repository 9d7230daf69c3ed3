package viewer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const (
	lookahead  = 4 // segments after the asked one whose certificates are asked for ahead
	retryFirst = time.Second
	retryMost  = 8 * time.Second
	// manifestTries end a playback that never began. What fails later is asked for again as long as the viewer stays, as by
	// a page that has its player go on.
	manifestTries = 4
)

// player is what hls.js is to the library: it asks for segments in order until its buffer is full, plays in real time
// what is buffered, and stalls where nothing is. It keeps no media: a segment that has come is as good as played.
type player struct {
	loop   Loop
	cfg    *Config
	title  *title
	origin Origin
	ended  func(how string, err error)

	tracks  []*track // video first
	begun   time.Time
	over    bool
	head    playhead
	seen    observation
	started bool
	edge    edge
	runOut  func() // stops the timer of the end of the buffer
	seeks   seeks
	faults  faults
}

func newPlayer(loop Loop, cfg *Config, t *title, origin Origin, l *ledger, ended func(string, error)) *player {
	p := &player{
		loop: loop, cfg: cfg, title: t, origin: origin, ended: ended, head: playhead{loop: loop}, seen: observation{loop: loop, ledger: l},
	}
	p.edge.p = p
	return p
}

// start asks for the manifest: the clock of the startup delay begins.
func (p *player) start() {
	p.begun = p.loop.Now()
	began := p.begun
	p.fetch(Fetch{URL: p.cfg.URL}, 0, func(got Fetched) error {
		if mpd.Is(got.Data) {
			return newDash(p, got, began)
		}
		video, audio, list, err := parsePlaylist(got.URL, nil, got.Data, p.cfg.Speed)
		if err != nil {
			return err
		}
		if list != nil {
			video = []*rendition{{url: got.URL}}
		}
		main := newTrack(p, video)
		if main.fixed, err = p.cfg.fixed(video); err != nil {
			return err
		}
		p.tracks = []*track{main}
		if list != nil {
			main.listed(video[0], list, began)
		}
		for _, a := range audio {
			if a.audio == video[0].audio {
				p.tracks = append(p.tracks, newTrack(p, []*rendition{a}))
				p.tracks[1].number = 1
				break
			}
		}
		p.fill()
		return nil
	})
}

// fetch gets a manifest or a part of one, again and again if need be. An error of use ends the playback. After a failure nothing is waited
// for at the origin: it refuses to wait for a part that is far ahead, which one is whose packager has begun anew, with lower numbers.
func (p *player) fetch(f Fetch, tries int, use func(Fetched) error) {
	f.MaxBytes = cmp.Or(f.MaxBytes, playlist.MaxBytes)
	p.origin.Get(f, func(int64) {}, func(got Fetched, err error) {
		p.loop.Post(func() {
			switch {
			case p.over:
			case err != nil && p.tracks == nil && tries+1 == manifestTries:
				p.faults.add(err)
				p.finish("error", fmt.Errorf("viewer: the manifest cannot be had: %w", err))
			case err != nil:
				p.faults.add(err)
				p.loop.After(retryDelay(tries), func() {
					if !p.over {
						f.URL = reloaded(f.URL)
						p.fetch(f, tries+1, use)
					}
				})
			default:
				if err := use(got); err != nil {
					p.finish("error", fmt.Errorf("viewer: %w", err))
				}
			}
		})
	})
}

// retryDelay doubles from a second on, as hls.js has it.
func retryDelay(tries int) time.Duration { return min(retryFirst<<min(tries, 8), retryMost) }

func (p *player) fill() {
	for _, t := range p.tracks {
		t.fill()
	}
}

// end of what can be played without a gap from the playhead on. Sound that is over does not hold the picture.
func (p *player) end() time.Duration {
	end := time.Duration(1<<63 - 1)
	for i, t := range p.tracks {
		to := t.bufferedTo(p.head.position)
		if over := t.any() != nil && !t.live.goesOn() && to >= t.end(); i == 0 || !over {
			end = min(end, to)
		}
	}
	return end
}

// playhead is where the viewer is, and what is buffered ahead of that.
func (p *player) playhead() (position, ready time.Duration) {
	if len(p.tracks) == 0 {
		return 0, 0
	}
	now := p.head.now()
	return now, max(0, p.end()-now)
}

// length of the film, 0 while unknown, as that of a live stream.
func (p *player) length() time.Duration {
	if len(p.tracks) == 0 || p.tracks[0].live.goesOn() {
		return 0
	}
	return p.tracks[0].end()
}

// buffered is called when a segment came: playback begins, goes on, or has further to go.
func (p *player) buffered() {
	p.look()
	if !p.head.playing && !p.edge.paused && p.end() > p.head.position {
		now := p.loop.Now()
		switch {
		case !p.started:
			p.started = true
			p.seen.pictured(now.Sub(p.begun))
			p.title.pictured()
			p.plan()
		case p.seeks.open:
			p.seeks.waited += now.Sub(p.seeks.at)
		}
		p.seen.endStall()
		p.head.playing, p.seeks.open, p.head.since = true, false, now
	}
	p.watch()
}

// watch sets the timer to the end of the buffer.
func (p *player) watch() {
	if p.runOut != nil {
		p.runOut()
		p.runOut = nil
	}
	if p.head.playing {
		p.runOut = p.loop.After(time.Duration(float64(p.end()-p.head.now())/p.head.speed()), p.dry)
	}
}

// dry is called where the buffer ends: the film's end, or a stall.
func (p *player) dry() {
	p.look()
	if p.end() > p.head.position {
		p.watch()
		return
	}
	p.head.playing = false
	if p.atEnd() || p.edge.leap() {
		return
	}
	p.seen.stall()
	p.fill()
}

// listed goes on with what a live stream lists: more, or no more. The latter ends a playback that has stalled for more.
func (p *player) listed() {
	if p.started && !p.head.playing && !p.edge.paused && p.atEnd() {
		return
	}
	p.edge.leap()
	p.edge.keepUp()
}

// atEnd ends a playback whose playhead is at the end, and says whether it is.
func (p *player) atEnd() bool {
	length := p.length()
	if length == 0 || p.head.position < length {
		return false
	}
	p.finish("end", nil)
	return true
}

// look counts how far the playhead has come since the last look.
func (p *player) look() {
	if !p.head.playing {
		return
	}
	to := min(p.head.now(), p.end())
	for at := p.head.position; at < to; {
		shown, until := p.tracks[0].shown(at)
		step := min(until, to) - at
		at += step
		p.seen.played(step, shown)
		// It was there before now.
		p.seen.behind(step, p.tracks[0].live.latency(at)-time.Duration(float64(to-at)/p.head.speed()))
	}
	p.head.put(to)
	p.seen.count()
}

// observe counts what has been seen until now, a stall that goes on among it.
func (p *player) observe() {
	p.look()
	p.seen.soFar()
}

// plan sets the timers of what the viewer is going to do.
func (p *player) plan() {
	for _, s := range p.cfg.Seeks {
		p.loop.After(s.After, func() { p.seek(s.To) })
	}
	for _, s := range p.cfg.Pauses {
		p.loop.After(s.After, p.edge.pause)
		p.loop.After(s.After+s.For, p.edge.resume)
	}
}

// seek moves the playhead. Waiting after it is the seek's, and no stall.
func (p *player) seek(to time.Duration) {
	if p.over || len(p.tracks) == 0 {
		return
	}
	p.look()
	p.seen.endStall()
	to = time.Duration(float64(to) / p.cfg.Speed)
	if length := p.length(); length > 0 {
		to = max(0, min(to, length-time.Millisecond))
	}
	to = p.tracks[0].live.within(to)
	p.head.put(to)
	p.seeks.at = p.loop.Now()
	p.seeks.count++
	if p.end() <= to {
		p.head.playing, p.seeks.open = false, p.started
	} else if p.started {
		p.head.playing, p.seeks.open = !p.edge.paused, false
	}
	for _, t := range p.tracks {
		t.sought()
	}
	p.watch()
	p.fill()
}

func (p *player) finish(how string, err error) {
	if p.over {
		return
	}
	p.observe()
	p.seen.stalled, p.head.playing, p.over = time.Time{}, false, true
	if p.runOut != nil {
		p.runOut()
	}
	for _, t := range p.tracks {
		t.stop()
	}
	p.ended(how, err)
}
