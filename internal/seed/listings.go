package seed

import (
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const listingKept = 2 * time.Minute // a segment that left a live playlist

// What an index takes in memory beside its strings, bytes: measured, on 64 bits, with its places in maps and lists
// (TestAnIndexWeighsWhatItTakes).
const (
	refBytes     = 248
	listingBytes = 256
	indexBytes   = 4096
)

// listings are the segments that playlists of one site list, with what they weigh.
type listings struct {
	site string
	key  func(path string) (string, error) // of a playlist; nil: no playlist is a stream of parts

	mu      sync.Mutex
	bitrate int64                 // guarded by mu: highest, bits/s; 0 unknown
	defined playlist.Variables    // guarded by mu: by the master playlist; they are not changed
	order   map[string]*listing   // guarded by mu: by path of the playlist
	streams map[segment.ID]string // guarded by mu: paths of low-latency playlists, by the ID of their stream
	refs    map[segment.ID]*ref   // guarded by mu; the refs are immutable
	bytes   int64                 // guarded by mu: what refs and order weigh
	live    bool                  // guarded by mu: some playlist has no end
}

// listing is what one playlist lists, in playback order.
type listing struct {
	ids  []segment.ID
	live bool
	seen time.Time
	part time.Duration // longest part of a low-latency stream whose origin lets requests wait, or about a chunk; 0: it is none

	chunked *playlist.Chunked // of a stream of chunks; nil: it is none
}

// weight is what a listing at a path takes in memory.
func (o *listing) weight(path string) int64 {
	n := listingBytes + int64(len(path))
	if o.chunked != nil {
		n += o.chunked.Weight()
	}
	return n
}

// ref is a listed segment.
type ref struct {
	id       segment.ID
	seg      playlist.Entry
	playlist string
	index    int
	live     bool
	seen     time.Time
	object   int64      // bytes of an object that is too large to be shared whole; 0 otherwise or unknown
	whole    segment.ID // of the object that it is a part of; zero for what a playlist lists
}

// weight is what a ref takes in memory. A path that is the name too is one string (resolver.listed).
func (r *ref) weight() int64 {
	n := refBytes + int64(len(r.seg.Name))
	if string(r.seg.Name) != r.seg.Path {
		n += int64(len(r.seg.Path))
	}
	return n
}

func newListings(site string) *listings {
	return &listings{site: site, order: map[string]*listing{}, streams: map[segment.ID]string{}, refs: map[segment.ID]*ref{}}
}

// put and remove keep the weight. Under mu.
func (l *listings) put(r *ref) {
	l.remove(r.id)
	l.refs[r.id] = r
	l.bytes += r.weight()
}

func (l *listings) remove(id segment.ID) {
	if old := l.refs[id]; old != nil {
		l.bytes -= old.weight()
		delete(l.refs, id)
	}
}

func (l *listings) list(path string, one *listing) {
	l.unlist(path)
	l.order[path] = one
	l.bytes += one.weight(path)
}

func (l *listings) unlist(path string) {
	if old := l.order[path]; old != nil {
		l.bytes -= old.weight(path)
		delete(l.order, path)
	}
}

// take puts the segments of a media playlist into the listings.
func (l *listings) take(path string, r *playlist.Listed, now time.Time) {
	order := make([]segment.ID, 0, len(r.Segments))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, one := range r.Segments {
		id := segment.NewID(l.site, one.Name)
		object := int64(0)
		if old := l.refs[id]; old != nil {
			object = old.object
		}
		l.put(&ref{id: id, seg: one, playlist: path, index: i, live: r.Live, seen: now, object: object})
		order = append(order, id)
	}
	one := &listing{ids: order, live: r.Live, seen: now}
	if p := r.Parts; p != nil && p.Blocks && r.Live {
		one.part = p.Target
	}
	if one.chunked = r.Chunked; one.chunked != nil {
		one.part = one.chunked.Duration() / chunksOfSegment
	}
	l.list(path, one)
	l.nameStream(path, one)
	l.live = l.live || r.Live // forget says when none is live any more
}

// nameStream notes the stream that a low-latency playlist is. Under mu.
func (l *listings) nameStream(path string, one *listing) {
	if one.part == 0 || l.key == nil || len(l.streams) >= playlist.MaxRenditions {
		return
	}
	if key, err := l.key(path); err == nil {
		l.streams[segment.NewID(l.site, segment.WholeName(key))] = path
	}
}

// lowLatency is the playlist, or the representation, of a low-latency stream, and its longest part; empty: none is listed. Chunked is not nil
// of a stream of chunks.
func (l *listings) lowLatency(stream segment.ID) (path string, part time.Duration, chunked *playlist.Chunked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path = l.streams[stream]
	if one := l.order[path]; one != nil && one.part > 0 {
		return path, one.part, one.chunked
	}
	return "", 0, nil
}

// forget drops what left the live playlists a while ago, and live playlists that are not named any more.
func (l *listings) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = false
	for stream, path := range l.streams {
		if l.order[path] == nil {
			delete(l.streams, stream)
		}
	}
	for path, one := range l.order {
		if one.live && now.Sub(one.seen) > listingKept {
			l.unlist(path)
			continue
		}
		l.live = l.live || one.live
	}
	for id, r := range l.refs {
		if r.live && now.Sub(r.seen) > listingKept && r.whole == (segment.ID{}) {
			l.remove(id)
			l.unlist(virtual(r))
		}
	}
	for id, r := range l.refs {
		if r.whole != (segment.ID{}) && l.refs[r.whole] == nil {
			l.remove(id)
		}
	}
}

// virtual names the listing of an object's parts: a rendition of its own, in which they follow each other.
func virtual(r *ref) string { return "virtual " + string(r.seg.Name) }

func (l *listings) lookup(id segment.ID) *ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refs[id]
}

// divide notes an object's length and lists its virtual segments.
func (l *listings) divide(r *ref, object int64) {
	key := r.seg.Name.Key()
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := *r
	whole.object = object
	l.put(&whole)
	var order []segment.ID
	path := virtual(r)
	for i, s := range segment.Virtual(object) {
		one := playlist.Entry{Name: segment.RangeName(key, s.First, s.Last), Path: r.seg.Path, Ranged: true, First: s.First, Last: s.Last}
		id := segment.NewID(l.site, one.Name)
		l.put(&ref{id: id, seg: one, playlist: path, index: i, live: r.live, seen: r.seen, whole: r.id})
		order = append(order, id)
	}
	l.list(path, &listing{ids: order})
}

// following returns the n segments behind r in its rendition.
func (l *listings) following(r *ref, n int) []*ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.order[r.playlist]
	if of == nil {
		return nil
	}
	order, at := of.ids, r.index
	if at >= len(order) || order[at] != r.id { // the playlist was reloaded since
		at = slices.Index(order, r.id)
	}
	var out []*ref
	for i := at + 1; at >= 0 && i < len(order) && len(out) < n; i++ {
		if next := l.refs[order[i]]; next != nil {
			out = append(out, next)
		}
	}
	return out
}

func (l *listings) highest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bitrate
}

func (l *listings) weight() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return indexBytes + l.bytes + l.defined.Weight()
}

func (l *listings) setMaster(bitrate int64, defined playlist.Variables) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bitrate, l.defined = bitrate, defined
}

// imports are the variables that media playlists may import.
func (l *listings) imports() playlist.Variables {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.defined
}

// holds says whether anything is listed, and whether more may follow.
func (l *listings) holds() (any, live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.refs) > 0, l.live
}
