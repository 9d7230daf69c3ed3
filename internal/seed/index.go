package seed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const (
	firstLoad    = 8 * time.Second  // how long a certificate request waits for the playlists
	reloadVOD    = 10 * time.Second // least time between reloads of a playlist with an end
	reloadLive   = time.Second      // of a live one; for a segment that is not listed half of its target, if that is less
	retryAfter   = 2 * time.Second  // a playlist that could not be had
	retryAtMost  = 30 * time.Second
	fetchTimeout = 30 * time.Second
	// followedFor is how long a live manifest is reloaded after it was last wanted. Then it waits for the next one that wants it.
	followedFor = 30 * time.Second
)

// index is what the playlists of one manifest list, for all titles that the manifest is of. It loads them as long as it is kept.
type index struct {
	*listings
	*rounds
	signed   signedLists
	catalog  *catalog
	site     *siteState
	manifest string
	ctx      context.Context // ends when the index is dropped
	cancel   context.CancelFunc
	kick     chan struct{} // a segment was asked for that is not listed, or what was not wanted any more is wanted again
	fetching chan struct{} // bounds how many segments the origin is asked for at a time
}

// unpaidError is a playlist that was not loaded because the parties that want it have no budget left for it.
type unpaidError struct{ scope string }

func (e *unpaidError) Error() string { return "the budget of playlist loads is spent: " + e.scope }

func newIndex(ctx context.Context, c *catalog, site *siteState, manifest string) *index {
	ix := &index{
		listings: newListings(site.name), rounds: newRounds(manifest), signed: signedLists{of: map[string]*signedList{}},
		catalog: c, site: site, manifest: manifest, kick: make(chan struct{}, 1), fetching: make(chan struct{}, maxFetching),
	}
	ix.key = site.rules.KeyOfPath
	ix.ctx, ix.cancel = context.WithCancel(ctx)
	return ix
}

// find looks a segment up, and once more when the playlists have been loaded again.
func (ix *index) find(ctx context.Context, id segment.ID) *ref {
	loads, _, _ := ix.round() // before it is looked: a round may end in between
	if r := ix.lookup(id); r != nil {
		return r
	}
	if loads > 0 {
		select {
		case ix.kick <- struct{}{}:
		default:
		}
		if _, live := ix.holds(); !live {
			return nil // a playlist with an end changes seldom; the next request finds it reloaded
		}
	}
	ix.wait(ctx, func(now uint64) bool { return now > loads || ix.lookup(id) != nil })
	return ix.lookup(id)
}

// wait waits until over, which is asked again after each load, and told how many rounds have ended. It waits for as long as a viewer does.
func (ix *index) wait(ctx context.Context, over func(loads uint64) bool) {
	timer := time.NewTimer(firstLoad)
	defer timer.Stop()
	for {
		loads, changed, _ := ix.round() // before it is asked: a load may end in between
		if over(loads) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ix.ctx.Done():
			return
		case <-timer.C:
			return
		case <-changed:
		}
	}
}

// await waits for the playlists, for as long as a viewer would, and says whether there is anything in them.
func (ix *index) await(ctx context.Context) bool {
	ix.wait(ctx, func(loads uint64) bool { return loads > 0 })
	any, _ := ix.holds()
	return any
}

// isRead says whether the playlists have been had.
func (ix *index) isRead() bool {
	loads, _, failed := ix.round()
	any, _ := ix.holds()
	return any || loads > 0 && failed == nil
}

// lacks says why a segment is not here.
func (ix *index) lacks() peer.NoneReason {
	_, _, failed := ix.round()
	var unpaid *unpaidError
	if any, _ := ix.holds(); any {
		return peer.NoneUnknown
	} else if errors.As(failed, &unpaid) {
		return peer.NoneBudget
	}
	return peer.NoneOrigin // no playlist could be had yet
}

// tooLarge notes an object's length and lists its virtual segments.
func (ix *index) tooLarge(r *ref, object int64) {
	if r.seg.Ranged {
		return
	}
	ix.divide(r, object)
	ix.catalog.weigh(ix)
}

// follow loads the playlists and reloads them as long as the index is kept.
func (ix *index) follow() {
	failures := 0
	for ix.ctx.Err() == nil {
		started := ix.catalog.now()
		wait, least, err := ix.load(started)
		if err != nil {
			started = ix.catalog.now() // the pause is from the end on
		}
		var unpaid *unpaidError
		switch {
		case errors.As(err, &unpaid):
			wait, least = retryAfter, retryAfter // the budget fills with time; the refusal is counted
		case err != nil:
			failures++
			wait = min(retryAfter<<min(failures-1, 4), retryAtMost)
			least = retryAfter
			if ix.ctx.Err() == nil {
				ix.catalog.log.Warn("playlists could not be loaded", append([]any{"site", ix.site.name, "manifest", ix.manifest, "error", err}, hintOf(err)...)...)
			}
		default:
			failures = 0
			ix.forget(ix.catalog.now())
			ix.signed.forget(ix.catalog.now())
		}
		ix.ends(err)
		ix.catalog.weigh(ix)
		ix.followSigned()
		ix.pause(started, wait, least)
	}
}

// pause waits until the next reload is due, so long after the last one has started (0: none is), or until a segment is asked for that
// is not listed, and the least time between two reloads is over. What is not wanted any more is not reloaded.
func (ix *index) pause(started time.Time, wait, least time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait - ix.catalog.now().Sub(started))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ix.ctx.Done():
		return
	case <-due:
		if ix.catalog.wanted(ix, followedFor) {
			return
		}
		select {
		case <-ix.ctx.Done():
			return
		case <-ix.kick:
		}
	case <-ix.kick:
	}
	if rest := least - ix.catalog.now().Sub(started); rest > 0 {
		sleep.For(ix.ctx, rest)
	}
}

