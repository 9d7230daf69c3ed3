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
	keys  map[KeyID]bool
	sites map[string]map[string]int64 // site → prefix → ms below which certificates are withdrawn
	count int
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

// Ended says whether a revocation of a site withdraws nothing any more: whatever was issued before minIssuedAt has expired.
func Ended(minIssuedAt, now time.Time) bool {
	return minIssuedAt.Before(now.Add(-MaxLife - MaxSkew))
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
	for _, prefixes := range r.sites {
		for prefix, ms := range prefixes {
			if Ended(time.UnixMilli(ms), now) {
				delete(prefixes, prefix)
				r.count--
			}
		}
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
