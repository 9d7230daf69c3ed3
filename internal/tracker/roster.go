package tracker

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// keyLife is how long a seed's verify key is handed out after its last beat: certificates outlive the seed that signed them.
const keyLife = certificate.MaxLife

// maxSeeds bounds what the bus can make a tracker remember.
const maxSeeds = 1024

// roster is the rest of the cluster: trackers, seeds and the seeds' verify keys, by their beats.
type roster struct {
	log     *slog.Logger
	timeout time.Duration // of beats
	alone   atomic.Bool   // no other tracker lives: asked for every message of the WebTorrent protocol
	drains  atomic.Bool   // this tracker: its viewers are handed over

	mu    sync.Mutex
	view  *cluster.View          // guarded by mu
	seeds map[signal.ID]seedSeen // guarded by mu
	keys  map[string]keySeen     // guarded by mu, by key ID
	full  time.Time              // guarded by mu: when the log said that a key is not taken
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
	timeout := 3 * cfg.BeatEvery
	r := &roster{
		log: cfg.Log, timeout: timeout, view: cluster.NewView(self, timeout),
		seeds: map[signal.ID]seedSeen{}, keys: map[string]keySeen{},
	}
	r.alone.Store(true)
	return r
}

// tracker notes a beat and says whether the tracker was unknown.
func (r *roster) tracker(b bus.TrackerBeat, now time.Time) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.alone.Store(r.view.Trackers() == 1) }()
	if b.Gone {
		r.view.Gone(b.Tracker)
		return false
	}
	return r.view.Beat(b.Tracker, b.Sessions, b.Draining, now)
}

// seed notes a beat and says whether verify keys changed.
func (r *roster) seed(b bus.SeedBeat, now time.Time) (keysChanged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch _, known := r.seeds[b.Seed]; {
	case b.Gone:
		delete(r.seeds, b.Seed)
	case known || len(r.seeds) < maxSeeds:
		r.seeds[b.Seed] = seedSeen{b, now}
	default:
		return false // nor do its keys take the places of others
	}
	return r.learn(b.VerifyKeys, now)
}

// resting are the swarms of a site that some seed lets rest.
func (r *roster) resting(site string) map[signal.ID]bool {
	all := map[signal.ID]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seeds {
		for _, swarm := range s.beat.Resting[site] {
			all[swarm] = true
		}
	}
	return all
}

// learn notes verify keys. A seed names its own alone: a packager's come from the configuration. One that there is no room for is not
// taken: seeds that all beat would else push out each other's, and each beat would be a change that every session is told. Under mu.
func (r *roster) learn(keys []bus.SeedKey, now time.Time) (changed bool) {
	for _, k := range keys {
		if k.Alg != signal.AlgSeed {
			continue
		}
		old, known := r.keys[string(k.KeyID)]
		if !known && len(r.keys) >= signal.MaxKeys && !r.dropOldestKey(now) {
			if now.Sub(r.full) >= hintEvery {
				r.full = now
				r.log.Warn("the key of a seed is not taken: there are more seeds than viewers are told keys of, and viewers take nothing that this one signs",
					"key", hex.EncodeToString(k.KeyID), "keys", signal.MaxKeys, "read", "docs/operations/sizing.md")
			}
			continue
		}
		if !known || !bytes.Equal(old.key.Key, k.Key) || !slices.Equal(old.key.Sites, k.Sites) {
			changed = true
		}
		r.keys[string(k.KeyID)] = keySeen{k, now}
	}
	return changed
}

// dropOldestKey makes room, unless every key is of a seed that beats. Under mu.
func (r *roster) dropOldestKey(now time.Time) (dropped bool) {
	oldest := ""
	for id, k := range r.keys {
		if oldest == "" || k.at.Before(r.keys[oldest].at) {
			oldest = id
		}
	}
	if now.Sub(r.keys[oldest].at) <= r.timeout {
		return false
	}
	delete(r.keys, oldest)
	return true
}

// asked notes whether a tracker answered. One that did not is home to nothing until it beats again, and for longer if it had not before.
func (r *roster) asked(id signal.ID, answered bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Asked(id, answered, now)
}

// drain notes that this tracker is home to nothing any more, as long as another one is there.
func (r *roster) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Drain()
	r.drains.Store(true)
}

// load counts the other trackers that take sessions, and the sessions that these said they have.
func (r *roster) load() (trackers, sessions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view.Others()
}

// live counts the trackers that live, this one among them.
func (r *roster) live() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view.Trackers()
}

// lives says whether a tracker beats.
func (r *roster) lives(id signal.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view.Lives(id)
}

// reached lists the trackers that can be reached over the bus, this one among them.
func (r *roster) reached() map[swarm.ID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view.Reached()
}

// teach notes verify keys that another tracker knows.
func (r *roster) teach(keys []bus.SeedKey, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learn(keys, now)
}

// serves says whether a seed beats.
func (r *roster) serves(seed signal.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.seeds[seed]
	return ok
}

// expire forgets trackers and seeds that have not beaten for a while.
func (r *roster) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Expire(now)
	r.alone.Store(r.view.Trackers() == 1)
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

// homeOf is the tracker that a swarm, or a part of one, has its home at.
func (r *roster) homeOf(key signal.ID) signal.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view.Home(key)
}

// able lists the seeds that would serve a swarm of a site, best first: the same for every viewer of the swarm, so that the origin is
// asked once. Under mu.
func (r *roster) able(site string, id signal.ID) []signal.ID {
	var able []swarm.ID
	for seed, s := range r.seeds {
		if !s.beat.Draining && s.beat.LoadPermille < 1000 && slices.Contains(s.beat.Sites, site) {
			able = append(able, seed)
		}
	}
	return swarm.Order(able, id)
}

// keysFor lists the verify keys of a site in a stable order. Of more than most, those go that were heard of least recently.
func (r *roster) keysFor(site string, most int) []signal.VerifyKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	var seen []keySeen
	for _, k := range r.keys {
		if slices.Contains(k.key.Sites, site) {
			seen = append(seen, k)
		}
	}
	if len(seen) > most {
		slices.SortFunc(seen, func(a, b keySeen) int { return cmp.Or(b.at.Compare(a.at), bytes.Compare(a.key.KeyID, b.key.KeyID)) })
		seen = seen[:most]
	}
	slices.SortFunc(seen, func(a, b keySeen) int { return bytes.Compare(a.key.KeyID, b.key.KeyID) })
	out := make([]signal.VerifyKey, len(seen))
	for i, k := range seen {
		out[i] = k.key.VerifyKey
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
