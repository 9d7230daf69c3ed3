package seed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const titleKept = 30 * time.Second // without being named by a tracker, and without links

// title is one swarm that the seed serves. What its playlists list is in the index of its manifest, which other titles may share.
type title struct {
	catalog *catalog
	site    *siteState
	swarm   swarm.ID
	links   atomic.Int32 // of viewers

	mu       sync.Mutex
	manifest string        // guarded by mu
	next     string        // guarded by mu: the swarm's home has chosen it instead, and it takes the manifest's place when it has been read; empty: none
	viewers  int           // guarded by mu
	named    time.Time     // guarded by mu: when a tracker last named it
	seeds    []signal.ID   // guarded by mu: that serve the swarm, this one among them; nil: no home has said
	cost     int64         // guarded by mu: bytes fetched for its viewers, and sent to them by relays
	balance  swarm.Balance // guarded by mu
}

func newTitle(c *catalog, site *siteState, swarm swarm.ID, manifest string) *title {
	return &title{catalog: c, site: site, swarm: swarm, manifest: manifest, named: c.now()}
}

// index is what the playlists list, if it is in memory.
func (t *title) index() *index {
	manifest, _ := t.manifests()
	return t.catalog.peek(manifestID{t.site.name, manifest})
}

// manifests are the one that is followed and the one that is to take its place, if any.
func (t *title) manifests() (now, next string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.manifest, t.next
}

// choose notes which manifest the swarm's home has chosen.
func (t *title) choose(manifest string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next = manifest; manifest == t.manifest {
		t.next = ""
	}
}

// want has the playlists followed for a party, which is charged for it; nil when there is no room for them.
func (t *title) want(p party) *index {
	t.chosen(p)
	manifest, _ := t.manifests()
	return t.catalog.want(t.site, manifest, p)
}

// chosen has a manifest read, for a party, that is to take the place of the one that is followed, and goes over to it once it has
// been read: a majority for one that cannot be read takes nothing away. nil: there is none.
func (t *title) chosen(p party) *index {
	_, next := t.manifests()
	if next == "" {
		return nil
	}
	ix := t.catalog.want(t.site, next, p)
	if ix != nil && ix.isRead() {
		t.mu.Lock()
		if t.next == next {
			t.manifest, t.next = next, ""
		}
		t.mu.Unlock()
	}
	return ix
}

func (t *title) lookup(id segment.ID) *ref {
	if ix := t.index(); ix != nil {
		return ix.lookup(id)
	}
	return nil
}

// find looks a segment up, and once more when the playlists have been loaded again: a live viewer may be ahead of us. Without
// one, why says what a viewer is told.
func (t *title) find(ctx context.Context, id segment.ID, p party) (r *ref, why peer.NoneReason) {
	if ix := t.chosen(p); ix != nil {
		if r = ix.find(ctx, id); r != nil {
			return r, 0
		}
	}
	ix := t.want(p)
	if ix == nil {
		return nil, peer.NoneBudget
	}
	if r = ix.find(ctx, id); r != nil {
		return r, 0
	}
	return nil, ix.lacks()
}

// following returns the n segments behind r in its rendition.
func (t *title) following(r *ref, n int) []*ref {
	if ix := t.index(); ix != nil {
		return ix.following(r, n)
	}
	return nil
}

// tooLarge notes an object's length and lists its virtual segments.
func (t *title) tooLarge(r *ref, object int64) {
	if ix := t.index(); ix != nil {
		ix.tooLarge(r, object)
	}
}

// fetch asks the origin for a segment, of a manifest for a few at a time.
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
func (t *title) highest() int64 {
	if ix := t.index(); ix != nil {
		return ix.highest()
	}
	return 0
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
