package seed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	listingKept = 2 * time.Minute // a segment that left a live playlist
	firstLoad   = 8 * time.Second // how long a certificate request waits for the playlists
)

// What an index takes in memory beside its strings, bytes: measured, on 64 bits, with its places in maps and lists
// (TestAnIndexWeighsWhatItTakes).
const (
	refBytes     = 240
	listingBytes = 256
	indexBytes   = 4096
)

// index is what the playlists of one manifest list, for all titles that the manifest is of.
type index struct {
	catalog  *catalog
	site     *siteState
	manifest string
	ctx      context.Context // ends when the index is dropped
	cancel   context.CancelFunc
	kick     chan struct{} // a segment was asked for that is not listed

	mu      sync.Mutex
	bitrate int64               // guarded by mu: highest, bits/s; 0 unknown
	order   map[string]*listing // guarded by mu: by path of the playlist
	refs    map[segment.ID]*ref // guarded by mu; the refs are immutable
	bytes   int64               // guarded by mu: what refs and order weigh
	live    bool                // guarded by mu: some playlist has no end
	loads   uint64              // guarded by mu: rounds of loading that have ended
	failed  error               // guarded by mu: of the last round
	loaded  chan struct{}       // guarded by mu: closed when the next round has ended
}

// listing is what one playlist lists, in playback order.
type listing struct {
	ids  []segment.ID
	live bool
	seen time.Time
}

// ref is a listed segment.
type ref struct {
	id       segment.ID
	seg      listed
	playlist string
	index    int
	live     bool
	seen     time.Time
	object   int64      // bytes of an object that is too large to be shared whole; 0 otherwise or unknown
	whole    segment.ID // of the object that it is a part of; zero for what a playlist lists
}

// weight is what a ref takes in memory. A path that is the name too is one string (resolver.listed).
func (r *ref) weight() int64 {
	n := refBytes + int64(len(r.seg.name))
	if string(r.seg.name) != r.seg.path {
		n += int64(len(r.seg.path))
	}
	return n
}

func newIndex(ctx context.Context, c *catalog, site *siteState, manifest string) *index {
	ix := &index{
		catalog: c, site: site, manifest: manifest, kick: make(chan struct{}, 1), order: map[string]*listing{}, refs: map[segment.ID]*ref{}, loaded: make(chan struct{}),
	}
	ix.ctx, ix.cancel = context.WithCancel(ctx)
	return ix
}

// put and remove keep the weight. Under mu.
func (ix *index) put(r *ref) {
	ix.remove(r.id)
	ix.refs[r.id] = r
	ix.bytes += r.weight()
}

func (ix *index) remove(id segment.ID) {
	if old := ix.refs[id]; old != nil {
		ix.bytes -= old.weight()
		delete(ix.refs, id)
	}
}

func (ix *index) list(path string, l *listing) {
	ix.unlist(path)
	ix.order[path] = l
	ix.bytes += listingBytes + int64(len(path))
}

func (ix *index) unlist(path string) {
	if ix.order[path] != nil {
		ix.bytes -= listingBytes + int64(len(path))
		delete(ix.order, path)
	}
}

// take puts the segments of a media playlist into the index.
func (ix *index) take(path string, r *rendition) {
	now := ix.catalog.now()
	order := make([]segment.ID, 0, len(r.segments))
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i, l := range r.segments {
		id := segment.NewID(ix.site.name, l.name)
		object := int64(0)
		if old := ix.refs[id]; old != nil {
			object = old.object
		}
		ix.put(&ref{id: id, seg: l, playlist: path, index: i, live: r.live, seen: now, object: object})
		order = append(order, id)
	}
	ix.list(path, &listing{order, r.live, now})
	ix.live = ix.live || r.live // forget says when none is live any more
}

