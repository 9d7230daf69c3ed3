package tracker

import (
	"bytes"
	"context"
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

// revocations are those in force, the newest first.
type revocations struct {
	mu   sync.Mutex
	list []signal.Revocation // guarded by mu
	said time.Time           // guarded by mu: when others last heard the list
}

func ended(r signal.Revocation, now time.Time) bool {
	return r.Site != "" && certificate.Ended(time.UnixMilli(r.MinIssuedAt), now)
}

// add takes over what is new and returns it. One that withdraws more of the same prefix replaces the older one.
func (r *revocations) add(more []signal.Revocation, now time.Time) (fresh []signal.Revocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range more {
		if ended(m, now) {
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
	r.list = slices.DeleteFunc(r.list, func(o signal.Revocation) bool { return ended(o, now) })
	if now.Sub(r.said) < revokeAgain {
		return nil, false
	}
	r.said = now
	return append([]signal.Revocation{}, r.list...), true
}

// repeat says all that is in force again, when it is time.
func (t *Tracker) repeat(now time.Time) {
	list, due := t.revoked.due(now)
	if switched := t.switches.list(); due && len(list)+len(switched) > 0 {
		t.publish(bus.SubjectRevoke, &bus.RevokeMessage{Revocations: list, Switches: switched})
	}
	keys, purges, tombstones := t.revoked.counted(now)
	t.cfg.Metrics.Set(defRevocations, float64(keys), "key")
	t.cfg.Metrics.Set(defRevocations, float64(purges), "purge")
	t.cfg.Metrics.Set(defRevocations, float64(tombstones), "tombstone")
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

func (t *Tracker) onRevoke(data []byte, _ func([]byte) error) {
	var m bus.RevokeMessage
	if t.decode(data, &m) {
		t.takeRevocations(&m)
	}
}

// takeRevocations takes in what is new of revocations and switches, tells viewers, and says whether anything was.
func (t *Tracker) takeRevocations(m *bus.RevokeMessage) (news bool) {
	news = t.takeSwitches(m.Switches)
	fresh := t.revoked.add(m.Revocations, t.cfg.Now())
	if len(fresh) == 0 {
		return news
	}
	t.trust.Add(1)
	for _, s := range t.snapshot() {
		if list := concerning(s.site.Name(), fresh); len(list) > 0 {
			s.revoke(parts(list))
		}
	}
	return true
}

// revoke tells a viewer.
func (s *session) revoke(parts [][]signal.Revocation) {
	for _, part := range parts {
		s.send(&signal.Revoke{Revocations: part})
	}
}

// onRevokeList answers a replica that has just started.
func (t *Tracker) onRevokeList(_ []byte, reply func([]byte) error) {
	b, err := bus.Encode(&bus.RevokeList{
		Revocations: t.revoked.all(), VerifyKeys: t.roster.allKeys(), Switches: t.switches.list(),
	})
	if err == nil {
		err = reply(b)
	}
	if err != nil {
		t.cfg.Log.Warn("revocations not sent", "error", err)
	}
}

// learnRevocations asks those who were here before. The first tracker finds nobody, which is no error: it takes what seeds kept.
func (t *Tracker) learnRevocations(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	b, err := t.bus.Request(ctx, bus.SubjectRevokeList, []byte("{}"))
	if err != nil {
		t.keptUntil = t.cfg.Now().Add(keptFor)
		return
	}
	var l bus.RevokeList
	if !t.decode(b, &l) {
		return
	}
	t.revoked.add(l.Revocations, t.cfg.Now())
	t.takeSwitches(l.Switches)
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	t.roster.learn(l.VerifyKeys, t.cfg.Now())
}
