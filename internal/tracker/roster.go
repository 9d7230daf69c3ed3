package tracker

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// keyLife is how long a seed's verify key is handed out after its last beat: certificates outlive the seed that signed them.
const keyLife = certificate.MaxLife

// maxReplicas bounds what the bus can make a tracker remember.
const maxReplicas = 1024

// roster is who else is there: trackers, seeds and the seeds' verify keys, by their beats.
type roster struct {
	self    signal.ID
	timeout time.Duration // of beats

	mu       sync.Mutex
	trackers map[signal.ID]time.Time // guarded by mu: last beat; self never expires
	seeds    map[signal.ID]seedSeen  // guarded by mu
	keys     map[string]keySeen      // guarded by mu, by key ID
}

type seedSeen struct {
	beat bus.SeedBeat
	at   time.Time
}

type keySeen struct {
	key bus.SeedKey
	at  time.Time
}

func newRoster(self signal.ID, cfg Config) *roster {
	return &roster{
		self: self, timeout: 3 * cfg.BeatEvery,
		trackers: map[signal.ID]time.Time{self: {}}, seeds: map[signal.ID]seedSeen{}, keys: map[string]keySeen{},
	}
}

// tracker notes a beat and says whether the tracker was unknown.
func (r *roster) tracker(b bus.TrackerBeat, now time.Time) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.trackers[b.Tracker]
	switch {
	case b.Tracker == r.self:
		return false
	case b.Gone || b.Draining:
		delete(r.trackers, b.Tracker)
		return false
	case !known && len(r.trackers) >= maxReplicas:
		return false
	}
	r.trackers[b.Tracker] = now
	return !known
}

// seed notes a beat and says whether verify keys changed.
func (r *roster) seed(b bus.SeedBeat, now time.Time) (keysChanged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Gone {
		delete(r.seeds, b.Seed)
	} else if _, known := r.seeds[b.Seed]; known || len(r.seeds) < maxReplicas {
		r.seeds[b.Seed] = seedSeen{b, now}
	}
	return r.learn(b.VerifyKeys, now)
}

// learn notes verify keys. Under mu.
func (r *roster) learn(keys []bus.SeedKey, now time.Time) (changed bool) {
	for _, k := range keys {
		old, known := r.keys[string(k.KeyID)]
		if !known && len(r.keys) >= signal.MaxKeys {
			r.dropOldestKey()
		}
		if !known || !bytes.Equal(old.key.Key, k.Key) || !slices.Equal(old.key.Sites, k.Sites) {
			changed = true
		}
		r.keys[string(k.KeyID)] = keySeen{k, now}
	}
	return changed
}

// dropOldestKey makes room: the key of a seed that beats now matters more. Under mu.
func (r *roster) dropOldestKey() {
	oldest := ""
	for id, k := range r.keys {
		if oldest == "" || k.at.Before(r.keys[oldest].at) {
			oldest = id
		}
	}
	delete(r.keys, oldest)
}

// silent notes that a tracker did not answer: it is home to nothing until it beats again.
func (r *roster) silent(id signal.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id != r.self {
		delete(r.trackers, id)
	}
}

// reachable says whether a peer's side of the bus beats: the seed itself, or the tracker that holds the viewer.
func (r *roster) reachable(target bus.Target) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if target.Role == "seed" {
		_, ok := r.seeds[target.Peer]
		return ok
	}
	return target.Tracker == r.self || !r.trackers[target.Tracker].IsZero()
}

// expire forgets who has not beaten for a while.
func (r *roster) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, at := range r.trackers {
		if id != r.self && now.Sub(at) > r.timeout {
			delete(r.trackers, id)
		}
	}
	for id, s := range r.seeds {
		if now.Sub(s.at) > r.timeout {
			delete(r.seeds, id)
		}
	}
	for id, k := range r.keys {
		if now.Sub(k.at) > keyLife {
			delete(r.keys, id)
		}
	}
}

// homeOf is the tracker that a swarm has its home at.
func (r *roster) homeOf(id signal.ID) signal.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	replicas := make([]swarm.ID, 0, len(r.trackers))
	for t := range r.trackers {
		replicas = append(replicas, swarm.ID(t))
	}
	home, _ := swarm.Home(replicas, swarm.ID(id)) // self is always there
	return signal.ID(home)
}

// seedsFor lists the seeds that would serve a swarm of a site, best first: the same one for every viewer of the swarm, so
// that the origin is asked once.
func (r *roster) seedsFor(site string, id signal.ID) []signal.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var able []swarm.ID
	for seed, s := range r.seeds {
		if !s.beat.Draining && s.beat.LoadPermille < 1000 && slices.Contains(s.beat.Sites, site) {
			able = append(able, swarm.ID(seed))
		}
	}
	var out []signal.ID
	for len(able) > 0 {
		best, _ := swarm.Home(able, swarm.ID(id))
		out = append(out, signal.ID(best))
		able = slices.DeleteFunc(able, func(s swarm.ID) bool { return s == best })
	}
	return out
}

// keysFor lists the verify keys of a site in a stable order.
func (r *roster) keysFor(site string) []signal.VerifyKey {
	out := []signal.VerifyKey{}
	for _, k := range r.allKeys() {
		if slices.Contains(k.Sites, site) {
			out = append(out, k.VerifyKey)
		}
	}
	return out
}

func (r *roster) allKeys() []bus.SeedKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]bus.SeedKey, 0, len(r.keys))
	for _, k := range r.keys {
		out = append(out, k.key)
	}
	slices.SortFunc(out, func(a, b bus.SeedKey) int { return cmp.Compare(string(a.KeyID), string(b.KeyID)) })
	return out
}

func (t *Tracker) onTrackerBeat(data []byte, _ func([]byte) error) {
	var b bus.TrackerBeat
	if !t.decode(data, &b) {
		return
	}
	if t.roster.tracker(b, t.cfg.Now()) {
		t.beat(false) // so that the newcomer knows us before its first viewer comes
	}
}

func (t *Tracker) onSeedBeat(data []byte, _ func([]byte) error) {
	var b bus.SeedBeat
	if t.decode(data, &b) && t.roster.seed(b, t.cfg.Now()) {
		t.pushKeys()
	}
}

func (t *Tracker) pushKeys() {
	t.trust.Add(1)
	for _, s := range t.snapshot() {
		s.send(&signal.Keys{VerifyKeys: t.roster.keysFor(s.site.Name())})
	}
}

// decode reads a message of the bus. What is malformed is dropped: a replica of another version must not stop this one.
func (t *Tracker) decode(data []byte, m bus.Message) bool {
	if err := bus.Decode(data, m); err != nil {
		t.cfg.Log.Warn("bus message dropped", "error", err)
		return false
	}
	return true
}
