package seed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	titleKept    = 30 * time.Second // without being named by a tracker, and without links
	listingKept  = 2 * time.Minute  // a segment that left a live playlist
	firstLoad    = 8 * time.Second  // how long a certificate request waits for the playlists
	reloadVOD    = 10 * time.Second // least time between reloads of a playlist with an end
	reloadLive   = time.Second      // least time between reloads of a live one
	retryAfter   = 2 * time.Second  // a playlist that could not be had
	retryAtMost  = 30 * time.Second
	fetchTimeout = 30 * time.Second
)

// title is one swarm that the seed serves: the segments that its playlists list.
type title struct {
	service  *Service
	site     *siteState
	swarm    peer.ID
	manifest string
	cancel   context.CancelFunc
	kick     chan struct{} // somebody asked for a segment that is not listed

	mu      sync.Mutex
	viewers int                 // guarded by mu
	named   time.Time           // guarded by mu: when a tracker last named it
	seeds   []signal.ID         // guarded by mu: that serve the swarm, this one among them; nil: nobody said
	bitrate int64               // guarded by mu: highest, bits/s; 0 unknown
	order   map[string]*listing // guarded by mu: by path of the playlist
	refs    map[segment.ID]*ref // guarded by mu; the refs are immutable
	live    bool                // guarded by mu: some playlist has no end
	loads   uint64              // guarded by mu: rounds of loading that have ended
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

func (s *Service) newTitle(ctx context.Context, site *siteState, swarm peer.ID, manifest string) *title {
	ctx, cancel := context.WithCancel(ctx)
	t := &title{
		service: s, site: site, swarm: swarm, manifest: manifest, cancel: cancel, kick: make(chan struct{}, 1),
		named: s.cfg.Now(), order: map[string]*listing{}, refs: map[segment.ID]*ref{}, loaded: make(chan struct{}),
	}
	s.wg.Go(func() { t.follow(ctx) })
	return t
}

// follow loads the title's playlists and reloads them as long as the title is served.
func (t *title) follow(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		started := t.service.cfg.Now()
		wait, least, err := t.load(ctx)
		if err != nil {
			failures++
			wait = min(retryAfter<<min(failures-1, 4), retryAtMost)
			least = retryAfter
			if ctx.Err() == nil {
				t.service.cfg.Log.Warn("playlists could not be loaded", "site", t.site.name, "manifest", t.manifest, "error", err)
			}
		} else {
			failures = 0
			t.forget()
		}
		t.mu.Lock()
		t.loads++
		close(t.loaded)
		t.loaded = make(chan struct{})
		t.mu.Unlock()
		t.pause(ctx, started, wait, least)
	}
}

// pause waits until the next reload is due (0: none is), or until somebody asks for what is not listed and the least
// time between two reloads is over.
func (t *title) pause(ctx context.Context, started time.Time, wait, least time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return
	case <-due:
		return
	case <-t.kick:
	}
	if rest := least - t.service.cfg.Now().Sub(started); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// load fetches the manifest and what it names. It returns when to load again, 0 when nothing will change, and the
