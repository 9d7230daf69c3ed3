package playlist

import (
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
)

// Representation is what an MPD lists of one rendition. Its name, by mpd.Name, stands where HLS has the path of a media playlist: lists of
// packagers are beside it (spec/packaging.md).
type Representation struct {
	ID string
	Listed
	Indexes []Index // what names further segments
}

// Index is a range of an object with the names of further ranges. It is fetched, and given to Representation.Take.
type Index struct {
	Entry
	index mpd.Index
	key   string
}

// MaxIndex bounds an index, bytes; its reader sees to it.
const MaxIndex = mpd.MaxIndex

// mpd names what an MPD lists. It fails where nothing of it can be listed.
func (r resolver) mpd(path string, data []byte, now time.Time) (*Renditions, error) {
	m, err := mpd.Read(data, r.base, now)
	if err != nil {
		return nil, fmt.Errorf("playlist %s: %w", path, err)
	}
	out := &Renditions{}
	var refused []error
	if m.Refused != nil {
		refused = append(refused, m.Refused)
	}
	highest := map[string]int64{}
	for _, one := range m.Representations {
		rep := &Representation{ID: one.ID, Listed: Listed{Live: m.Live, Target: one.Target}}
		for _, s := range one.Segments {
			rep.Duration += s.Duration
			if e, ok := r.object(s.Object); ok {
				rep.Segments = append(rep.Segments, e)
			}
		}
		for _, x := range one.Indexes {
			if key, at, ok := r.named(x.URL, x.Absolute); ok && x.Last-x.First < MaxIndex {
				rep.Indexes = append(rep.Indexes, Index{Entry{Path: at, Ranged: true, First: x.First, Last: x.Last}, x, key})
			}
		}
		if len(one.Chunks) > 0 {
			rep.Chunked = &Chunked{one.Chunks, r}
		}
		if one.Refused != nil {
			refused = append(refused, one.Refused)
		}
		if len(rep.Segments)+len(rep.Indexes) > 0 || rep.Chunked != nil {
			out.Representations = append(out.Representations, rep)
			highest[one.Type] = max(highest[one.Type], one.Bandwidth)
		}
	}
	if len(out.Representations) == 0 && len(refused) > 0 {
		return nil, fmt.Errorf("playlist %s: %w", path, errors.Join(refused...))
	}
	out.Refused = errors.Join(refused...)
	out.Bitrate = highest["video"] + highest["audio"]
	return out, nil
}

func (r resolver) object(o mpd.Object) (Entry, bool) {
	key, path, ok := r.named(o.URL, o.Absolute)
	if !ok {
		return Entry{}, false
	}
	return entryOf(key, path, o.Ranged, o.First, o.Last)
}

// Take adds what an index names, to at most MaxSegments.
func (rep *Representation) Take(x Index, data []byte) error {
	named, err := x.index.Segments(data)
	if err != nil {
		return err
	}
	if len(rep.Segments)+len(named) > MaxSegments {
		return &mpd.Error{Code: mpd.TooLarge, Detail: fmt.Sprintf("more than %d segments", MaxSegments)}
	}
	for _, s := range named {
		if l, ok := entryOf(x.key, x.Path, true, s.First, s.Last); ok {
			rep.Segments = append(rep.Segments, l)
			rep.Target, rep.Duration = max(rep.Target, s.Duration), rep.Duration+s.Duration
		}
	}
	return nil
}
