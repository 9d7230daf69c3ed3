package certificate

import (
	"slices"
	"time"
)

// Packagers says whether the set has a packager's key of a site.
func (s *KeySet) Packagers(site string) bool {
	if s == nil {
		return false
	}
	for at, key := range s.keys {
		if at.alg == Packager && slices.Contains(key.sites, site) {
			return true
		}
	}
	return false
}

// Counts says whether an entry of a list would verify for a site at tracker time now if its signature is right. It checks no
// signature: it is asked of many entries, and Verify of those that are used.
func (s *KeySet) Counts(c *Certificate, site string, now time.Time, revoked *Revocations) bool {
	if s == nil || c.Alg != Packager || c.Site != site || !slices.Contains(s.keys[use{c.KeyID, c.Alg}].sites, site) {
		return false
	}
	return timely(c, now) == nil && !revoked.Withdraws(c)
}

// timely says what is wrong with a certificate at a time.
func timely(c *Certificate, now time.Time) error {
	nowMs, issuedMs, endMs := now.UnixMilli(), c.IssuedAt.UnixMilli(), c.NotAfter.UnixMilli()
	switch {
	case nowMs > endMs:
		return refuse(Expired, "it ended %d ms ago", nowMs-endMs)
	case issuedMs > nowMs+MaxSkew.Milliseconds():
		return refuse(FromTheFuture, "it is issued %d ms ahead of tracker time", issuedMs-nowMs)
	}
	return nil
}
