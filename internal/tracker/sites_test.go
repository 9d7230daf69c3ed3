package tracker

import (
	"testing"

	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestSitesOfOneTrackerAreApart: a page of one site reaches nothing of another that the same tracker serves, whatever it says.
func TestSitesOfOneTrackerAreApart(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) {
		for _, name := range []string{"demo", "other"} {
			s, err := configured.New(configured.Config{Name: name, Hosts: []string{name + ".example.com"}})
			if err != nil {
				t.Fatal(err)
			}
			c.Sites = append(c.Sites[:len(c.Sites):len(c.Sites)], s)
		}
		c.Sites = c.Sites[1:] // not the one that comes with the world
	})
	open := func(origin, site, ticket string) (*viewer, signal.Message) {
		ws, r, err := n.dial(origin)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		t.Cleanup(func() { _ = ws.Close() })
		v := &viewer{t: t, ws: ws}
		v.send(&signal.Hello{Version: 1, Site: site, Ticket: ticket})
		m := v.next()
		if welcome, ok := m.(*signal.Welcome); ok {
			v.id, v.ticket = welcome.Session, welcome.Ticket
		}
		return v, m
	}
	const mine, theirs = "https://demo.example.com", "https://other.example.com"
	if _, m := open(theirs, "demo", ""); !refusedAs(m, "bad-origin") {
		t.Errorf("a page of another site that names this one is told %+v", m)
	}
	demo, _ := open(mine, "", "")
	in := demo.join().Swarm
	// A ticket is good at the site that gave it.
	other, m := open(theirs, "", demo.ticket)
	if !welcomed(m) || other.id == demo.id || m.(*signal.Welcome).Resumed {
		t.Errorf("the ticket of another site's session opened %+v", m)
	}
	// The same title is another swarm, and no member of the first is met or reached from it.
	joined := other.join()
	if joined.Swarm == in || joined.Viewers != 1 {
		t.Errorf("joined %+v; the other site's is %s", joined, in)
	}
	for _, m := range []signal.Message{
		&signal.Signal{Request: 5, Swarm: joined.Swarm, To: demo.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan},
		&signal.Signal{Request: 5, Swarm: in, To: demo.id, Link: newID(), Kind: "offer", SDP: "v=0", Plan: testPlan},
		&signal.Update{Request: 5, Swarm: in, Want: 8},
		&signal.Stats{Request: 5, Swarm: in, Interval: 1000, Bytes: map[string]int64{"peer": 5}},
		&signal.Leave{Request: 5, Swarm: in},
	} {
		other.send(m)
		if e := other.next(); !refusedAs(e, "not-introduced") && !refusedAs(e, "not-joined") {
			t.Errorf("%+v is answered %+v", m, e)
		}
	}
	if w.metrics.Value(defReceived, "demo", "peer", "direct", "peer") != 0 || n.members(in) != 1 {
		t.Error("another site's viewer was heard")
	}
}

func refusedAs(m signal.Message, code string) bool {
	e, ok := m.(*signal.Error)
	return ok && e.Code == code
}

// TestViewersDoNotSpeakForTheTracker: what withdraws content, switches a site off or changes keys comes from its operator by the bus.
func TestViewersDoNotSpeakForTheTracker(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	honest, hostile := n.viewer(""), n.viewer("")
	in := honest.join().Swarm
	hostile.join()
	for _, m := range []signal.Message{
		&signal.Revoke{Revocations: []signal.Revocation{{Site: "demo", Prefix: "/", MinIssuedAt: 1_790_000_000_000}}},
		&signal.SetPolicy{Policy: signal.Policy{Role: "off", Relay: "allow", Local: "never", SignedManifests: "off"}},
		&signal.Keys{VerifyKeys: []signal.VerifyKey{{KeyID: make([]byte, 8), Alg: 1, Key: make([]byte, 65)}}},
		&signal.SetServers{ICEServers: []signal.ICEServer{{URLs: []string{"turn:192.0.2.1"}}}},
		&signal.Introduce{Swarm: in, Peers: []signal.Peer{{Peer: honest.id, Role: "viewer"}}},
		&signal.Reconnect{AfterMs: 1},
	} {
		hostile.send(m)
		if e := expect[*signal.Error](hostile); e.Code != "bad-message" {
			t.Errorf("%s is answered %+v", m.Type(), e)
		}
	}
	if list := n.trust.revoked.forSite("demo"); len(list) > 0 || len(n.roster.keysFor("demo", signal.MaxKeys)) > 0 {
		t.Errorf("the tracker has taken in %v", list)
	}
	honest.send(&signal.Leave{Request: 5, Swarm: newID()})
	if m := honest.next(); !refusedAs(m, "not-joined") {
		t.Errorf("another viewer is told %+v", m)
	}
}
