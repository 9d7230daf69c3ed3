package tracker

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// memberships are the swarms that a session is in, each with the home that it is registered at.
type memberships struct {
	asker *asker

	mu  sync.Mutex                // before ruling.mu and roster.mu
	all map[signal.ID]*membership // guarded by mu
}

// membership is a session's part in one swarm. Guarded by memberships.mu.
type membership struct {
	join    bus.HomeRequest // as it was last sent, to be sent again when the home changes
	asked   string          // the role that the viewer asked for
	viewers int
	// manifest is the one that the swarm's seeds follow, as its home said last.
	manifest string
	home     signal.ID
	part     cluster.Part // of the swarm
	stats    time.Time    // of the last report, or of the first join
	started  bool         // its startup delay is known
	banned   bool         // its home said so last
	seen     time.Time    // when the home last heard of the member
}

// key is what the member's home is found by. Under mu.
func (m *membership) key() signal.ID { return m.part.Key(m.join.Swarm) }

// updateRequest says to the home what the viewer said last. Under mu.
func (m *membership) updateRequest() bus.HomeRequest {
	j := &m.join
	return bus.HomeRequest{
		Op: bus.OpUpdate, Tracker: j.Tracker, Session: j.Session, Swarm: j.Swarm, Range: j.Range, Saturated: j.Saturated,
		Want: j.Want, Learns: j.Learns, RTTMs: j.RTTMs,
	}
}

// enter notes a membership before its home is asked for it; nil says that the session is in so many swarms as it may. The policy is
// read under mu, so that a change of it either is seen here or finds the member (regroup).
func (ms *memberships) enter(r *bus.HomeRequest, asked string, rule *ruling, most int, now time.Time) *membership {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	old := ms.all[r.Swarm]
	if old == nil && len(ms.all) >= most {
		return nil
	}
	policy := rule.allowed()
	r.Role = roleOf(policy, asked)
	again := *r
	again.Offers, again.Rejoin = 0, true
	member := &membership{join: again, asked: asked, stats: now, seen: now}
	if policy.Role == configured.RoleOff {
		member.asked = configured.RoleFull // it said what it was told, and not what it would be
	}
	if old != nil {
		member.stats, member.started, member.part = old.stats, old.started, old.part
	}
	member.home = ms.asker.HomeOf(member.key())
	ms.enters(member)
	if old != nil {
		ms.exits(old)
	}
	ms.all[r.Swarm] = member
	return member
}

func (ms *memberships) get(swarm signal.ID) *membership {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.all[swarm]
}

// drop takes a membership out; nil if there is none.
func (ms *memberships) drop(swarm signal.ID) *membership {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	member := ms.all[swarm]
	if member != nil {
		ms.exits(member)
	}
	delete(ms.all, swarm)
	return member
}

// clear takes all memberships out.
func (ms *memberships) clear() []*membership {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	left := slices.Collect(maps.Values(ms.all))
	for _, m := range left {
		ms.exits(m)
	}
	clear(ms.all)
	return left
}

// count adds to the viewers of a member's role. Under mu.
func (ms *memberships) count(m *membership, by float64) {
	ms.asker.cfg.Metrics.Add(defViewers, by, m.join.Site, m.join.Role)
}

// enters and exits count a member as a viewer of its title. Under mu.
func (ms *memberships) enters(m *membership) {
	ms.count(m, 1)
	ms.asker.audience.count(m.join.Site, m.join.Title, 1, ms.asker.cfg.Now())
}

func (ms *memberships) exits(m *membership) {
	ms.count(m, -1)
	ms.asker.audience.count(m.join.Site, m.join.Title, -1, ms.asker.cfg.Now())
}

// answered takes over what a home says of its swarm. A home that did not answer is joined again at the next beat.
func (ms *memberships) answered(m *membership, answer *bus.HomeAnswer, ok bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.viewers, m.banned, m.manifest = answer.Viewers, answer.Banned, answer.Manifest
	if !ok {
		m.home = signal.ID{}
	}
}

// said takes over an update of the viewer, and returns what its home is to be told; nil if the session is not in the swarm.
func (ms *memberships) said(u *signal.Update, rttMs int, learns *int, now time.Time) (*membership, bus.HomeRequest) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.all[u.Swarm]
	if m == nil {
		return nil, bus.HomeRequest{}
	}
	j := &m.join
	if u.Range != nil {
		j.Range = u.Range
	}
	j.Saturated, j.Want, j.Learns, j.RTTMs = u.Saturated, u.Want, learns, rttMs
	m.seen = now
	return m, m.updateRequest()
}

// split has a member belong to another part of its swarm. Under mu.
func (m *membership) split(to *bus.Part) { m.part = cluster.Part{Number: to.Part, Level: to.Level} }

// rejoin registers a member with its home again, that of another part if one is given; introductions come by delivery.
func (ms *memberships) rejoin(m *membership, to *bus.Part, reason string) {
	ms.mu.Lock()
	if to != nil {
		m.split(to)
	}
	m.home = ms.asker.HomeOf(m.key())
	r := m.join
	ms.mu.Unlock()
	ms.asker.Moved(reason)
	ms.tellHome(m, &r)
}