// forget drops what left the live playlists a while ago, and live playlists that are not named any more.
func (ix *index) forget() {
	now := ix.catalog.now()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.live = false
	for path, l := range ix.order {
		if l.live && now.Sub(l.seen) > listingKept {
			ix.unlist(path)
			continue
		}
		ix.live = ix.live || l.live
	}
	for id, r := range ix.refs {
		if r.live && now.Sub(r.seen) > listingKept && r.whole == (segment.ID{}) {
			ix.remove(id)
			ix.unlist(virtual(r))
		}
	}
	for id, r := range ix.refs {
		if r.whole != (segment.ID{}) && ix.refs[r.whole] == nil {
			ix.remove(id)
		}
	}
}

// virtual names the listing of an object's parts: a rendition of its own, in which they follow each other.
func virtual(r *ref) string { return "virtual " + string(r.seg.name) }

func (ix *index) lookup(id segment.ID) *ref {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.refs[id]
}

// find looks a segment up, and once more when the playlists have been loaded again.
func (ix *index) find(ctx context.Context, id segment.ID) *ref {
	ix.mu.Lock()
	r, loads, live, loaded := ix.refs[id], ix.loads, ix.live, ix.loaded
	ix.mu.Unlock()
	if r != nil {
		return r
	}
	if loads > 0 {
		select {
		case ix.kick <- struct{}{}:
		default:
		}
		if !live {
			return nil // a playlist with an end changes seldom; the next request finds it reloaded
		}
	}
	ix.wait(ctx, loaded)
	return ix.lookup(id)
}

// wait waits for the end of a round of loading, for as long as a viewer does.
func (ix *index) wait(ctx context.Context, loaded <-chan struct{}) {
	timer := time.NewTimer(firstLoad)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-ix.ctx.Done():
	case <-timer.C:
	case <-loaded:
	}
}

// isRead says whether the playlists have been had.
func (ix *index) isRead() bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.refs) > 0 || ix.loads > 0 && ix.failed == nil
}

// lacks says why a segment is not here.
func (ix *index) lacks() peer.NoneReason {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	var unpaid *unpaidError
	switch {
	case len(ix.refs) > 0:
		return peer.NoneUnknown
	case errors.As(ix.failed, &unpaid):
		return peer.NoneBudget
	}
	return peer.NoneOrigin // no playlist could be had yet
}

// tooLarge notes an object's length and lists its virtual segments.
func (ix *index) tooLarge(r *ref, object int64) {
	if r.seg.ranged {
		return
	}
	ix.divide(r, object)
	ix.catalog.weigh(ix)
}

func (ix *index) divide(r *ref, object int64) {
	key := r.seg.name.Key()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	whole := *r
	whole.object = object
	ix.put(&whole)
	var order []segment.ID
	path := virtual(r)
	for i, s := range segment.Virtual(object) {
		l := listed{name: segment.RangeName(key, s.First, s.Last), path: r.seg.path, ranged: true, first: s.First, last: s.Last}
		id := segment.NewID(ix.site.name, l.name)
		ix.put(&ref{id: id, seg: l, playlist: path, index: i, live: r.live, seen: r.seen, whole: r.id})
		order = append(order, id)
	}
	ix.list(path, &listing{ids: order})
}

// following returns the n segments behind r in its rendition.
func (ix *index) following(r *ref, n int) []*ref {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	l := ix.order[r.playlist]
	if l == nil {
		return nil
	}
	order, at := l.ids, r.index
	if at >= len(order) || order[at] != r.id { // the playlist was reloaded since
		at = slices.Index(order, r.id)
	}
	var out []*ref
	for i := at + 1; at >= 0 && i < len(order) && len(out) < n; i++ {
		if next := ix.refs[order[i]]; next != nil {
			out = append(out, next)
		}
	}
	return out
}

func (ix *index) highest() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.bitrate
}

func (ix *index) weight() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return indexBytes + ix.bytes
}

// await waits for the playlists, for as long as a viewer would, and says whether there is anything in them.
func (ix *index) await(ctx context.Context) bool {
	ix.mu.Lock()
	loads, loaded := ix.loads, ix.loaded
	ix.mu.Unlock()
	if loads == 0 {
		ix.wait(ctx, loaded)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.refs) > 0
}
