package seed

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Bounds of lists of certificates (spec/packaging.md, "Seeds"; spec/budgets.md).
const (
	maxSignedList  = playlist.MaxBytes // of one list, bytes
	shareOfLists   = 8                 // lists of one manifest may take one in so many of the bytes that all indexes may take
	signedBytes    = 160               // what an entry takes in memory besides its bytes
	signedAgain    = 30 * time.Second  // until a list is loaded again that could not be had, or that has an entry that does not count
	signedLongest  = 10 * time.Minute  // the same at most: it doubles with each load
	signedTimeout  = 5 * time.Second
	listLoaded     = "loaded"
	listMissing    = "missing"
	listMalformed  = "malformed"
	listUnpaid     = "unpaid"
	listOverweight = "too-long"
	listFailed     = "failed"
)

// errOverweight is a list for which there is no room.
var errOverweight = errors.New("the lists of one manifest take more memory than they may")

// signedLists are what packagers signed of the segments of one manifest's playlists.
type signedLists struct {
	loading atomic.Bool

	mu    sync.Mutex
	of    map[string]*signedList // guarded by mu, by the playlist's path
	bytes int64                  // guarded by mu
}

// signedList is the list of one playlist. Guarded by signedLists.mu; the entries are not changed.
type signedList struct {
	playlist [sha256.Size]byte // digest of the playlist as it was last read
	due      bool              // the playlist has changed, or an entry was found not to count, since the list was asked for
	again    time.Time
	outdated time.Time     // before which an entry that does not count does not make the list due
	pause    time.Duration // the last one before again, or between two such times
	live     bool
	seen     time.Time
	entries  map[segment.ID]*signedEntry
	bytes    int64
}

// signedEntry is one segment. Its signature is verified when it is first compared with something.
type signedEntry struct {
	raw      []byte
	verified atomic.Pointer[verified]
}

// verified is what an entry is worth under a set of keys; nil: nothing.
type verified struct {
	keys *certificate.KeySet
	cert *certificate.Certificate
}

// saw notes a playlist that was read. Its list is due when it is another one than before.
func (l *signedLists) saw(path string, digest [sha256.Size]byte, live bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of[path]
	if one == nil {
		one = &signedList{}
		l.of[path] = one
	}
	if one.playlist != digest {
		one.due, one.pause = true, 0
		if soon := now.Add(signedAgain); one.again.After(soon) {
			one.again = soon
		}
	}
	one.playlist, one.live, one.seen = digest, live, now
}

// outlived notes that an entry of a list does not count: it is withdrawn, or over, and the packager may have signed again without
// a change of the playlist. It says whether the list is due for that.
func (l *signedLists) outlived(path string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of[path]
	if one == nil || now.Before(one.outdated) {
		return false
	}
	one.wait()
	one.due, one.outdated = true, now.Add(one.pause)
	return true
}

// wait makes the pause longer.
func (l *signedList) wait() { l.pause = min(max(2*l.pause, signedAgain), signedLongest) }

// next is a list that is due, empty where none is. It counts as asked for from then on.
func (l *signedLists) next(now time.Time) (path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, one := range l.of {
		if one.due && !now.Before(one.again) {
			one.due = false
			return path
		}
	}
	return ""
}

// put takes in the entries of a list, nil for one that could not be had: what was had before stays then, and the origin is left alone
// for a while.
func (l *signedLists) put(path string, entries map[segment.ID]*signedEntry, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of[path]
	if one == nil {
		return
	}
	if entries == nil {
		one.wait()
		one.due, one.again = true, now.Add(one.pause)
		return
	}
	l.bytes -= one.bytes
	one.entries, one.bytes = entries, 0
	for _, e := range entries {
		one.bytes += signedBytes + int64(len(e.raw))
	}
	l.bytes += one.bytes
}

// forget drops the lists of live playlists that are not read any more.
func (l *signedLists) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, one := range l.of {
		if one.live && now.Sub(one.seen) > listingKept {
			l.bytes -= one.bytes
			delete(l.of, path)
		}
	}
}

// entry is what a packager signed of a segment, if it did, and the playlist whose list has it.
func (l *signedLists) entry(id segment.ID) (e *signedEntry, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, one := range l.of {
		if e := one.entries[id]; e != nil {
			return e, path
		}
	}
	return nil, ""
}

// beside is what all lists but one take.
func (l *signedLists) beside(path string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.bytes
	if one := l.of[path]; one != nil {
		n -= one.bytes
	}
	return n
}

