package seed

import (
	"errors"
	"sync"
	"time"
)

// abreast is how many playlists of one manifest are loaded at a time: half of the site's places, so that a title leaves room for others.
const abreast = maxReading / 2

// rounds say which playlists of a manifest are loaded, and what came of it. A round loads each of them once, but for those that an
// earlier one has begun and that have not come yet.
type rounds struct {
	mu       sync.Mutex
	lists    []*followed   // guarded by mu: the manifest, and what it names
	weighs   int64         // guarded by mu: what lists take in memory, bytes
	under    int           // guarded by mu: loads under way, without those of slow playlists
	retrying bool          // guarded by mu: slow playlists are being loaded
	loads    uint64        // guarded by mu: rounds that have ended
	failed   error         // guarded by mu: of the last round
	changed  chan struct{} // guarded by mu: closed when the next load or round has ended
}

// followed is a playlist that is loaded again and again. Guarded by rounds.mu; its load reads path and target without, since nothing changes
// them meanwhile.
type followed struct {
	path    string
	target  time.Duration // of a live one, as it was last had; 0: it has an end, or was not had yet
	loading bool
	slow    bool  // its last load timed out, or some of what it points to; stays as it is while it is loading
	failed  error // of its last load: it could not be had
	partly  error // of its last load: some of what it points to could not be had
}

func newRounds(manifest string) *rounds {
	return &rounds{lists: []*followed{{path: manifest}}, changed: make(chan struct{})}
}

// round returns how many rounds of loading have ended, what is closed when the next load or round has, and how the last round failed.
func (r *rounds) round() (loads uint64, changed <-chan struct{}, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loads, r.changed, r.failed
}

// isFirst says whether no round of loading has ended yet.
func (r *rounds) isFirst() bool {
	loads, _, _ := r.round()
	return loads == 0
}

// ends notes that a round of loading has ended.
func (r *rounds) ends(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
	r.loads++
	r.wake()
}

// wake wakes what waits for a load or a round. Under mu.
func (r *rounds) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// names notes which playlists the manifest names. Those that it does not name any more are not loaded again.
func (r *rounds) names(paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]*followed{}
	for _, one := range r.lists {
		known[one.path] = one
	}
	manifest := r.lists[0]
	r.lists, r.weighs = []*followed{manifest}, 0
	for _, path := range paths {
		one := known[path]
		if one == nil {
			one = &followed{path: path}
		}
		if one != manifest {
			r.lists = append(r.lists, one)
			r.weighs += listingBytes + int64(len(path))
		}
	}
}

// next returns what a round is to load now: what it has not begun yet, as far as there is room. open: there is something to wait for;
// full: for room, too.
func (r *rounds) next(begun map[*followed]bool) (ready []*followed, open, full bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.lists {
		switch {
		case begun[one]:
			open = open || one.loading
		case one.loading || one.slow:
		case r.under < abreast:
			r.under++
			one.loading, begun[one], open = true, true, true
			ready = append(ready, one)
		default:
			full = true
		}
	}
	return ready, open || full || len(begun) == 0 && r.retrying, full, r.changed
}

// retries returns the playlists that timed out, to be loaded one after the other; none while others are.
func (r *rounds) retries() (slow []*followed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.lists {
		if one.slow && !one.loading && !r.retrying {
			one.loading = true
			slow = append(slow, one)
		}
	}
	r.retrying = r.retrying || len(slow) > 0
	return slow
}

// retried notes that they have been.
func (r *rounds) retried() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retrying = false
	r.wake()
}

// told wakes what waits for something to be listed.
func (r *rounds) told() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
}

// came notes what came of a load.
func (r *rounds) came(one *followed, target time.Duration, partly, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !one.slow {
		r.under--
	}
	if err == nil {
		one.target = target
	}
	one.loading, one.slow, one.partly, one.failed = false, timedOut(err) || timedOut(partly), partly, err
	r.wake()
}

func timedOut(err error) bool { return err != nil && outcomeOf(err) == OutcomeTimeout }

// pace is how long after the beginning of a round the next one is due because of live playlists, 0: there are none, and the least time
// between two.
func (r *rounds) pace() (wait, least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	least = reloadVOD
	for _, one := range r.lists {
		if one.failed == nil && one.target > 0 && (wait == 0 || one.target < wait) {
			wait = one.target
			least = min(reloadLive, wait/2) // RFC 8216, 6.3.4
		}
	}
	return wait, least
}

// outcome says whether something could not be had; the error, that no playlist could.
func (r *rounds) outcome() (missing bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	media := r.lists
	if len(media) > 1 {
		media = media[1:]
	}
	var errs []error
	for _, one := range r.lists {
		missing = missing || one.loading || one.partly != nil || one.failed != nil
	}
	for _, one := range media {
		if one.failed == nil {
			return missing, nil
		}
		errs = append(errs, one.failed)
	}
	return true, errors.Join(errs...)
}

func (r *rounds) weight() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.weighs
}

// within is how long a load may take. A live playlist has changed several times by then.
func (f *followed) within() time.Duration {
	if f.target == 0 {
		return fetchTimeout
	}
	return min(fetchTimeout, max(leastWait, reloadWait*f.target))
}

// load has one round, which started just now. It ends when all playlists have come, or when all have been begun and the next round is due:
// a playlist that hangs holds back no other. It returns when to load again after the start, 0 when nothing will change, and the least time
// before.
func (ix *index) load(started time.Time) (wait, least time.Duration, err error) {
	ix.retry()
	begun := map[*followed]bool{}
	for {
		ready, open, full, changed := ix.next(begun)
		for _, one := range ready {
			ix.catalog.tasks.begin(func() { ix.come(one) })
		}
		if wait, least = ix.pace(); !open {
			break
		}
		var due <-chan time.Time
		if wait > 0 && !full {
			due = time.After(wait - ix.catalog.now().Sub(started))
		}
		select {
		case <-changed:
			continue
		case <-due:
		case <-ix.ctx.Done():
			return 0, 0, ix.ctx.Err()
		}
		break
	}
	missing, err := ix.outcome()
	if missing && wait == 0 {
		wait = retryAtMost // one rendition is missing: the others are served meanwhile
	}
	return wait, least, err
}

// come has one playlist come.
func (ix *index) come(one *followed) {
	target, partly, err := ix.loadOne(one)
	ix.came(one, target, partly, err)
}

// retry loads what timed out before, beside the rounds and in the few places of the site for that, so that what hangs for long leaves
// the others to what does not.
func (ix *index) retry() {
	slow := ix.retries()
	if len(slow) == 0 {
		return
	}
	ix.catalog.tasks.begin(func() {
		defer ix.retried()
		for _, one := range slow {
			select {
			case ix.site.slow <- struct{}{}:
			case <-ix.ctx.Done():
				return
			}
			ix.come(one)
			<-ix.site.slow
		}
	})
}
