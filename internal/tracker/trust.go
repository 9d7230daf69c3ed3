package tracker

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// keptFor is how long after its start a tracker takes revocations from seeds, if it found no other tracker.
const keptFor = 5 * time.Minute

// trust is what viewers may believe: the verify keys of packagers and of seeds, as far as they are not revoked, and what is revoked.
// It hears of changes on the bus, and of packagers from the configuration, and tells the sessions of them.
type trust struct {
	*replica
	sessions *sessions
	switches *switches
	changes  atomic.Int64 // of keys and revocations, counted before sessions are told
	revoked  revocations
	packaged packagers
	// keptUntil is when this tracker stops to take revocations from seeds; zero: it found another tracker. Set before onKept is called.
	keptUntil time.Time

	telling sync.Mutex
	told    time.Time // guarded by telling: when sessions were told the keys last
	untold  bool      // guarded by telling: the keys have changed since
}

func newTrust(r *replica, all *sessions, s *switches) *trust {
	t := &trust{replica: r, sessions: all, switches: s, packaged: packagers{keys: map[string][]signal.VerifyKey{}}}
	for name, site := range r.sites {
		t.set(name, site.Packagers())
	}
	return t
}

// repeat says all that is in force again, when it is time.
func (t *trust) repeat(now time.Time) {
	list, due := t.revoked.due(now)
	if switched := t.switches.list(); due && len(list)+len(switched) > 0 {
		t.Publish(bus.SubjectRevoke, &bus.RevokeMessage{Revocations: list, Switches: switched})
	}
	keys, purges, tombstones := t.revoked.counted(now)
	t.cfg.Metrics.Set(defRevocations, float64(keys), "key")
	t.cfg.Metrics.Set(defRevocations, float64(purges), "purge")
	t.cfg.Metrics.Set(defRevocations, float64(tombstones), "tombstone")
}

func (t *trust) onRevoke(data []byte, _ func([]byte) error) {
	var m bus.RevokeMessage
	if t.decode(data, &m) {
		t.take(&m)
	}
}

// take takes in what is new of revocations and switches, tells viewers, and says whether anything was.
func (t *trust) take(m *bus.RevokeMessage) (news bool) {
	news = t.switches.take(m.Switches)
	fresh := t.revoked.add(m.Revocations, t.cfg.Now())
	if len(fresh) == 0 {
		return news
	}
	t.changes.Add(1)
	for _, s := range t.sessions.snapshot() {
		if list := concerning(s.site.Name(), fresh); len(list) > 0 {
			s.revoke(parts(list))
		}
	}
	return true
}

// onRevokeList answers a replica that has just started.
func (t *trust) onRevokeList(_ []byte, reply func([]byte) error) {
	list := bus.RevokeList{Revocations: t.revoked.all(), VerifyKeys: t.roster.allKeys(), Switches: t.switches.list()}
	b, err := bus.Encode(&list)
	if err != nil { // there are more keys with more sites than fit in; seeds that beat say theirs again
		list.VerifyKeys = nil
		b, err = bus.Encode(&list)
	}
	if err == nil {
		err = reply(b)
	}
	if err != nil {
		t.cfg.Log.Warn("revocations not sent", "error", err)
	}
}

// learn asks the other trackers. The first tracker gets no answer, which is no error: it takes what seeds kept.
func (t *trust) learn(ctx context.Context) {
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
	t.switches.take(l.Switches)
	t.roster.teach(l.VerifyKeys, t.cfg.Now())
}

// onKept takes revocations and switches that a seed kept on disk. A tracker that found another one at its start has them from there,
// and takes none from seeds: a seed could make them up. What is new is published, for trackers and seeds that do not have it.
func (t *trust) onKept(data []byte, _ func([]byte) error) {
	if !t.cfg.Now().Before(t.keptUntil) {
		t.refuseSeed(seedLate)
		return
	}
	var m bus.RevokeMessage
	if bus.Decode(data, &m) != nil {
		t.refuseSeed(seedMalformed)
		return
	}
	if t.take(&m) {
		t.Publish(bus.SubjectRevoke, &m)
	}
}

// packagers are the keys of sites' packagers, as the configuration has them.
type packagers struct {
	mu   sync.Mutex
	keys map[string][]signal.VerifyKey // guarded by mu, by site
}

func (p *packagers) of(site string) []signal.VerifyKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.keys[site])
}

// set replaces the keys of a site. That it had some is kept in mind: what they signed is still about.
func (t *trust) set(site string, keys []certificate.VerifyKey) {
	list := make([]signal.VerifyKey, len(keys))
	for i, k := range keys {
		list[i] = signal.VerifyKey{KeyID: bytes.Clone(k.KeyID[:]), Alg: signal.AlgPackager, Key: k.Key}
	}
	if len(list) > 0 {
		t.revoked.packages(site)
	}
	t.packaged.mu.Lock()
	defer t.packaged.mu.Unlock()
	t.packaged.keys[site] = list
}

// Packagers replaces the keys of a site's packagers, and tells its sessions.
func (t *trust) Packagers(site string, keys []certificate.VerifyKey) {
	t.set(site, keys)
	t.keysChanged()
}

func (t *trust) onSeedBeat(data []byte, _ func([]byte) error) {
	var b bus.SeedBeat
	if t.decode(data, &b) && t.roster.seed(b, t.cfg.Now()) {
		t.keysChanged()
	}
}

func (t *trust) keysChanged() {
	t.changes.Add(1)
	t.telling.Lock()
	defer t.telling.Unlock()
	t.untold = true
	t.tellKeys()
}

// settle tells the sessions what keysChanged left. It is called often.
func (t *trust) settle() {
	t.telling.Lock()
	defer t.telling.Unlock()
	t.tellKeys()
}

// tellKeys tells all sessions the keys of their sites, if they have changed. Seeds that start together change the keys one after the other, and all
// keys go to each session, so they go at most twice a beat. Under telling.
func (t *trust) tellKeys() {
	now := t.cfg.Now()
	if !t.untold || now.Sub(t.told) < t.cfg.BeatEvery/2 {
		return
	}
	t.untold, t.told = false, now
	encoded := map[string][]byte{}
	for _, s := range t.sessions.snapshot() {
		name, m := s.site.Name(), &signal.Keys{}
		b, known := encoded[name]
		if !known {
			m.VerifyKeys = t.keysFor(name)
			b = s.encode(nil, m)
			encoded[name] = b
		}
		if b != nil {
			s.write(m, b)
		}
	}
}

// keysFor lists the verify keys of a site that are not revoked, those of packagers first.
func (t *trust) keysFor(site string) []signal.VerifyKey {
	keys := t.revoked.trusted(t.packaged.of(site))
	return append(keys, t.revoked.trusted(t.roster.keysFor(site, signal.MaxKeys-len(keys)))...)
}