// regroup has the homes know the group and the roles of the session, where they are others.
func (ms *memberships) regroup(group string, policy signal.Policy, reason string) {
	var moved []*membership
	ms.mu.Lock()
	for _, m := range ms.all {
		if role := roleOf(policy, m.asked); m.join.Group != group || m.join.Role != role {
			ms.count(m, -1)
			m.join.Group, m.join.Role = group, role
			ms.count(m, 1)
			moved = append(moved, m)
		}
	}
	ms.mu.Unlock()
	for _, m := range moved {
		ms.rejoin(m, nil, reason)
	}
}

// allow returns the first error that a check gives for a title and manifest of the session.
func (ms *memberships) allow(check func(title, manifest string) error) error {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.all {
		if err := check(m.join.Title, m.join.Manifest); err != nil {
			return err
		}
	}
	return nil
}

// told is what signals of a member say of its swarm: the part, whether its home has banned it, and the title for seeds; nil while the
// home has named no manifest.
func (ms *memberships) told(swarm signal.ID) (part uint32, banned bool, title *bus.Title) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.all[swarm]
	if m == nil {
		return 0, false, nil
	}
	if m.manifest != "" { // the home's word, not the viewer's
		title = &bus.Title{Site: m.join.Site, Title: m.join.Title, Manifest: m.manifest, Swarm: swarm, Viewers: max(1, m.viewers)}
	}
	return m.part.Number, m.banned, title
}

// reported notes a report of statistics, and returns how long it may speak of beyond slack, and whether it is the first with a startup
// delay. The viewer's own interval counts only as far as the tracker's clock agrees.
func (ms *memberships) reported(m *membership, r *signal.Stats, now time.Time) (interval time.Duration, startup bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	interval = min(time.Duration(min(r.Interval, maxInterval))*time.Millisecond, now.Sub(m.stats))
	startup = r.StartupMs > 0 && !m.started
	m.stats, m.started = now, m.started || startup
	return interval, startup
}

// keepAlive is an update that the tracker sends for a silent viewer. It says all that a join does, so that a home that
// forgot the member takes it in again.
type keepAlive struct {
	member  *membership
	request bus.HomeRequest
}

// maintain joins swarms again whose home has changed, and keeps members alive that say nothing.
func (ms *memberships) maintain(now time.Time) {
	var again []*membership
	var keep []keepAlive
	ms.mu.Lock()
	for _, m := range ms.all {
		switch home := ms.asker.HomeOf(m.key()); {
		case home != m.home:
			m.seen = now
			again = append(again, m)
		case now.Sub(m.seen) > ms.asker.cfg.UpdateInterval:
			// The socket lives (its pings are answered) and the page says nothing, as throttled tabs do.
			m.seen = now
			r := m.join
			r.Op, r.Rejoin = bus.OpUpdate, true
			keep = append(keep, keepAlive{m, r})
		}
	}
	ms.mu.Unlock()
	for _, m := range again {
		ms.rejoin(m, nil, "home")
	}
	for _, k := range keep {
		ms.tellHome(k.member, &k.request)
	}
}

// askHome asks a swarm's home and waits; where the swarm is parted, the home of the member's part. If a home does not answer, the next
// in rank is asked. ok is false when none answered: the viewer plays on, and the swarm is
// joined again once there is a home.
func (ms *memberships) askHome(m *membership, r *bus.HomeRequest) (answer bus.HomeAnswer, ok bool) {
	for silent, parted := 0, 0; silent < 2 && parted <= cluster.MaxLevel; {
		home := ms.address(m, r)
		answer = bus.HomeAnswer{}
		switch err := ms.asker.ask(home, r, &answer); {
		case err != nil:
			silent++
			ms.asker.cfg.Log.Warn("home did not answer", "op", r.Op, "error", err)
			ms.takeBack(home, r)
			ms.mu.Lock()
			m.home = ms.asker.HomeOf(m.key())
			again := m.home == home
			ms.mu.Unlock()
			if again {
				return bus.HomeAnswer{}, false
			}
		case r.Op == bus.OpJoin && answer.Split != nil:
			parted++
			ms.mu.Lock()
			m.split(answer.Split)
			m.home = ms.asker.HomeOf(m.key())
			ms.mu.Unlock()
		default:
			return answer, true
		}
	}
	return bus.HomeAnswer{}, false
}

// takeBack has a home that did not answer a join in time forget the member. It may only be late, and would then leave the viewer alone for a
// minute with all that it has picked for it, of which the viewer has not heard.
func (ms *memberships) takeBack(home signal.ID, r *bus.HomeRequest) {
	if r.Op == bus.OpJoin {
		leave := *r
		leave.Op, leave.Serial = bus.OpLeave, 0 // with the join's it would be the same request again
		ms.asker.tell(home, &leave)
	}
}

// address writes on a request which member it is of, and says where it goes.
func (ms *memberships) address(m *membership, r *bus.HomeRequest) (home signal.ID) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	r.Tracker, r.Session, r.Swarm = m.join.Tracker, m.join.Session, m.join.Swarm
	r.Part, r.Level = m.part.Number, m.part.Level
	if !ms.asker.Connected() {
		return ms.asker.id
	}
	return m.home
}

// tellHome tells a swarm's home what wants no answer.
func (ms *memberships) tellHome(m *membership, r *bus.HomeRequest) {
	ms.asker.tell(ms.address(m, r), r)
}
