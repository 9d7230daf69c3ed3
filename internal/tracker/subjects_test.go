package tracker

import (
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// opens tries to open a session with a token: an error or a welcome.
func (n *node) opens(token, ticket string) (*viewer, signal.Message) {
	n.world.t.Helper()
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo", Token: token, Ticket: ticket})
	m := v.next()
	if w, ok := m.(*signal.Welcome); ok {
		v.id, v.ticket = w.Session, w.Ticket
	}
	return v, m
}

func welcomed(m signal.Message) bool {
	_, ok := m.(*signal.Welcome)
	return ok
}

// TestASubjectHasSoManySessionsInTheWholeCluster: a token that is passed round lets in only so many.
func TestASubjectHasSoManySessionsInTheWholeCluster(t *testing.T) {
	few := func(c *Config) { c.MaxPerSubject = 3 }
	w, a, backend := guarded(t, few, configured.Policy{})
	b := w.tracker(func(c *Config) { few(c); c.Sites, c.Tokens = a.cfg.Sites, backend })
	know(t, a, b)
	key := backend.key(access.EdDSA, "k")
	shared := backend.token(key, access.Claims{Subject: "user-7"})
	var open []*viewer
	for i, n := range []*node{a, b, a} {
		v, m := n.opens(shared, "")
		if !welcomed(m) {
			t.Fatalf("session %d: %+v", i, m)
		}
		open = append(open, v)
	}
	for _, n := range []*node{a, b} {
		v, m := n.opens(shared, "")
		if e, ok := m.(*signal.Error); !ok || e.Code != "too-many-sessions" || e.RetryAfterMs == 0 {
			t.Errorf("a fourth is told %+v", m)
		}
		if code := v.closed(); code != closePolicy {
			t.Errorf("and closed with %d", code)
		}
	}
	for _, other := range []access.Claims{{Subject: "user-8"}, {}} {
		if _, m := b.opens(backend.token(key, other), ""); !welcomed(m) {
			t.Errorf("another subject, or none, is told %+v", m)
		}
	}
	// A session that moves to another tracker keeps its place; what the old tracker says of its end comes too late.
	moved, m := b.opens(shared, open[0].ticket)
	if !welcomed(m) || moved.id != open[0].id {
		t.Fatalf("a session that comes back is told %+v", m)
	}
	open[0].closed()
	if _, m := a.opens(shared, ""); welcomed(m) {
		t.Error("a session that moved made room for another")
	}
	_ = moved.ws.Close()
	testkit.Eventually(t, "room for another", func() bool { _, m := a.opens(shared, ""); return welcomed(m) })
}

// TestPlacesOfASubjectMoveWithTheirHome: whichever tracker ends, the sessions that are left are counted.
func TestPlacesOfASubjectMoveWithTheirHome(t *testing.T) {
	one := func(c *Config) { c.MaxPerSubject = 1 }
	w, a, backend := guarded(t, one, configured.Policy{})
	key := backend.key(access.EdDSA, "k")
	var tokens []string // of so many subjects that the second tracker is home to one
	for i := range 16 {
		tokens = append(tokens, backend.token(key, access.Claims{Subject: fmt.Sprint(i)}))
		if _, m := a.opens(tokens[i], ""); !welcomed(m) {
			t.Fatalf("%+v", m)
		}
	}
	b := w.tracker(func(c *Config) { one(c); c.Sites, c.Tokens = a.cfg.Sites, backend })
	know(t, a, b)
	moved := -1
	for i := range tokens {
		if a.HomeOf(a.subjectID("demo", fmt.Sprint(i))) == b.id {
			moved = i
		}
	}
	if moved < 0 {
		t.Fatal("the new tracker is home to none of sixteen subjects")
	}
	testkit.Eventually(t, "the new home has heard of the session", func() bool {
		v, m := b.opens(tokens[moved], "")
		_ = v.ws.Close() // if it was let in, it is counted no more
		return !welcomed(m)
	})
}

// TestARenewalIsOfTheSameSubject: else one place, and one vote, would serve many.
func TestARenewalIsOfTheSameSubject(t *testing.T) {
	w, n, backend := guarded(t, nil, configured.Policy{})
	key := backend.key(access.EdDSA, "k")
	v, m := n.opens(backend.token(key, access.Claims{Subject: "user-7"}), "")
	if !welcomed(m) {
		t.Fatalf("%+v", m)
	}
	for _, other := range []string{"user-8", ""} {
		v.send(&signal.Token{Request: 3, Token: backend.token(key, access.Claims{Subject: other})})
		if e := expect[*signal.Error](v); e.Code != "bad-token" || e.Request != 3 {
			t.Errorf("a token of %q: %+v", other, e)
		}
	}
	if got := w.metrics.Value(defTokens, string(access.OtherSubject)); got != 2 {
		t.Errorf("%v are counted", got)
	}
	v.send(&signal.Token{Request: 4, Token: backend.token(key, access.Claims{Subject: "user-7"})})
	expect[*signal.Granted](v)
}
