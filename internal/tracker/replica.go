package tracker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// replica is this tracker among the others: its ID, its configuration, the bus, and the roster of those that live. Every part of the
// tracker has it. Nothing of it changes after New, except the roster and the audience, which have locks of their own, and a number.
type replica struct {
	secrets
	cfg     Config
	id      signal.ID
	started time.Time
	bus     Bus
	sites   map[string]*configured.Site
	roster  *roster
	// audience is what the viewers of this tracker watch.
	audience *audience
	// asked numbers the requests to homes, of all sessions: a session that has come back on another socket repeats none of the old one's.
	asked atomic.Uint64
}

func newReplica(cfg Config, b Bus) *replica {
	r := &replica{secrets: newSecrets(&cfg), cfg: cfg, id: newID(), started: cfg.Now(), bus: b, sites: map[string]*configured.Site{}}
	for _, s := range cfg.Sites {
		r.sites[s.Name()] = s
	}
	r.roster = newRoster(r.id, cfg)
	r.audience = newAudience(&r.cfg, &r.secrets)
	return r
}

// Collect tells the figures of titles.
func (r *replica) Collect(tell func(d *metric.Def, v float64, labels ...string)) {
	r.audience.collect(tell)
}

// Deliveries are what the viewers of this tracker received since its start, by site.
func (r *replica) Deliveries() []Delivery {
	all := r.audience.deliveries()
	for i := range all {
		d := &all[i]
		rests := r.roster.resting(d.Site)
		d.Resting = len(rests)
		for i := range d.Titles {
			t := &d.Titles[i]
			t.Rests = t.Title != "" && rests[r.secrets.swarmID(d.Site, t.Title)]
		}
	}
	return all
}

// ID names this replica.
func (r *replica) ID() signal.ID { return r.id }

// Settings are those of New, with the defaults filled in.
func (r *replica) Settings() *Config { return &r.cfg }

// Live counts the trackers that this one hears, itself among them.
func (r *replica) Live() int { return r.roster.live() }

// Alone says that no other tracker lives.
func (r *replica) Alone() bool { return r.roster.alone.Load() }

// Lives says whether a tracker beats.
func (r *replica) Lives(id signal.ID) bool { return r.roster.lives(id) }

// Connected says whether the bus reaches other trackers.
func (r *replica) Connected() bool { return r.bus.Connected() }

// HomeOf is the tracker that a swarm, or a part of one, has its home at: this one while there is no bus to another.
func (r *replica) HomeOf(key signal.ID) signal.ID {
	if !r.bus.Connected() {
		return r.id
	}
	return r.roster.homeOf(key)
}

// reached lists the trackers whose sessions can be reached, this one among them.
func (r *replica) reached() map[swarm.ID]bool {
	if !r.bus.Connected() {
		return map[swarm.ID]bool{r.id: true}
	}
	return r.roster.reached()
}

// isSeed says whether a seed with this ID beats. The ID of a tracker is no seed's, even if a beat of seeds names it.
func (r *replica) isSeed(id signal.ID) bool {
	return id != r.id && r.roster.serves(id) && !r.roster.lives(id)
}

// Moved counts a membership that is registered with another home.
func (r *replica) Moved(reason string) { r.cfg.Metrics.Add(defMoves, 1, reason) }

// refuseSeed counts a message of a seed that is dropped.
func (r *replica) refuseSeed(reason string) { r.cfg.Metrics.Add(defSeedRefused, 1, reason) }

// Publish sends a message. A message that cannot be sent is logged only: everything on the bus is repeated, or asked for again.
// While the bus is lost nothing is sent, since it would arrive when it is not true any more.
func (r *replica) Publish(subject string, m bus.Message) {
	if !r.bus.Connected() {
		return
	}
	b, err := bus.Encode(m)
	if err == nil {
		err = r.bus.Publish(subject, b)
	}
	if err != nil {
		r.cfg.Log.Warn("bus message not sent", "kind", bus.Kind(subject), "error", err)
	}
}

// request asks another replica and reads its answer.
func (r *replica) request(subject string, m, answer bus.Message) error {
	b, err := bus.Encode(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if b, err = r.bus.Request(ctx, subject, b); err != nil {
		return err
	}
	return bus.Decode(b, answer)
}

// decode reads a message of the bus. A malformed message is dropped: a replica of another version must not stop this one.
func (r *replica) decode(data []byte, m bus.Message) bool {
	if err := bus.Decode(data, m); err != nil {
		r.cfg.Log.Warn("bus message dropped", "error", err)
		return false
	}
	return true
}
