package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestAForgedOriginIsAViewerLikeAny: a browser says whose page connects, and a foreign page is refused. A program says what it
// likes: on a public site it is a viewer then, with what any viewer has; where tokens are asked for it needs one like any other.
func TestAForgedOriginIsAViewerLikeAny(t *testing.T) {
	_, closed, _ := guarded(t, nil, configured.Policy{})
	open := newWorld(t).tracker(nil)
	for _, n := range []*node{open, closed} {
		if _, r, err := n.dial("https://rider.example"); err == nil || r == nil || r.StatusCode != 403 {
			t.Errorf("the page of another domain: %v, %v", r, err)
		}
	}
	for _, origin := range []string{testOrigin, "https://VIDEO.example.com:443"} { // forged
		for _, n := range []*node{open, closed} {
			v := n.program(origin)
			v.send(&signal.Hello{Request: 3, Version: 1, Client: "rider/1", Site: "demo"})
			switch m := v.next().(type) {
			case *signal.Welcome:
				if n == closed || m.Policy.Role != configured.RoleFull || len(m.VerifyKeys) > 0 {
					t.Errorf("%q: %+v", origin, m)
				}
			case *signal.Error:
				if n == open || m.Code != "token-required" {
					t.Errorf("%q: %+v", origin, m)
				}
			}
		}
	}
}

// program is a socket that says any Origin.
func (n *node) program(origin string) *viewer {
	n.world.t.Helper()
	ws, r, err := n.dial(origin)
	if err != nil {
		n.world.t.Fatal(err)
	}
	_ = r.Body.Close()
	n.world.t.Cleanup(func() { _ = ws.Close() })
	return &viewer{t: n.world.t, ws: ws}
}

// TestATokenShownAgainOpensNoMore: a token that was read off a page is good for its titles, its subject and its life, and for
// nothing that comes after.
func TestATokenShownAgainOpensNoMore(t *testing.T) {
	w, n, b := guarded(t, func(c *Config) { c.MaxPerSubject = 2 }, configured.Policy{})
	token := b.token(b.key(access.EdDSA, "one"), access.Claims{Subject: "viewer-7", Titles: []string{testTitle}})
	for range 2 {
		v, _ := n.enter(token, "")
		if e := v.joins("/other", "/other/m.m3u8"); e == nil || e.Code != "bad-title" {
			t.Errorf("%+v", e)
		}
	}
	again := func() string {
		v := n.socket()
		v.send(&signal.Hello{Version: 1, Site: "demo", Token: token})
		return expect[*signal.Error](v).Code
	}
	if code := again(); code != "too-many-sessions" {
		t.Errorf("the third session by one token: %s", code)
	}
	w.clock.Move(10 * time.Minute)
	if code := again(); code != "token-expired" {
		t.Errorf("after its end: %s", code)
	}
}
