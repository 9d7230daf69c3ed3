package viewer

import (
	"math"
	"time"
)

// edge is what the player does about the edge of a live stream, and about pauses, which take it away from there.
type edge struct {
	p      *player
	paused bool
	placed bool // the playhead is where the stream was joined
	leaps  int  // over what had left the playlist
}

// leap has a playhead that has nothing to play go on: to the edge where what it was to play has left the playlist, behind the gap
// where there is one. It says whether there was anything to leap over.
func (e *edge) leap() bool {
	p := e.p
	if p.over || e.paused || p.head.playing || !e.placed {
		return false
	}
	to := p.head.position
	for _, t := range p.tracks {
		to = max(to, t.live.beyond(p.head.position))
	}
	if to == p.head.position {
		return false
	}
	e.leaps++
	p.head.put(to)
	for _, t := range p.tracks {
		t.sought()
	}
	if p.end() > p.head.position {
		p.buffered()
	} else if p.started && !p.seeks.open && p.seen.stalled.IsZero() {
		p.seen.stall()
	}
	p.fill()
	return true
}

// keepUp plays a little faster while the playhead is further behind the edge than it is to be, as hls.js does by its
// maxLiveSyncPlaybackRate.
func (e *edge) keepUp() {
	p := e.p
	v := &p.tracks[0].live
	if p.cfg.CatchUp <= 1 || v.last == nil || len(v.last.list) == 0 {
		return
	}
	p.look()
	rate := 1.0
	late := (v.sync() + p.loop.Now().Sub(v.last.live.began) - p.head.position).Seconds() - v.last.live.pace.Seconds()
	if v.goesOn() && late > 0.05 && p.end()-p.head.position > min(time.Second, v.last.live.pace) {
		rate = math.Round(2/(1+math.Exp(-0.75*late))*20) / 20
	}
	p.head.rate = min(max(1, rate), p.cfg.CatchUp)
	p.watch()
}

// pause holds the playhead. What is asked for goes on.
func (e *edge) pause() {
	p := e.p
	p.look()
	p.seen.endStall()
	e.paused, p.head.playing = true, false
	p.watch()
}

// resume goes on, from the edge where what was paused at has left the playlist.
func (e *edge) resume() {
	p := e.p
	if p.over || !e.paused {
		return
	}
	e.paused = false
	if p.buffered(); !p.head.playing && !e.leap() {
		p.seen.stall()
	}
	p.fill()
}
