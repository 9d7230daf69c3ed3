package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// MasterName is the file name of a stream's master playlist.
const MasterName = "master.m3u8"

// Replay shows a film that is there already as a stream without end, again and again. A segment is published at the end of the time
// that it shows. Times and numbers count from the Unix epoch: two replays of one film publish the same, and so does one that was
// started again.
type Replay struct {
	Window time.Duration        // length of the playlists; at least three segments
	Late   func() time.Duration // by which publication is late at present; nil: never

	film     fs.FS
	master   []byte
	lists    []replayed
	begins   []time.Duration // of the segments, from the film's beginning
	length   time.Duration   // of the film
	longest  time.Duration   // segment
	oldest   int64           // number of the first segment that is still there
	complete int64           // number behind the last segment that is published
}

// replayed is one playlist of the film.
type replayed struct {
	file     string
	segments []playlist.Segment
}

// leastWindow is how many segments a playlist has at least: a player starts three behind the end (RFC 8216, section 6.3.3).
const leastWindow = 3

// OpenReplay reads the playlists of a film, with its master playlist in the folder.
func OpenReplay(film fs.FS) (*Replay, error) {
	r := &Replay{film: film}
	var err error
	if r.master, err = fs.ReadFile(film, MasterName); err != nil {
		return nil, fmt.Errorf("live: read the film: %w", err)
	}
	master, _, err := playlist.Read(r.master)
	switch {
	case err != nil:
		return nil, fmt.Errorf("live: %s: %w", MasterName, err)
	case master == nil:
		return nil, fmt.Errorf("live: %s is no master playlist", MasterName)
	}
	seen := map[string]bool{"": true}
	var uris []string
	for _, v := range master.Variants {
		uris = append(uris, v.URI)
	}
	for _, a := range master.Alternatives {
		uris = append(uris, a.URI)
	}
	for _, uri := range uris {
		if !seen[uri] {
			seen[uri] = true
			if err := r.add(uri); err != nil {
				return nil, fmt.Errorf("live: %s: %w", uri, err)
			}
		}
	}
	if len(r.lists) == 0 {
		return nil, fmt.Errorf("live: %s lists no playlist", MasterName)
	}
	return r, nil
}

// add reads a media playlist. The first one is what the stream is timed by; the others have to have as many segments.
func (r *Replay) add(file string) error {
	if !fs.ValidPath(file) {
		return errors.New("the playlist is not in the film's folder")
	}
	text, err := fs.ReadFile(r.film, file)
	if err != nil {
		return err
	}
	_, media, err := playlist.Read(text)
	switch {
	case err != nil:
		return err
	case media == nil || len(media.Segments) == 0:
		return errors.New("the playlist has no segments")
	case media.Live:
		return errors.New("the playlist has no end: a live stream cannot be replayed")
	}
	for _, s := range media.Segments {
		if whole := s.Length == 0 && (s.Init == nil || s.Init.Length == 0); !whole || s.Gap || s.Duration <= 0 {
			return errors.New("a replay takes segments that are files of their own and have a duration")
		}
		if !fs.ValidPath(path.Join(path.Dir(file), s.URI)) {
			return fmt.Errorf("segment %s is not in the film's folder", s.URI)
		}
	}
	if r.begins == nil {
		for _, s := range media.Segments {
			d := time.Duration(s.Duration * float64(time.Second)).Round(time.Microsecond)
			r.begins, r.length, r.longest = append(r.begins, r.length), r.length+d, max(r.longest, d)
		}
	}
	if len(media.Segments) != len(r.begins) {
		return fmt.Errorf("the playlist has %d segments and the first one has %d: renditions are to be cut at the same places", len(media.Segments), len(r.begins))
	}
	r.lists = append(r.lists, replayed{file, media.Segments})
	return nil
}

// begin is when a segment begins.
func (r *Replay) begin(number int64) time.Time {
	n := int64(len(r.begins))
	return time.UnixMicro((number/n)*r.length.Microseconds() + r.begins[number%n].Microseconds())
}

// edge is the number of the segment that goes on at a moment: what is before it has been shown.
func (r *Replay) edge(at time.Time) int64 {
	micros, length := at.UnixMicro(), r.length.Microseconds()
	within := time.Duration(micros%length) * time.Microsecond
	i, there := slices.BinarySearch(r.begins, within)
	if !there {
		i--
	}
	return micros/length*int64(len(r.begins)) + int64(i)
}