// loadOne loads a playlist and takes in what it lists. It returns when to load it again, 0 when it will not change, and why something that
// it points to could not be had.
func (ix *index) loadOne(one *followed) (target time.Duration, partly, err error) {
	isManifest := one.path == ix.manifest
	if isManifest && ix.site.rules.IsFile(ix.manifest) {
		return 0, nil, ix.loadFile(ix.ctx)
	}
	var imports playlist.Variables // the manifest has none
	if !isManifest {
		imports = ix.imports()
	}
	m, r, at, err := ix.fetchPlaylist(ix.ctx, one.path, imports, one.within())
	switch {
	case err != nil:
		return 0, nil, err
	case r != nil:
		if isManifest {
			ix.names(nil)
		}
		return paceOf(r), nil, ix.takeIn(at, r)
	case !isManifest:
		return 0, nil, fmt.Errorf("playlist %s is a master playlist within one", one.path)
	}
	ix.setMaster(m.Bitrate, m.Variables)
	ix.names(m.Paths)
	atATime := abreast
	if one.slow {
		atATime = 1
	}
	return ix.represented(m, atATime)
}

// paceOf is when a playlist is loaded again; 0: it has an end.
func paceOf(r *playlist.Listed) time.Duration {
	if !r.Live {
		return 0
	}
	return max(r.Target, reloadLive)
}

func (ix *index) takeIn(path string, r *playlist.Listed) error {
	ix.take(path, r, ix.catalog.now())
	if !ix.catalog.weigh(ix) {
		return fmt.Errorf("the playlists of %s list more segments than there is memory for (seed.index_bytes)", ix.manifest)
	}
	return nil
}

// weight is what the index takes in memory.
func (ix *index) weight() int64 {
	return ix.listings.weight() + ix.rounds.weight() + ix.signed.weight()
}

// paid fetches what is charged as a playlist is, and holds a place of the site's until read, which parses it, has returned.
func (ix *index) paid(ctx context.Context, f Fetch, within time.Duration, read func(*Fetched) error) error {
	c := ix.catalog
	payer, refused := c.tolls.pay(ix.site.name, c.payers(ix))
	if refused != "" {
		c.sink.Add(mPlaylistRefusals, 1, refused)
		return &unpaidError{refused}
	}
	select {
	case ix.site.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-ix.site.reading }()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, err := ix.site.fetch(ctx, f)
	if err != nil {
		return err
	}
	c.tolls.charge(ix.site.name, payer, len(got.Data))
	c.parsing <- struct{}{} // a playlist takes many times its length while it is parsed
	defer func() { <-c.parsing }()
	return read(got)
}

// fetchPlaylist loads one playlist, when it is paid for. What was parsed is counted before its place is free.
func (ix *index) fetchPlaylist(ctx context.Context, path string, imports playlist.Variables, within time.Duration) (m *playlist.Renditions, r *playlist.Listed, at string, err error) {
	at = path
	parsed := false
	err = ix.paid(ctx, Fetch{Path: path, MaxBytes: playlist.MaxBytes}, within, func(got *Fetched) (err error) {
		if got.Path != "" {
			at = got.Path // what a redirect led to is what references are relative to
		}
		m, r, err = playlist.List(ix.site.rules, at, imports, got.Data, ix.catalog.now())
		if err == nil && ix.site.packagers.Load() != nil {
			ix.saw(path, got.Data, m, r)
		}
		parsed = true
		ix.countPlaylist(err)
		return err
	})
	var unpaid *unpaidError
	if !parsed && !errors.As(err, &unpaid) && ctx.Err() == nil {
		ix.countPlaylist(err)
	}
	return m, r, at, err
}

// reload asks for a playlist with a query with which the origin keeps the request until the playlist has what it names. It is paid for
// as any other, but holds no place meanwhile: its follower has one. At is where it is listed.
func (ix *index) reload(ctx context.Context, path, at string, within time.Duration) (*playlist.Listed, error) {
	c := ix.catalog
	payer, refused := c.tolls.pay(ix.site.name, c.payers(ix))
	if refused != "" {
		c.sink.Add(mPlaylistRefusals, 1, refused)
		return nil, &unpaidError{refused}
	}
	waits, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, err := ix.site.keep(waits, Fetch{Path: path, MaxBytes: playlist.MaxBytes})
	var r *playlist.Listed
	if err == nil {
		c.tolls.charge(ix.site.name, payer, len(got.Data))
		c.parsing <- struct{}{}
		_, r, err = playlist.List(ix.site.rules, at, ix.imports(), got.Data, c.now())
		<-c.parsing
	}
	if ctx.Err() == nil {
		ix.countPlaylist(err)
	}
	if err == nil && r != nil {
		ix.take(at, r, c.now())
		c.weigh(ix)
	}
	return r, err
}

func (ix *index) countPlaylist(err error) {
	outcome := playlistLoaded
	if err != nil {
		outcome = playlistFailed
	}
	ix.catalog.sink.Add(mPlaylists, 1, ix.site.name, outcome)
}

// saw notes the playlists, or representations, that have lists of packagers.
func (ix *index) saw(path string, text []byte, m *playlist.Renditions, r *playlist.Listed) {
	digest, now := sha256.Sum256(text), ix.catalog.now()
	if r != nil {
		ix.signed.saw(path, digest, r.Live, now)
		return
	}
	for _, rep := range m.Representations {
		ix.signed.saw(mpd.Name(path, rep.ID), digest, rep.Live, now)
	}
}
