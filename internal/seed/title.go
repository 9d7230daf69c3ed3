package seed

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const titleKept = 30 * time.Second // without being named by a tracker, and without links

// title is one swarm that the seed serves. What its playlists list is in the indexes of its manifests, which other titles may share.
type title struct {
	catalog *catalog
	site    *siteState
	swarm   swarm.ID
	links   atomic.Int32 // of viewers

	mu       sync.Mutex
	manifest string        // guarded by mu
	next     string        // guarded by mu: the swarm's home has chosen it instead, and it takes the manifest's place when it has been read; empty: none
	beside   string        // guarded by mu: of the other format, read when something is wanted that the first lacks; empty: none
	viewers  int           // guarded by mu
	named    time.Time     // guarded by mu: when a tracker last named it
	seeds    []signal.ID   // guarded by mu: that serve the swarm, this one among them; nil: no home has said
	cost     int64         // guarded by mu: bytes fetched for its viewers, and sent to them by relays
	balance  swarm.Balance // guarded by mu
}

func newTitle(c *catalog, site *siteState, swarm swarm.ID, manifest string) *title {
	return &title{catalog: c, site: site, swarm: swarm, manifest: manifest, named: c.now()}
}

// manifests are those that are followed, in the order in which they are looked at: the first one, the one that is to take its place, if any,
// and the one beside it, if any.
func (t *title) manifests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(make([]string, 0, 3), t.manifest)
	for _, one := range []string{t.next, t.beside} {
		if one != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// indexes are what the playlists of its manifests list, of those that are in memory.
func (t *title) indexes() iter.Seq[*index] {
	return func(yield func(*index) bool) {
		for _, manifest := range t.manifests() {
			if ix := t.peek(manifest); ix != nil && !yield(ix) {
				return
			}
		}
	}
}

// index is the first of them; nil: none is in memory.
func (t *title) index() *index {
	for ix := range t.indexes() {
		return ix
	}
	return nil
}

func (t *title) peek(manifest string) *index {
	return t.catalog.peek(manifestID{t.site.name, manifest})
}

// choose notes which manifests the swarm's home has chosen.
func (t *title) choose(manifest, beside string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beside = beside
	if t.next = manifest; manifest == t.manifest {
		t.next = ""
	}
}

// adds takes the one that is of the other format than the first as the one beside, if the title has none. A home that is new to the swarm may
// have heard few of its members: what it names takes nothing away.
func (t *title) adds(manifests ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range manifests {
		if t.next == "" && t.beside == "" && one != "" && swarm.IsDASH(one) != swarm.IsDASH(t.manifest) {
			t.beside = one
		}
	}
}

// want has the playlists of the first manifest followed for a party, which is charged for it; nil when there is no room for them.
func (t *title) want(p party) *index {
	t.chosen(p)
	return t.wantOf(t.manifests()[0], p)
}

// wantOf is want of one of the manifests.
func (t *title) wantOf(manifest string, p party) *index {
	return t.catalog.want(t.site, manifest, p)
}

// wantUnlisted has the manifests followed for a party that wants what none lists yet: the one beside once the first one has been loaded, or
// could not be.
func (t *title) wantUnlisted(p party) {
	if ix := t.want(p); ix == nil || ix.isFirst() {
		return
	}
	for _, manifest := range t.manifests()[1:] {
		t.wantOf(manifest, p)
	}
}

// chosen has a manifest read, for a party, that is to take the place of the one that is followed, and goes over to it once it has
// been read: a majority for one that cannot be read takes nothing away.
func (t *title) chosen(p party) {
	t.mu.Lock()
	next := t.next
	t.mu.Unlock()
	if next == "" {
		return
	}
	if ix := t.wantOf(next, p); ix != nil && ix.isRead() {
		t.mu.Lock()
		if t.next == next {
			t.manifest, t.next = next, ""
		}
		t.mu.Unlock()
	}
}

func (t *title) lookup(id segment.ID) *ref {
	for ix := range t.indexes() {
		if r := ix.lookup(id); r != nil {
			return r
		}
	}
	return nil
}

// find looks a segment up, and once more when the playlists have been loaded again: a live viewer may be ahead of us. The manifest
// beside the first one is loaded, and loaded again, for what the first one does not list by then; what one of them that is in memory comes to
// list meanwhile is found at once. Without a segment, why says what a viewer is told.
func (t *title) find(ctx context.Context, id segment.ID, p party) (r *ref, why peer.NoneReason) {
	if t.want(p) == nil {
		return nil, peer.NoneBudget
	}
	all := t.manifests()
	for _, manifest := range all {
		if ix := t.peek(manifest); ix != nil {
			if r = ix.lookup(id); r != nil {
				t.wantOf(manifest, p)
				return r, 0
			}
		}
	}
	var watches sync.WaitGroup
	defer watches.Wait()
	ctx, cancel := context.WithTimeout(ctx, firstLoad)
	defer cancel()
	for _, manifest := range all[1:] {
		if ix := t.peek(manifest); ix != nil {
			watches.Go(func() {
				if ix.wait(ctx, func(uint64) bool { return ix.lookup(id) != nil }); ix.lookup(id) != nil {
					cancel() // the ones before are not waited for
				}
			})
		}
	}
	for i, manifest := range all {
		ix := t.wantOf(manifest, p)
		if ix == nil {
			return nil, peer.NoneBudget
		}
		if r = ix.find(ctx, id); r != nil {
			return r, 0
		}
		if lacks := ix.lacks(); i == 0 || lacks == peer.NoneBudget {
			why = lacks
		}
	}
	return nil, why
}

// stream is the index that lists a low-latency stream, and what that says of it; nil: none in memory lists it.
func (t *title) stream(id segment.ID) (ix *index, path string, part time.Duration, chunked *playlist.Chunked) {
	for ix := range t.indexes() {
		if path, part, chunked = ix.lowLatency(id); path != "" {
			return ix, path, part, chunked
		}
	}
	return nil, "", 0, nil
}

// follows says whether a manifest is one that is followed.
func (t *title) follows(manifest string) bool { return slices.Contains(t.manifests(), manifest) }

// following returns the n segments behind r in its rendition.
func (t *title) following(r *ref, n int) []*ref {
	for ix := range t.indexes() {
		if all := ix.following(r, n); all != nil {
			return all
		}
	}
	return nil
}

// tooLarge notes an object's length and lists its virtual segments.
func (t *title) tooLarge(r *ref, object int64) {
	for ix := range t.indexes() {
		if own := ix.lookup(r.id); own != nil {
			ix.tooLarge(own, object)
		}
	}
}

// fetch asks the origin for a segment, of a title for a few at a time.
func (t *title) fetch(ctx context.Context, f Fetch) (*Fetched, error) {
	if ix := t.index(); ix != nil {
		select {
		case ix.fetching <- struct{}{}:
			defer func() { <-ix.fetching }()
		case <-ctx.Done():
			return nil, &FetchError{Outcome: OutcomeTimeout, Path: f.Path, Cause: ctx.Err()}
		}
	}
	return t.site.fetch(ctx, f)
}

// highest is the bitrate of the best rendition, bits/s; 0 unknown.
func (t *title) highest() (bitrate int64) {
	for ix := range t.indexes() {
		bitrate = max(bitrate, ix.highest())
	}
	return bitrate
}

func (t *title) audience() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.viewers
}

// costs notes bytes that an operator's servers send beside what viewers get.
func (t *title) costs(bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost += int64(bytes)
}

// weigh compares what the title has cost with what its viewers had from each other, by its home's word; nil: the home cannot say. It
// says whether the title has begun to rest, or has ended to.
func (t *title) weigh(credited *int64, viewers int) (changed, rests bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if credited == nil || t.site.rules.Config().Policy.CostlyTitles != site.CostlyRest {
		changed = t.balance.Rests()
		t.balance = swarm.Balance{}
		return changed, false
	}
	changed = t.balance.Look(swarm.Flows{Cost: t.cost, Saved: *credited}, viewers, t.catalog.now())
	return changed, t.balance.Rests()
}

// rests says whether nothing is fetched for the title's viewers now (spec/cluster.md, "What peers save").
func (t *title) rests() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.balance.Rests()
}

// name notes that a tracker wants the title. Offers name it too, without saying which seeds serve it.
func (t *title) name(viewers int, seeds []signal.ID) {
	now := t.catalog.now()
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

func (t *title) stale(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Sub(t.named) > titleKept
}