// segments is how many a playlist has.
func (r *Replay) segments() int64 { return max(leastWindow, int64(r.Window/r.longest)) }

// now is the time by which the source publishes.
func (r *Replay) now() time.Time {
	if r.Late == nil {
		return time.Now()
	}
	return time.Now().Add(-r.Late())
}

// lookEvery is how often a source looks whether it is late.
const lookEvery = 100 * time.Millisecond

// Run pushes the stream until ctx ends, and returns why it could not. The master playlist comes last: where it is, the stream can be
// played.
func (r *Replay) Run(ctx context.Context, to Target) error {
	err := r.begun(ctx, to)
	for err == nil {
		wait := r.begin(r.complete + 1).Sub(r.now())
		if r.Late != nil {
			wait = min(wait, lookEvery)
		}
		if !sleep.For(ctx, wait) {
			return nil
		}
		if r.edge(r.now()) > r.complete {
			err = r.advance(ctx, to)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begun pushes what has been published at the start: a whole playlist.
func (r *Replay) begun(ctx context.Context, to Target) error {
	for _, l := range r.lists {
		for i, s := range l.segments {
			if s.Init == nil || i > 0 && l.segments[i-1].Init == s.Init {
				continue
			}
			if err := r.copy(ctx, to, path.Join(path.Dir(l.file), s.Init.URI), path.Join(path.Dir(l.file), s.Init.URI)); err != nil {
				return err
			}
		}
	}
	r.complete = r.edge(r.now()) - r.segments()
	r.oldest = r.complete
	if err := r.advance(ctx, to); err != nil {
		return err
	}
	return to.put(ctx, MasterName, r.master)
}

// advance publishes what has been shown since the last time, and removes what has left the playlists for as long as they are.
func (r *Replay) advance(ctx context.Context, to Target) error {
	edge := r.edge(r.now())
	for number := max(r.complete, edge-r.segments()); number < edge; number++ {
		for _, l := range r.lists {
			if err := r.copy(ctx, to, path.Join(path.Dir(l.file), l.segments[number%int64(len(r.begins))].URI), l.name(number)); err != nil {
				return err
			}
		}
	}
	for _, l := range r.lists {
		if err := to.put(ctx, l.file, r.text(l, edge)); err != nil {
			return err
		}
	}
	skipped := r.complete
	r.complete = edge
	for last := edge - 2*r.segments() - 1; r.oldest < last; r.oldest++ {
		if r.oldest >= skipped { // the machine slept; it has not been there
			continue
		}
		for _, l := range r.lists {
			if err := to.remove(ctx, l.name(r.oldest)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Replay) copy(ctx context.Context, to Target, from, as string) error {
	data, err := fs.ReadFile(r.film, from)
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return to.put(ctx, as, data)
}

// name is the file of a segment: no two segments of a stream have the same.
func (l *replayed) name(number int64) string {
	uri := l.segments[number%int64(len(l.segments))].URI
	return path.Join(path.Dir(l.file), fmt.Sprintf("live-%d%s", number, path.Ext(uri)))
}

// text is a playlist that ends with the segment before edge.
func (r *Replay) text(l replayed, edge int64) []byte {
	n := int64(len(r.begins))
	first := edge - r.segments()
	breaks := first / n
	if first%n == 0 {
		breaks-- // the break is in the playlist
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-TARGETDURATION:%d\n#EXT-X-MEDIA-SEQUENCE:%d\n#EXT-X-DISCONTINUITY-SEQUENCE:%d\n",
		max(1, int(math.Round(r.longest.Seconds()))), first, breaks)
	var init *playlist.Object
	for number := first; number < edge; number++ {
		s := l.segments[number%n]
		if number%n == 0 {
			b.WriteString("#EXT-X-DISCONTINUITY\n")
		}
		if s.Init != nil && (s.Init != init || number%n == 0) {
			init = s.Init
			fmt.Fprintf(&b, "#EXT-X-MAP:URI=%q\n", init.URI)
		}
		fmt.Fprintf(&b, "#EXT-X-PROGRAM-DATE-TIME:%s\n#EXTINF:%.6f,\n%s\n", r.begin(number).UTC().Format("2006-01-02T15:04:05.000Z"), s.Duration, path.Base(l.name(number)))
	}
	return []byte(b.String())
}
