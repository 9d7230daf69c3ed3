package tracker

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Bounds of revocations by the bytes that they take when encoded. All in force have to fit into the answer to a replica that
// starts, beside the verify keys; a part of them into a welcome, beside the rest of it.
const (
	revokedBytes = bus.MaxMessage * 3 / 4
	partBytes    = signal.MaxMessage / 2
)

// revokeAgain is how often a tracker says what is revoked: a replica that was cut off from the bus learns it.
const revokeAgain = 30 * time.Second

// parts cuts a list so that each part fits into one message to a viewer; at least one, which may be empty.
func parts(list []signal.Revocation) [][]signal.Revocation { return signal.Parts(list, partBytes) }

// revocations are those in force, the newest first. Keys, which have no time, are last.
type revocations struct {
	mu       sync.Mutex
	list     []signal.Revocation // guarded by mu
	said     time.Time           // guarded by mu: when others last heard the list
	packaged map[string]bool     // guarded by mu: sites that have, or had, packagers
}

// packages says that certificates of a site may live as long as a packager's.
func (r *revocations) packages(site string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.packaged == nil {
		r.packaged = map[string]bool{}
	}
	r.packaged[site] = true
}

// ended says whether a revocation withdraws nothing any more. Under mu.
func (r *revocations) ended(o signal.Revocation, now time.Time) bool {
	return o.Site != "" && certificate.Ended(time.UnixMilli(o.MinIssuedAt), now, certificate.Life(r.packaged[o.Site]))
}

// add takes over what is new and returns it. One that withdraws more of the same prefix replaces the older one.
func (r *revocations) add(more []signal.Revocation, now time.Time) (fresh []signal.Revocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range slices.Backward(more) { // what another tracker says has the newest first
		if r.ended(m, now) {
			continue
		}
		i := slices.IndexFunc(r.list, func(o signal.Revocation) bool {
			return bytes.Equal(o.KeyID, m.KeyID) && o.Site == m.Site && o.Prefix == m.Prefix
		})
		if i >= 0 && r.list[i].MinIssuedAt >= m.MinIssuedAt {
			continue
		}
		if i >= 0 {
			r.list = slices.Delete(r.list, i, i+1)
		}
		r.list = slices.Insert(r.list, 0, m)
		fresh = append(fresh, m)
	}
	// By when purges were made, not by when they were heard: trackers that dropped different ones would say them to each other, and to all
	// viewers, again and again.
	slices.SortStableFunc(r.list, func(a, b signal.Revocation) int { return cmp.Compare(b.MinIssuedAt, a.MinIssuedAt) })
	r.trim(now)
	return fresh
}

// trim drops what is too much: purges first, the oldest before others, then tombstones. A key that is out stays out.
func (r *revocations) trim(now time.Time) {
	size := 0
	for _, o := range r.list {
		size += o.Size()
	}
	purge := func(o signal.Revocation) bool { return o.Site != "" && !buries(o, now) }
	for _, droppable := range []func(signal.Revocation) bool{purge, func(o signal.Revocation) bool { return o.Site != "" }, func(signal.Revocation) bool { return true }} {
		for i := len(r.list) - 1; i >= 0 && (len(r.list) > bus.MaxRevoked || size > revokedBytes); i-- {
			if droppable(r.list[i]) {
				size -= r.list[i].Size()
				r.list = slices.Delete(r.list, i, i+1)
			}
		}
	}
}

// buries says whether a revocation is a tombstone.
func buries(r signal.Revocation, now time.Time) bool {
	return r.Site != "" && certificate.Buried(time.UnixMilli(r.MinIssuedAt), now)
}

// counted is how many of each kind are in force.
func (r *revocations) counted(now time.Time) (keys, purges, tombstones int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.list {
		switch {
		case o.Site == "":
			keys++
		case buries(o, now):
			tombstones++
		default:
			purges++
		}
	}
	return keys, purges, tombstones
}

// trusted leaves out the keys that are revoked.
func (r *revocations) trusted(keys []signal.VerifyKey) []signal.VerifyKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(keys, func(k signal.VerifyKey) bool {
		return slices.ContainsFunc(r.list, func(o signal.Revocation) bool { return o.Site == "" && bytes.Equal(o.KeyID, k.KeyID) })
	})
}

// due forgets what has ended, and returns the list when others are to hear it again.
func (r *revocations) due(now time.Time) (list []signal.Revocation, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(o signal.Revocation) bool { return r.ended(o, now) })
	if now.Sub(r.said) < revokeAgain {
		return nil, false
	}
	r.said = now
	return append([]signal.Revocation{}, r.list...), true
}

func (r *revocations) all() []signal.Revocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// forSite lists what concerns a site: its own, and keys.
func (r *revocations) forSite(site string) []signal.Revocation {
	return concerning(site, r.all())
}

func concerning(site string, list []signal.Revocation) []signal.Revocation {
	out := []signal.Revocation{}
	for _, r := range list {
		if r.Site == "" || r.Site == site {
			out = append(out, r)
		}
	}
	return out
}
