package tracker

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestCredentialsForRelaysAreRenewed before they expire, on the socket that is open, and are of one holder all the while.
func TestCredentialsForRelaysAreRenewed(t *testing.T) {
	secret, err := access.NewRelaySecret(strings.Repeat("s", 32))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	n := w.tracker(func(c *Config) {
		c.ICEServers = []signal.ICEServer{{URLs: []string{"stun:192.0.2.1"}}}
		c.TURNServers = []TURNServer{{URLs: []string{"turn:192.0.2.2", "turns:192.0.2.2"}, Secret: secret}}
	})
	read := func(servers []signal.ICEServer, expireMs int64) access.RelayUser {
		t.Helper()
		if len(servers) != 2 || servers[0].Username != "" || len(servers[1].URLs) != 2 {
			t.Fatalf("told of %+v", servers)
		}
		u, err := access.ParseRelayUser(servers[1].Username)
		if err != nil || secret.Password(servers[1].Username) != servers[1].Credential || u.SecretID != secret.ID() {
			t.Fatalf("credentials %+v: %v", servers[1], err)
		}
		if left := u.Expires.Sub(w.clock.Now()); left < 9*time.Minute || left > 10*time.Minute || u.Expires.UnixMilli() != expireMs {
			t.Errorf("good for %v, until %d is said", left, expireMs)
		}
		return u
	}
	enter := func() (*viewer, *signal.Welcome) {
		t.Helper()
		v := n.socket()
		v.send(&signal.Hello{Version: 1, Client: "test/1", Site: "demo"})
		return v, expect[*signal.Welcome](v)
	}
	v, welcome := enter()
	first := read(welcome.ICEServers, welcome.Expire)
	if first.Site != "demo" || strings.Contains(welcome.ICEServers[1].Username, welcome.Session.String()) {
		t.Errorf("the username tells the session: %+v", first)
	}
	w.clock.Move(5 * time.Minute)
	m := expect[*signal.SetServers](v)
	if again := read(m.ICEServers, m.Expire); again.Name() != first.Name() || !again.Expires.After(first.Expires) {
		t.Errorf("%+v after %+v", again, first)
	}
	if _, other := enter(); read(other.ICEServers, other.Expire).Name() == first.Name() {
		t.Error("two sessions are one holder")
	}
}

func TestRelaysKeepBackOffersMadeBefore(t *testing.T) {
	secret, err := access.NewRelaySecret(strings.Repeat("s", 32))
	if err != nil {
		t.Fatal(err)
	}
	n := newWorld(t).tracker(func(c *Config) { c.TURNServers = []TURNServer{{URLs: []string{"turn:192.0.2.2"}, Secret: secret}} })
	first := n.viewer("")
	first.join()
	if m := expect[*signal.Introduce](n.ahead(newID())); len(m.Peers) != 1 || m.Peers[0].Peer != first.id {
		t.Errorf("introduced to %+v", m.Peers)
	}
}

// TestRelayOnlyOffersGoToNoSeed: a seed would be linked by way of the relay.
func TestRelayOnlyOffersGoToNoSeed(t *testing.T) {
	n := newWorld(t).tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Policy: configured.Policy{Role: configured.RoleRelayOnly}})
	})
	first := n.viewer("")
	first.join()
	late := n.viewer("")
	late.send(&signal.Join{
		Request: 4, Title: testTitle, Manifest: testManifest, Role: "relay-only", Want: 4,
		Offers: []signal.Offer{{Link: newID(), SDP: "v=0", Plan: testPlan}},
	})
	if m := expect[*signal.Introduce](late); len(m.Peers) != 1 || m.Peers[0].Peer != first.id {
		t.Errorf("introduced to %+v", m.Peers)
	}
}
