package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// rendition is one quality of the film.
type rendition struct {
	name    string
	url     string
	bitrate int64 // bits per second, as it is played; 0 unknown
	audio   string
	imports playlist.Variables // of the master playlist
	list    []entryRef         // nil until its playlist is here
	fetched bool
	live    *liveList       // of a playlist that may grow
	mpd     *representation // of an MPD; nil: url is that of a playlist
}

// entryRef is a segment, or a part of one, and the initialization segment that it needs, which has no duration.
type entryRef struct {
	Reference
	place
	init      *Reference
	within    time.Duration // of a part: from the beginning of its segment
	dependent bool          // it begins with a picture that needs others
	at        time.Time     // wall clock of its beginning; zero: unknown
	chunked   *mpd.Chunks   // of low-latency DASH: it can be asked for while it is made; nil: it cannot, or is not to be
	number    int64         // then: its turn (mpd.Chunks.Sequence)
}

// mediaList is a media playlist, with its first segment at time zero.
type mediaList struct {
	growth
	entries []entryRef
	live    bool
	inParts *mediaList // the same with the parts of segments; nil: they have none
}

// growth is how a playlist grows, and what that is to the player.
type growth struct {
	target   time.Duration
	holdBack time.Duration // how far behind the end the player is to stay
	pace     time.Duration // at which it grows
	next     *place        // a request for the playlist with this part in it waits for it; nil: none waits
	timed    bool          // an MPD has said where on the timeline each segment is
}

// end of the rendition on the timeline.
func (r *rendition) end() time.Duration {
	if len(r.list) == 0 {
		return 0
	}
	last := r.list[len(r.list)-1]
	return last.Start + last.Duration
}

// at is the index of the segment at a moment of the timeline: the next one between two, len(list) behind the end.
func (r *rendition) at(t time.Duration) int {
	i, _ := slices.BinarySearchFunc(r.list, t, func(e entryRef, t time.Duration) int {
		switch {
		case e.Start+e.Duration <= t:
			return -1
		case e.Start > t:
			return 1
		}
		return 0
	})
	return i
}

const (
	longestSegment = 86_400    // seconds
	maxOffset      = 1<<53 - 1 // of a byte range
)

// errHurried is why a live stream is not played.
var errHurried = errors.New("the stream has no end: live streams are played at speed 1 alone")

// parsePlaylist reads a playlist found at base. Of a master it returns the renditions, the lowest first, and those of
// audio; of a media playlist what it lists. A film that is shown speed times as fast has segments that are so much
// shorter, and bitrates so much higher. A media playlist imports variables of the master that names it.
func parsePlaylist(base string, imports playlist.Variables, data []byte, speed float64) (video, audio []*rendition, list *mediaList, err error) {
	at, err := url.Parse(base)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("playlist %s: %w", base, err)
	}
	master, media, err := playlist.ReadFrom(playlist.Source{URL: at, Imports: imports}, data)
	switch {
	case err != nil:
	case master != nil:
		if video, audio = masterOf(master, at, speed); len(video) == 0 {
			err = errors.New("no renditions")
		}
	case media.Live && speed != 1:
		err = errHurried
	default:
		if list = mediaOf(media, at, speed); len(list.entries) == 0 && !list.live {
			err = errors.New("no segments")
		}
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("playlist %s: %w", at.Path, err)
	}
	return video, audio, list, nil
}

func masterOf(p *playlist.Master, base *url.URL, speed float64) (video, audio []*rendition) {
	for _, v := range p.Variants {
		if v.URI != "" {
			video = append(video, &rendition{
				name: cmp.Or(v.Name, v.Resolution), url: playlist.Resolve(base, v.URI), bitrate: int64(float64(v.Bandwidth) * speed), audio: v.Audio, imports: p.Variables,
			})
		}
	}
	slices.SortStableFunc(video, func(a, b *rendition) int { return int(a.bitrate - b.bitrate) })
	for _, a := range p.Alternatives {
		if a.Type == "AUDIO" && a.URI != "" {
			audio = append(audio, &rendition{name: a.Name, url: playlist.Resolve(base, a.URI), audio: a.Group, imports: p.Variables})
		}
	}
	return video, audio
}

func mediaOf(p *playlist.Media, base *url.URL, speed float64) *mediaList {
	list := &mediaList{live: p.Live, growth: growth{target: max(leastTarget, p.Target), holdBack: p.HoldBack}}
	if list.holdBack == 0 {
		list.holdBack = holdTargets * list.target
	}
	list.pace = list.target
	add := appender{list: list, base: base, speed: speed}
	for i := range p.Segments {
		add.segment(&p.Segments[i], p.Sequence+int64(i))
	}
	if p.Live && p.LowLatency != nil && p.LowLatency.Blocks {
		list.inParts = partsOf(p, base, speed)
	}
	return list
}

// appender adds segments to a list.
type appender struct {
	list  *mediaList
	base  *url.URL
	speed float64

	object *playlist.Object
	init   *Reference
	at     time.Duration
}

func (a *appender) segment(s *playlist.Segment, sequence int64) {
	a.begin(s)
	if d, ok := a.duration(s.Duration); ok {
		a.add(s.Object, d, s.Gap, entryRef{place: place{sequence, whole}, at: s.At})
	}
}

// begin takes the initialization segment of what follows.
func (a *appender) begin(s *playlist.Segment) {
	if s.Init != a.object {
		r := reference(a.base, *s.Init)
		r.Start, a.init, a.object = a.at, &r, s.Init
	}
}

// duration is how long something is shown; ok is false where there is nothing to be seen of it.
func (a *appender) duration(seconds float64) (d time.Duration, ok bool) {
	if !(seconds > 0 && seconds <= longestSegment) {
		return 0, false
	}
	return max(time.Microsecond, time.Duration(seconds/a.speed*float64(time.Second)).Round(time.Microsecond)), true
}

func (a *appender) add(o playlist.Object, d time.Duration, gap bool, e entryRef) {
	e.Reference, e.init = reference(a.base, o), a.init
	e.Start, e.Duration = a.at, d
	a.at += d
	if !gap {
		a.list.entries = append(a.list.entries, e)
	}
}

func reference(base *url.URL, o playlist.Object) Reference {
	r := Reference{URL: playlist.Resolve(base, o.URI)}
	if o.Length > 0 && o.Length <= maxOffset && o.Offset >= 0 && o.Offset <= maxOffset {
		r.Ranged, r.First, r.Last = true, o.Offset, o.Offset+o.Length-1
	}
	return r
}