func (l *signedLists) weight() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// judged is the entry's certificate if one of the keys signed it. That is found out once for a set of keys.
func (e *signedEntry) judged(keys *certificate.KeySet, site string, name segment.Name, now time.Time) *certificate.Certificate {
	if v := e.verified.Load(); v != nil && v.keys == keys {
		return v.cert
	}
	c, err := certificate.ParseShort(e.raw)
	if err == nil {
		err = keys.Verify(c, site, name, now, nil)
	}
	switch certificate.OutcomeOf(err) {
	case certificate.Valid:
	case certificate.FromTheFuture: // not yet
		return nil
	default:
		c = nil
	}
	e.verified.Store(&verified{keys, c})
	return c
}

// followSigned has the lists of playlists that have changed loaded. Nothing waits for it, playlists neither: an origin that is slow to
// answer for a list, or has none, costs viewers nothing.
func (ix *index) followSigned() {
	if ix.site.packagers.Load() == nil || !ix.signed.loading.CompareAndSwap(false, true) {
		return
	}
	if !ix.catalog.tasks.begin(func() { defer ix.signed.loading.Store(false); ix.loadSigned(ix.ctx) }) {
		ix.signed.loading.Store(false)
	}
}

// signedOf is what a packager signed of a segment, if it did, and the playlist whose list has it. Without, a list is asked for again that
// could not be had: the playlists of a film are not loaded again, after which it would be.
func (ix *index) signedOf(id segment.ID) (e *signedEntry, path string) {
	if e, path = ix.signed.entry(id); e == nil {
		ix.followSigned()
	}
	return e, path
}

func (ix *index) loadSigned(ctx context.Context) {
	for ctx.Err() == nil {
		path := ix.signed.next(ix.catalog.now())
		if path == "" {
			return
		}
		entries, outcome := ix.fetchSigned(ctx, path)
		ix.signed.put(path, entries, ix.catalog.now())
		ix.catalog.sink.Add(mLists, 1, ix.site.name, outcome)
		switch outcome {
		case listLoaded:
			ix.catalog.weigh(ix)
		case listUnpaid, listFailed: // the others would go the same way: after the next playlist
			return
		}
	}
}

// fetchSigned loads one list, when it is paid for like a playlist.
func (ix *index) fetchSigned(ctx context.Context, path string) (map[segment.ID]*signedEntry, string) {
	c := ix.catalog
	var entries map[segment.ID]*signedEntry
	err := ix.paid(ctx, Fetch{Path: certificate.ListURL(path), MaxBytes: maxSignedList}, signedTimeout, func(got *Fetched) error {
		list, err := certificate.ParseList(got.Data)
		if err != nil {
			return err
		}
		if int64(len(list))*signedBytes+int64(len(got.Data))+ix.signed.beside(path) > c.limit/shareOfLists {
			return errOverweight
		}
		entries = make(map[segment.ID]*signedEntry, len(list))
		for _, one := range list {
			entries[segment.NewID(ix.site.name, one.Name)] = &signedEntry{raw: one.Bytes()}
		}
		return nil
	})
	var failed *FetchError
	var unpaid *unpaidError
	switch {
	case err == nil:
		return entries, listLoaded
	case errors.As(err, &unpaid):
		return nil, listUnpaid
	case errors.Is(err, errOverweight) || errors.As(err, &failed) && failed.Outcome == OutcomeTooLarge:
		return nil, listOverweight
	case errors.As(err, &failed) && failed.Outcome == OutcomeNotFound:
		return nil, listMissing
	case errors.Is(err, certificate.ErrList):
		c.log.Warn("the list of a playlist is of no use", "site", ix.site.name, "playlist", path, "error", err)
		return nil, listMalformed
	}
	return nil, listFailed
}

// contradicted says whether a packager has signed other bytes of a segment than a certificate of a seed is for. While that
// certificate of the packager is valid, the seed's is not handed out: the origin, or a cache before it, does not have what was made.
func (s *supply) contradicted(r request, h *held) bool {
	keys := r.title.site.packagers.Load()
	if keys == nil {
		return false
	}
	now := s.now()
	for ix := range r.title.indexes() {
		e, path := ix.signedOf(r.ref.id)
		if e == nil {
			continue
		}
		c := e.judged(keys, r.title.site.name, r.ref.seg.Name, now)
		if c != nil && s.issuer.good(c) {
			return c.Root() != h.sum || c.Length != h.cert.Length || c.ObjectLength != h.cert.ObjectLength
		}
		if ix.signed.outlived(path, now) {
			ix.followSigned()
		}
	}
	return false
}

// refuseContradicted drops what a packager contradicts.
func (s *supply) refuseContradicted(r request) result {
	site := r.title.site.name
	s.sink.Add(mContradictions, 1, site)
	s.disown(r.ref.id)
	s.withhold(r.ref.id)
	s.log.Warn("the origin's bytes differ from what the packager signed: the segment is not certified",
		"site", site, "playlist", r.ref.playlist, "hint", "sign again (leeway certify), or mend the cache before the origin")
	return result{none: peer.NoneWithdrawn}
}
