package tracker

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/jwtauth"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// backend is what signs tokens for the site demo: the keys that trackers check them with.
type backend struct {
	t    *testing.T
	w    *world
	mu   sync.Mutex
	keys access.Keys // guarded by mu
}

func (b *backend) Check(site, token string, now time.Time) (*access.Grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return jwtauth.Check(token, site, b.keys, now)
}

func (b *backend) Holds(_, keyID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.keys.Find(keyID)
	return ok
}

// key adds one.
func (b *backend) key(alg, id string) access.Key {
	b.t.Helper()
	k, err := access.NewKey(alg, id)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = append(b.keys, k)
	return k
}

func (b *backend) drop(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left access.Keys
	for _, k := range b.keys {
		if k.ID != id {
			left = append(left, k)
		}
	}
	b.keys = left
}

// token is good for five minutes, if claims say nothing else.
func (b *backend) token(key access.Key, claims access.Claims) string {
	b.t.Helper()
	if claims.Site == "" {
		claims.Site = "demo"
	}
	if claims.Expires.IsZero() {
		claims.Expires = b.w.clock.Now().Add(5 * time.Minute)
	}
	token, err := jwtauth.Sign(claims, key)
	if err != nil {
		b.t.Fatal(err)
	}
	return token
}

// guarded is a tracker whose site asks for tokens, which may be changed.
func guarded(t *testing.T, change func(*Config), policy configured.Policy) (*world, *node, *backend) {
	t.Helper()
	w := newWorld(t)
	b := &backend{t: t, w: w}
	return w, w.tracker(func(c *Config) {
		c.Sites, c.Tokens = oneSite(t, configured.Config{Access: configured.AccessToken, Policy: policy}), b
		if change != nil {
			change(c)
		}
	}), b
}

// enter opens a session by a token.
func (n *node) enter(token, ticket string) (*viewer, *signal.Welcome) {
	n.world.t.Helper()
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Client: "test/1", Site: "demo", Token: token, Ticket: ticket})
	w := expect[*signal.Welcome](v)
	v.id, v.ticket = w.Session, w.Ticket
	return v, w
}

// TestATokenOfFiveMinutesWatchesForFifteen renews on the open socket: the session, its swarm and its introductions stay, by the
// tracker's clock, and a viewer that comes late is introduced.
func TestATokenOfFiveMinutesWatchesForFifteen(t *testing.T) {
	w, n, b := guarded(t, nil, configured.Policy{})
	key := b.key(access.EdDSA, "one")
	v, welcome := n.enter(b.token(key, access.Claims{Titles: []string{testTitle}}), "")
	if left := time.UnixMilli(welcome.TokenExpires).Sub(w.clock.Now()); left < 4*time.Minute || left > 5*time.Minute {
		t.Fatalf("the token is good for %v", left)
	}
	joined := v.join().Swarm
	for minute := 3; minute <= 15; minute += 3 {
		w.clock.Move(3 * time.Minute)
		v.send(&signal.Token{Request: minute, Token: b.token(key, access.Claims{Titles: []string{"/media/*"}})})
		g := expect[*signal.Granted](v)
		if left := time.UnixMilli(g.TokenExpires).Sub(w.clock.Now()); g.Request != minute || left < 4*time.Minute {
			t.Fatalf("minute %d: %+v, which leaves %v", minute, g, left)
		}
		// Time that jumps makes a silent member of it: the next viewer waits until it has been heard again.
		jumped := w.clock.Now()
		v.send(&signal.Update{Swarm: joined, Want: 1})
		testkit.Eventually(t, "the home has heard of the member", func() bool { return n.member(v.id).Seen.After(jumped) })
		late, _ := n.enter(b.token(key, access.Claims{}), "")
		late.join()
		if p := expect[*signal.Introduce](late).Peers; !knows(p, v.id) {
			t.Errorf("minute %d: a newcomer met %+v", minute, p)
		}
		link := newID()
		late.send(&signal.Signal{Swarm: joined, To: v.id, Link: link, Kind: "offer", SDP: "v=0", Plan: testPlan})
		if offer := expect[*signal.Signal](v); offer.From != late.id || offer.Link != link {
			t.Errorf("minute %d: %+v", minute, offer)
		}
		_ = late.ws.Close()
	}
	if granted, renewed, lapsed := w.metrics.Value(defTokens, tokenGranted), w.metrics.Value(defTokens, tokenRenewed), w.metrics.Value(defTokens, tokenLapsed); granted != 6 || renewed != 5 || lapsed != 0 {
		t.Errorf("%v granted, %v renewed, %v lapsed", granted, renewed, lapsed)
	}
}

// member is what this tracker's swarms know of a session.
func (n *node) member(id signal.ID) (m swarm.Member) {
	n.home.mu.Lock()
	defer n.home.mu.Unlock()
	for _, s := range n.home.swarms {
		if found := s.Member(id); found != nil {
			m = *found
		}
	}
	return m
}

