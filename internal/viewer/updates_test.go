package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// newUpdates are those of a session that is ready, and what its tracker was told.
func newUpdates(t *testing.T) (*updates, *script, func() []*signal.Update) {
	p := newScript(greet)
	p.w.run(time.Millisecond)
	if p.state != sessionReady {
		t.Fatalf("the session is %s", p.state)
	}
	l := newLinks(p.w, nil, nil, nil)
	l.terms = linkTerms{role: "full", most: 4}
	u := &updates{timers: newTimers(p.w), session: p.session, links: l, span: func() *signal.Range { return nil }, sendStats: func() {}}
	return u, p, func() (list []*signal.Update) {
		for _, m := range p.sockets[0].sent {
			if m, ok := m.(*signal.Update); ok {
				list = append(list, m)
			}
		}
		return list
	}
}

func TestUpdates(t *testing.T) {
	u, p, told := newUpdates(t)
	u.soon()
	if p.w.run(time.Second); len(told()) != 0 {
		t.Error("told of no swarm")
	}
	reports := 0
	u.sendStats = func() { reports++ }
	swarm := signal.ID{7}
	u.begin(swarm, &signal.Welcome{UpdateEvery: 1000, StatsInterval: 500})
	if p.w.run(2100 * time.Millisecond); len(told()) != 2 || reports != 4 || told()[0].Swarm != swarm || told()[0].Want != 4 || told()[0].Saturated {
		t.Fatalf("%d updates and %d reports in two seconds: %+v", len(told()), reports, told())
	}
	u.lastWant = 4
	u.links.terms.most = 0
	for range 3 { // together with what else changes soon
		u.soon()
		p.w.run(updateDebounce / 4)
	}
	if p.w.run(updateDebounce / 4); len(told()) != 3 || !told()[2].Saturated {
		t.Errorf("%d updates after changes", len(told()))
	}
	u.stop()
	if p.w.run(time.Minute); len(told()) != 3 {
		t.Errorf("%d updates after the end", len(told()))
	}
}

// TestWhichChangesAreTold: those after which the tracker should introduce more peers.
func TestWhichChangesAreTold(t *testing.T) {
	for _, c := range []struct {
		want, last int
		open       bool
		told       bool
	}{{4, 4, true, false}, {4, 3, true, true}, {3, 4, true, false}, {3, 4, false, true}} {
		u, p, _ := newUpdates(t)
		u.swarm, u.lastWant, u.links.terms.most = signal.ID{7}, c.last, c.want
		if c.open {
			u.links.entries[signal.ID{1}] = &link{peer: signal.ID{2}, state: linkOpen}
			u.links.terms.most++
		}
		if u.changed(); u.timers.isSet("soon") != c.told {
			t.Errorf("want %d after %d, a link is open: %v: told %v", c.want, c.last, c.open, !c.told)
		}
		_ = p
	}
}
