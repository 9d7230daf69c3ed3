package certificate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// Revocation withdraws certificates: all that a key signed (KeyID set), or those of a site whose name begins with Prefix
// and that were issued before MinIssuedAt. Where that is a good way ahead, nothing can be issued until then: a tombstone.
type Revocation struct {
	KeyID       KeyID
	Site        string
	Prefix      string // "/" is the whole site
	MinIssuedAt time.Time
}

// MaxBuried is the longest that a tombstone is made for.
const MaxBuried = 31 * 24 * time.Hour

// Tombstone is the revocation under which nothing of a site below a prefix is certified, or counts as certified, until a
// time. What is issued up to MaxSkew ahead of a clock is valid by it, so the revocation says as much more.
func Tombstone(site, prefix string, until time.Time) Revocation {
	return Revocation{Site: site, Prefix: prefix, MinIssuedAt: until.Add(MaxSkew)}
}

// Buried says whether a revocation of what was issued before minIssuedAt is a tombstone still. Less than MaxSkew ahead it is
// a purge from a clock that is ahead.
func Buried(minIssuedAt, now time.Time) bool { return minIssuedAt.After(now.Add(MaxSkew)) }

// MaxRevocations is how many a set holds: more than any tracker sends, few enough to look through.
const MaxRevocations = 4096

// Revocations is a set of revocations, kept for a session. The zero value is empty, nil withdraws nothing. Not safe for
// use while Add runs.
type Revocations struct {
	keys     map[KeyID]bool
	sites    map[string]map[string]int64 // site → prefix → ms below which certificates are withdrawn
	packaged map[string]bool             // sites with certificates of packagers
	count    int
}

// Packaged says that a site has, or had, packagers: what withdraws their certificates is forgotten later.
func (r *Revocations) Packaged(site string) {
	if r.packaged == nil {
		r.packaged = map[string]bool{}
	}
	r.packaged[site] = true
}

// Life is how long a certificate of a site lives at most.
func Life(packaged bool) time.Duration {
	if packaged {
		return MaxPackaged
	}
	return MaxLife
}

// Add takes revocations in; of two for one site and prefix the later time holds. It takes in what it can and fails for
// those that name nothing and for what is above MaxRevocations.
func (r *Revocations) Add(list ...Revocation) error {
	var errs []error
	for _, v := range list {
		if err := r.add(v); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *Revocations) add(v Revocation) error {
	byKey := !v.KeyID.IsZero()
	if byKey == (v.Site != "") || !byKey && !strings.HasPrefix(v.Prefix, "/") {
		return fmt.Errorf("revocation of key %s, site %q, prefix %q: name either a key or a site and a prefix that begins with /", v.KeyID, v.Site, v.Prefix)
	}
	if r.keys == nil {
		r.keys, r.sites = map[KeyID]bool{}, map[string]map[string]int64{}
	}
	known := r.keys[v.KeyID]
	if !byKey {
		_, known = r.sites[v.Site][v.Prefix]
	}
	if !known && r.count >= MaxRevocations {
		return fmt.Errorf("revocation of key %s, site %q, prefix %q: there are %d already (revoke the whole site)", v.KeyID, v.Site, v.Prefix, r.count)
	}
	if !known {
		r.count++
	}
	if byKey {
		r.keys[v.KeyID] = true
		return nil
	}
	if r.sites[v.Site] == nil {
		r.sites[v.Site] = map[string]int64{}
	}
	r.sites[v.Site][v.Prefix] = max(r.sites[v.Site][v.Prefix], v.MinIssuedAt.UnixMilli())
	return nil
}

// Ended says whether a revocation of a site withdraws nothing any more: whatever was issued before minIssuedAt, to live for at most
// life, has expired.
func Ended(minIssuedAt, now time.Time, life time.Duration) bool {
	return minIssuedAt.Before(now.Add(-life - MaxSkew))
}

// Ended says whether a revocation withdraws nothing any more. One of a key never ends.
func (r *Revocations) Ended(v Revocation, now time.Time) bool {
	return v.KeyID.IsZero() && Ended(v.MinIssuedAt, now, Life(r.packaged[v.Site]))
}

// Holds says whether the set withdraws all that a revocation would.
func (r *Revocations) Holds(v Revocation) bool {
	if !v.KeyID.IsZero() {
		return r.keys[v.KeyID]
	}
	least, known := r.sites[v.Site][v.Prefix]
	return known && v.MinIssuedAt.UnixMilli() <= least
}

// Forget drops revocations that have ended, so that years of purges do not fill the set.
func (r *Revocations) Forget(now time.Time) {
	for site, prefixes := range r.sites {
		for prefix, ms := range prefixes {
			if Ended(time.UnixMilli(ms), now, Life(r.packaged[site])) {
				delete(prefixes, prefix)
				r.count--
			}
		}
	}
}

// MakeRoom drops the oldest revocation that withdraws certificates of packagers alone, if there is one: a new one also withdraws those
// that seeds issue now.
func (r *Revocations) MakeRoom(now time.Time) {
	var site, prefix string
	least := now.Add(-MaxLife - MaxSkew).UnixMilli()
	for s, prefixes := range r.sites {
		for p, ms := range prefixes {
			if ms < least {
				site, prefix, least = s, p, ms
			}
		}
	}
	if site != "" {
		delete(r.sites[site], prefix)
		r.count--
	}
}

// Withdraws says whether a certificate is withdrawn.
func (r *Revocations) Withdraws(c *Certificate) bool {
	if r == nil {
		return false
	}
	if r.keys[c.KeyID] {
		return true
	}
	least := r.least(c.Site, c.Name)
	return least > 0 && c.IssuedAt.UnixMilli() < least
}

// Since is the time before which certificates of a segment are withdrawn, 1970 where none are.
func (r *Revocations) Since(site string, name segment.Name) time.Time {
	if r == nil {
		return time.UnixMilli(0)
	}
	return time.UnixMilli(r.least(site, name))
}

func (r *Revocations) least(site string, name segment.Name) (ms int64) {
	for prefix, least := range r.sites[site] {
		if strings.HasPrefix(string(name), prefix) {
			ms = max(ms, least)
		}
	}
	return ms
}

// List is the set in a stable order: keys first, then sites and prefixes.
func (r *Revocations) List() []Revocation {
	if r == nil {
		return nil
	}
	list := make([]Revocation, 0, r.count)
	for k := range r.keys {
		list = append(list, Revocation{KeyID: k})
	}
	for site, prefixes := range r.sites {
		for prefix, ms := range prefixes {
			list = append(list, Revocation{Site: site, Prefix: prefix, MinIssuedAt: time.UnixMilli(ms)})
		}
	}
	slices.SortFunc(list, func(a, b Revocation) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Prefix, b.Prefix), slices.Compare(a.KeyID[:], b.KeyID[:]))
	})
	return list
}