func knows(peers []signal.Peer, id signal.ID) bool {
	for _, p := range peers {
		if p.Peer == id {
			return true
		}
	}
	return false
}

func TestAViewerWithoutAGoodTokenIsTurnedAway(t *testing.T) {
	w, n, b := guarded(t, nil, configured.Policy{})
	key := b.key(access.HS256, "one")
	stranger, err := access.NewKey(access.HS256, "one")
	if err != nil {
		t.Fatal(err)
	}
	past := access.Claims{Expires: w.clock.Now().Add(-time.Second)}
	for _, c := range []struct {
		token, code string
		outcome     access.Reason
	}{
		{"", "token-required", access.Missing},
		{"sesame", "bad-token", access.Malformed},
		{strings.Repeat("s", access.MaxToken+1), "bad-token", access.TooLong},
		{b.token(stranger, access.Claims{}), "bad-token", access.Signature},
		{b.token(key, access.Claims{Site: "other"}), "bad-token", access.OtherSite},
		{b.token(key, past), "token-expired", access.Expired},
	} {
		v := n.socket()
		v.send(&signal.Hello{Request: 4, Version: 1, Site: "demo", Token: c.token})
		e := expect[*signal.Error](v)
		if e.Code != c.code || e.Request != 4 || e.Message == "" || e.Hint == "" {
			t.Errorf("%s: %+v", c.outcome, e)
		}
		if code := v.closed(); code != closePolicy {
			t.Errorf("%s: closed with %d", c.outcome, code)
		}
		if got := w.metrics.Value(defTokens, string(c.outcome)); got != 1 {
			t.Errorf("%s: counted %v times", c.outcome, got)
		}
	}
	// A ticket opens nothing by itself.
	first, _ := n.enter(b.token(key, access.Claims{}), "")
	again := n.socket()
	again.send(&signal.Hello{Version: 1, Site: "demo", Ticket: first.ticket})
	if e := expect[*signal.Error](again); e.Code != "token-required" {
		t.Errorf("%+v", e)
	}
	if back, _ := n.enter(b.token(key, access.Claims{}), first.ticket); back.id != first.id {
		t.Errorf("with both it came back as %v, was %v", back.id, first.id)
	}
}

func TestATokenThatRanOutEndsItsSessionAfterAGrace(t *testing.T) {
	w, n, b := guarded(t, nil, configured.Policy{})
	key := b.key(access.EdDSA, "one")
	v, _ := n.enter(b.token(key, access.Claims{}), "")
	v.join()
	// One that is no good changes nothing; the one before holds.
	v.send(&signal.Token{Request: 5, Token: "sesame"})
	if e := expect[*signal.Error](v); e.Code != "bad-token" || e.Request != 5 {
		t.Errorf("%+v", e)
	}
	v.send(&signal.Token{Request: 6, Token: b.token(key, access.Claims{Titles: []string{"/other"}})})
	if e := expect[*signal.Error](v); e.Code != "bad-token" || e.Request != 6 || !strings.Contains(e.Message, "title") {
		t.Errorf("%+v", e)
	}
	w.clock.Move(5 * time.Minute)
	if e := expect[*signal.Error](v); e.Code != "token-expired" || e.Request != 0 {
		t.Fatalf("%+v", e)
	}
	// Within the grace another saves it.
	v.send(&signal.Token{Request: 7, Token: b.token(key, access.Claims{})})
	expect[*signal.Granted](v)
	w.clock.Move(5 * time.Minute)
	expect[*signal.Error](v)
	w.clock.Move(10 * time.Second)
	if e := expect[*signal.Error](v); e.Code != "token-expired" {
		t.Errorf("%+v", e)
	}
	if code := v.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
	if got := w.metrics.Value(defTokens, tokenLapsed); got != 1 {
		t.Errorf("%v sessions lapsed", got)
	}
}

func TestTheEighthBadTokenEndsTheSession(t *testing.T) {
	_, n, b := guarded(t, nil, configured.Policy{})
	v, _ := n.enter(b.token(b.key(access.EdDSA, "one"), access.Claims{}), "")
	for range maxBad {
		v.send(&signal.Token{Token: "sesame"})
	}
	if code := v.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
}

func TestKeysAreReplacedWhileSessionsGoOn(t *testing.T) {
	w, n, b := guarded(t, nil, configured.Policy{})
	old := b.key(access.HS256, "old")
	v, _ := n.enter(b.token(old, access.Claims{}), "")
	fresh := b.key(access.EdDSA, "new")
	both, _ := n.enter(b.token(fresh, access.Claims{}), "")
	v.send(&signal.Token{Token: b.token(fresh, access.Claims{})})
	expect[*signal.Granted](v)
	late, _ := n.enter(b.token(old, access.Claims{}), "")
	b.drop("old")
	// A session that still has one of the old key is asked for another, and loses the session without.
	if e := expect[*signal.Error](late); e.Code != "token-expired" {
		t.Errorf("%+v", e)
	}
	w.clock.Move(10 * time.Second)
	if code := late.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
	for _, one := range []*viewer{v, both} {
		one.join()
	}
}