// least time before.
func (t *title) load(ctx context.Context) (wait, least time.Duration, err error) {
	m, r, path, err := t.fetchPlaylist(ctx, t.manifest)
	if err != nil {
		return 0, 0, err
	}
	least = reloadVOD
	note := func(r *rendition) {
		if r.live {
			d := max(r.target, reloadLive)
			if wait == 0 || d < wait {
				wait = d
			}
			least = reloadLive
		}
	}
	if r != nil {
		t.take(path, r)
		note(r)
		return wait, least, nil
	}
	t.mu.Lock()
	t.bitrate = m.bitrate
	t.mu.Unlock()
	var errs []error
	for _, p := range m.paths {
		_, r, path, err := t.fetchPlaylist(ctx, p)
		if err == nil && r == nil {
			err = fmt.Errorf("playlist %s is a master playlist within one", p)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.take(path, r)
		note(r)
	}
	if len(errs) == len(m.paths) && len(errs) > 0 {
		return 0, 0, errors.Join(errs...)
	}
	if len(errs) > 0 && wait == 0 {
		wait = retryAtMost // one rendition is missing: the others are served meanwhile
	}
	return wait, least, nil
}

func (t *title) fetchPlaylist(ctx context.Context, path string) (*master, *rendition, string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got, err := t.site.fetch(ctx, Fetch{Path: path, MaxBytes: maxPlaylist})
	if err != nil {
		return nil, nil, "", err
	}
	if got.Path != "" {
		path = got.Path // what a redirect led to is what references are relative to
	}
	m, r, err := parsePlaylist(t.site.rules, path, got.Data)
	return m, r, path, err
}

// take puts the segments of a media playlist into the index.
func (t *title) take(path string, r *rendition) {
	now := t.service.cfg.Now()
	order := make([]segment.ID, 0, len(r.segments))
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, l := range r.segments {
		id := segment.NewID(t.site.name, l.name)
		object := int64(0)
		if old := t.refs[id]; old != nil {
			object = old.object
		}
		t.refs[id] = &ref{id: id, seg: l, playlist: path, index: i, live: r.live, seen: now, object: object}
		order = append(order, id)
	}
	t.order[path] = &listing{order, r.live, now}
	t.live = t.live || r.live // forget says when none is live any more
}

// forget drops what left the live playlists a while ago, and live playlists that are not named any more.
func (t *title) forget() {
	now := t.service.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = false
	for path, l := range t.order {
		if l.live && now.Sub(l.seen) > listingKept {
			delete(t.order, path)
			continue
		}
		t.live = t.live || l.live
	}
	for id, r := range t.refs {
		if r.live && now.Sub(r.seen) > listingKept && r.whole == (segment.ID{}) {
			delete(t.refs, id)
			delete(t.order, virtual(r))
		}
	}
	for id, r := range t.refs {
		if r.whole != (segment.ID{}) && t.refs[r.whole] == nil {
			delete(t.refs, id)
		}
	}
}

// virtual names the listing of an object's parts: a rendition of its own, in which they follow each other.
func virtual(r *ref) string { return "virtual " + string(r.seg.name) }

func (t *title) lookup(id segment.ID) *ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refs[id]
}

// find looks a segment up, and once more when the playlists have been loaded again: a live viewer may be ahead of us.
func (t *title) find(ctx context.Context, id segment.ID) *ref {
	t.mu.Lock()
	r, loads, live, loaded := t.refs[id], t.loads, t.live, t.loaded
	t.mu.Unlock()
	if r != nil {
		return r
	}
	if loads > 0 {
		select {
		case t.kick <- struct{}{}:
		default:
		}
		if !live {
			return nil // a playlist with an end changes seldom; who asks again finds it reloaded
		}
	}
	timer := time.NewTimer(firstLoad)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-loaded:
	}
	return t.lookup(id)
}

// tooLarge notes an object's length and lists its virtual segments.
func (t *title) tooLarge(r *ref, object int64) {
	key, ranged := r.seg.name.Key(), r.seg.ranged
	if ranged {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := *r
	whole.object = object
	t.refs[r.id] = &whole
	var order []segment.ID
	path := virtual(r)
	for i, s := range segment.Virtual(object) {
		l := listed{name: segment.RangeName(key, s.First, s.Last), path: r.seg.path, ranged: true, first: s.First, last: s.Last}
		id := segment.NewID(t.site.name, l.name)
		t.refs[id] = &ref{id: id, seg: l, playlist: path, index: i, live: r.live, seen: r.seen, whole: r.id}
		order = append(order, id)
	}
	t.order[path] = &listing{ids: order}
}

// following returns the n segments behind r in its rendition.
func (t *title) following(r *ref, n int) []*ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.order[r.playlist]
	if l == nil {
		return nil
	}
	order, at := l.ids, r.index
	if at >= len(order) || order[at] != r.id { // the playlist was reloaded since
		at = slices.Index(order, r.id)
	}
	var out []*ref
	for i := at + 1; at >= 0 && i < len(order) && len(out) < n; i++ {
		if next := t.refs[order[i]]; next != nil {
			out = append(out, next)
		}
	}
	return out
}

func (t *title) audience() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.viewers
}

// name notes that a tracker wants the title. Offers name it too, without saying who serves it.
func (t *title) name(viewers int, seeds []signal.ID) {
	now := t.service.cfg.Now()
	t.mu.Lock()
	t.viewers, t.named = viewers, now
	if seeds != nil {
		t.seeds = seeds
	}
	t.mu.Unlock()
}

// listedSeeds are those that serve the swarm, as its home last said.
func (t *title) listedSeeds() []signal.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seeds
}

func (t *title) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.refs) == 0
}

func (t *title) highest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bitrate
}

func (t *title) stale(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Sub(t.named) > titleKept
}