func TestATokenNarrowsTitleRoleAndGroup(t *testing.T) {
	_, n, b := guarded(t, nil, configured.Policy{})
	key := b.key(access.EdDSA, "one")
	v, welcome := n.enter(b.token(key, access.Claims{Titles: []string{testTitle}, Role: "leech", Group: "campus"}), "")
	if welcome.Policy.Role != "leech" {
		t.Errorf("the policy says %s", welcome.Policy.Role)
	}
	v.send(&signal.Join{Request: 2, Title: "another", Role: "full"})
	if e := expect[*signal.Error](v); e.Code != "bad-title" || e.Request != 2 {
		t.Errorf("%+v", e)
	}
	v.join()
	if m := n.member(v.id); m.Role != "leech" || m.Group != "campus" {
		t.Errorf("joined as %+v", m)
	}
	v.send(&signal.Token{Token: b.token(key, access.Claims{Group: "library"})})
	if p := expect[*signal.SetPolicy](v); p.Policy.Role != "full" {
		t.Errorf("by another token the policy says %+v", p.Policy)
	}
	testkit.Eventually(t, "the home knows the new group and role", func() bool {
		m := n.member(v.id)
		return m.Role == "full" && m.Group == "library"
	})
}

// TestCredentialsForRelaysEndWithTheToken: a viewer that is turned away cannot have new allocations.
func TestCredentialsForRelaysEndWithTheToken(t *testing.T) {
	secret, err := access.NewRelaySecret(strings.Repeat("s", 32))
	if err != nil {
		t.Fatal(err)
	}
	w, n, b := guarded(t, func(c *Config) { c.TURNServers = []TURNServer{{URLs: []string{"turn:192.0.2.2"}, Secret: secret}} }, configured.Policy{})
	key := b.key(access.EdDSA, "one")
	until := func(servers []signal.ICEServer, expire int64) time.Time {
		t.Helper()
		u, err := access.ParseRelayUser(servers[0].Username)
		if err != nil || u.Expires.UnixMilli() != expire {
			t.Fatalf("%+v %d %v", servers, expire, err)
		}
		return u.Expires
	}
	v, welcome := n.enter(b.token(key, access.Claims{}), "")
	if end := until(welcome.ICEServers, welcome.Expire); end.UnixMilli() > welcome.TokenExpires {
		t.Errorf("the credentials end at %v, the token at %d", end, welcome.TokenExpires)
	}
	w.clock.Move(3 * time.Minute)
	v.send(&signal.Token{Token: b.token(key, access.Claims{})})
	g := expect[*signal.Granted](v)
	m := expect[*signal.SetServers](v)
	if end := until(m.ICEServers, m.Expire); end.UnixMilli() > g.TokenExpires || end.UnixMilli() <= welcome.TokenExpires {
		t.Errorf("renewed until %v, the token until %d", end, g.TokenExpires)
	}
	long, lasting := n.enter(b.token(key, access.Claims{Expires: w.clock.Now().Add(time.Hour)}), "")
	if left := until(lasting.ICEServers, lasting.Expire).Sub(w.clock.Now()); left > 10*time.Minute {
		t.Errorf("a long token has credentials of %v", left)
	}
	_ = long
}

func TestASiteThatAsksForNoTokenLooksAtNone(t *testing.T) {
	n := newWorld(t).tracker(nil)
	v, welcome := n.enter("sesame", "")
	if welcome.TokenExpires != 0 {
		t.Errorf("a token runs out at %d", welcome.TokenExpires)
	}
	v.send(&signal.Token{Request: 3, Token: "sesame"})
	if e := expect[*signal.Error](v); e.Code != "bad-message" || e.Request != 3 {
		t.Errorf("%+v", e)
	}
}

func TestATrackerWithoutKeysIsClosed(t *testing.T) {
	n := newWorld(t).tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Access: configured.AccessToken})
	})
	for token, code := range map[string]string{"": "token-required", "a.b.c": "bad-token"} {
		v := n.socket()
		v.send(&signal.Hello{Version: 1, Site: "demo", Token: token})
		if e := expect[*signal.Error](v); e.Code != code {
			t.Errorf("%q: %+v", token, e)
		}
	}
}

func TestOutcomesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range tokenOutcomes() {
		if seen[o] {
			t.Errorf("%q is two outcomes", o)
		}
		seen[o] = true
	}
}
