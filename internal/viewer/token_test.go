package viewer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	tokens "github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/jwtauth"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	tokenLife  = 5 * time.Minute
	tokenGrace = 10 * time.Second
)

// simGuard has a simulated tracker ask for join tokens, as spec/access.md says, with real ones.
type simGuard struct {
	w       *world
	key     tokens.Key
	ends    map[*simSocket]time.Time
	hellos  int
	renewed int
	refused []string
	lapsed  int
}

func newGuard(t testing.TB, w *world) *simGuard {
	t.Helper()
	key, err := tokens.NewKey(tokens.HS256, "k")
	if err != nil {
		t.Fatal(err)
	}
	return &simGuard{w: w, key: key, ends: map[*simSocket]time.Time{}}
}

// mint is the site's backend.
func (g *simGuard) mint() string {
	token, err := jwtauth.Sign(tokens.Claims{Site: "demo", Expires: g.w.now.Add(tokenLife)}, g.key)
	if err != nil {
		panic(err)
	}
	return token
}

func (g *simGuard) check(s *simSocket, id int, token string) (endMs int64, ok bool) {
	grant, err := jwtauth.Check(token, "demo", tokens.Keys{g.key.Checking()}, g.w.now)
	var why *tokens.TokenError
	if errors.As(err, &why) {
		code := "bad-token"
		switch why.Reason {
		case tokens.Missing:
			code = "token-required"
		case tokens.Expired:
			code = "token-expired"
		}
		g.refused = append(g.refused, code)
		s.push(&signal.Error{Request: id, Code: code, Message: why.Problem, Hint: why.Hint})
		return 0, false
	}
	if !g.ends[s].Equal(grant.Expires) {
		g.ends[s] = grant.Expires
		g.w.After(grant.Expires.Sub(g.w.now), func() { g.lapse(s, grant.Expires) })
	}
	return grant.Expires.UnixMilli(), true
}

func (g *simGuard) lapse(s *simSocket, end time.Time) {
	if s.closed || !g.ends[s].Equal(end) {
		return
	}
	s.push(&signal.Error{Code: "token-expired", Message: "The join token has run out."})
	g.w.After(tokenGrace, func() {
		if !s.closed && g.ends[s].Equal(end) {
			g.lapsed++
			s.push(&signal.Error{Code: "token-expired", Message: "The join token has run out."})
			g.w.After(2*oneWay, func() {
				s.t.gone(s)
				s.events.Lost()
			})
		}
	})
}

// admit looks at a hello; without a guard no token is asked for.
func (g *simGuard) admit(s *simSocket, m *signal.Hello) (endMs int64, ok bool) {
	if g == nil {
		return 0, true
	}
	g.hellos++
	return g.check(s, m.Request, m.Token)
}

func (g *simGuard) renew(s *simSocket, m *signal.Token) {
	if endMs, ok := g.check(s, m.Request, m.Token); ok {
		g.renewed++
		s.push(&signal.Granted{Request: m.Request, TokenExpires: endMs})
	}
}

// TestAFilmOfFifteenMinutesByTokensOfFive plays one through real tokens in virtual time: no session and no link ends before the
// film does, and viewers give to each other from its first minute to its last.
func TestAFilmOfFifteenMinutesByTokensOfFive(t *testing.T) {
	s := newScene(t, fourSeconds(225, 64_000))
	s.tracker.guard = newGuard(t, s.w)
	for range 3 {
		s.viewer(fast, func(c *Config) { c.Token = s.tracker.guard.mint })
		s.w.run(5 * time.Second)
	}
	s.w.run(time.Minute)
	opened := make([]int, len(s.viewers))
	for i, a := range s.viewers {
		if opened[i] = a.now().LinksOpened; opened[i] < 3 {
			t.Fatalf("viewer %d has opened %d links", i, opened[i])
		}
	}
	before := s.bytes("peer")
	for minute := 2; minute <= 14; minute++ {
		s.w.run(time.Minute)
		if given := s.bytes("peer") - before; given == 0 {
			t.Errorf("nothing came from viewers in minute %d", minute)
		}
		before = s.bytes("peer")
		for i, a := range s.viewers {
			if sum := a.now(); sum.LinksOpened != opened[i] || len(sum.LinksClosed) > 0 {
				t.Fatalf("minute %d: viewer %d had opened %d links, now %d; closed %v", minute, i, opened[i], sum.LinksOpened, sum.LinksClosed)
			}
		}
	}
	s.w.run(3 * time.Minute)
	s.check()
	g := s.tracker.guard
	// Each is renewed after 150 to 225 s: four to six times in fifteen minutes.
	if g.hellos != 3 || len(g.refused) > 0 || g.lapsed > 0 || g.renewed < 3*4 || g.renewed > 3*7 {
		t.Errorf("%d hellos, %d renewed, %d lapsed, refused %v", g.hellos, g.renewed, g.lapsed, g.refused)
	}
	for i, a := range s.viewers {
		if sum := a.now(); sum.Stats.Stalls > 0 || len(a.notices) > 0 {
			t.Errorf("viewer %d: %d stalls, notices %v", i, sum.Stats.Stalls, a.notices)
		}
	}
}

// TestAViewerWithoutAnotherTokenPlaysFromTheOrigin: a token that ran out costs the session, and no picture.
func TestAViewerWithoutAnotherTokenPlaysFromTheOrigin(t *testing.T) {
	s := newScene(t, fourSeconds(110, 64_000))
	g := newGuard(t, s.w)
	s.tracker.guard = g
	once := g.mint()
	a := s.viewer(fast, func(c *Config) { c.Token = func() string { return once } })
	s.w.run(4 * time.Minute)
	if a.now().Stats.Bytes["seed"] == 0 || len(a.notices) > 0 {
		t.Fatalf("while the token is good: %v, notices %v", a.now().Stats.Bytes, a.notices)
	}
	s.w.run(5 * time.Minute)
	s.check()
	if g.lapsed != 1 || !slices.Contains(a.notices, "refused") {
		t.Errorf("%d lapsed, notices %v", g.lapsed, a.notices)
	}
	if sum := a.now(); sum.Stats.Stalls > 0 {
		t.Errorf("%d stalls", sum.Stats.Stalls)
	}
	// The same token is no other: neither the tracker nor the backend is flooded near its end.
	if n := g.renewed + len(g.refused); n > 20 {
		t.Errorf("shown %d times", n)
	}
	if last := g.refused[len(g.refused)-1]; !strings.HasPrefix(last, "token-") {
		t.Errorf("the last refusal was %s", last)
	}
}

// tokened is a session whose tokens are numbered, and one that tells what was asked for.
func tokened(answer func(*scripted, signal.Message), next func(n int) string) (p *script, asked *[]time.Time) {
	p = &script{w: newWorld(), answer: answer}
	asked = &[]time.Time{}
	p.session = newSession(sessionOptions{
		loop: p.w, dialer: p, random: rand.New(rand.NewPCG(1, 2)), events: p, url: "ws://t/", hello: signal.Hello{Version: 1},
		token: func() string {
			*asked = append(*asked, p.w.now)
			return next(len(*asked))
		},
	})
	p.session.start()
	return p, asked
}

func TestATokenIsTriedAgainWithBackOff(t *testing.T) {
	grants := func(s *scripted, m signal.Message) {
		end := s.p.w.now.Add(tokenLife).UnixMilli()
		switch m := m.(type) {
		case *signal.Hello:
			s.say(&signal.Welcome{
				Session: signal.ID{1}, Ticket: "t", Site: []byte("{}"), ServerTime: s.p.w.now.UnixMilli(), TokenExpires: end,
				Policy: signal.Policy{Role: "full", Relay: "allow", Local: "never", SignedManifests: "off"},
				Limits: signal.Limits{MessagesPerSecond: 11}, UpdateEvery: 1000, StatsInterval: 1000,
			})
		case *signal.Token:
			if m.Token == "bad" {
				s.say(&signal.Error{Code: "bad-token", Message: "No."})
				return
			}
			s.say(&signal.Granted{TokenExpires: end})
		}
	}
	p, asked := tokened(grants, func(n int) string {
		switch {
		case n > 1 && n < 5:
			return "" // the backend is down
		case n == 5:
			return "bad"
		}
		return fmt.Sprint("token ", n)
	})
	p.w.run(tokenLife - time.Second)
	if len(*asked) < 6 {
		t.Fatalf("asked at %v", *asked)
	}
	for i, d := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
		if wait := (*asked)[i+2].Sub((*asked)[i+1]); wait < d/2 || wait > d {
			t.Errorf("try %d came after %v, want up to %v", i+2, wait, d)
		}
	}
	if first := (*asked)[1].Sub((*asked)[0]); first < tokenLife/2 || first > tokenLife*3/4 {
		t.Errorf("the second was asked for after %v", first)
	}
	// A lost socket costs no token while the one in hand is fresh.
	n := len(*asked)
	p.sockets[0].events.Lost()
	p.w.run(30 * time.Second)
	if p.state != sessionReady || len(*asked) != n || len(p.dials) != 2 {
		t.Errorf("%s, asked %d times more, %d dials", p.state, len(*asked)-n, len(p.dials))
	}
}

func TestATokenThatIsNeverTakenIsGivenUp(t *testing.T) {
	p, asked := tokened(func(s *scripted, m signal.Message) {
		s.say(&signal.Error{Code: "bad-token", Message: "No."})
	}, func(n int) string { return fmt.Sprint("token ", n) })
	p.w.run(time.Hour)
	if p.state != sessionRefused || len(*asked) != tokenTries || len(p.dials) != tokenTries || p.told[len(p.told)-1] != "refused bad-token" {
		t.Errorf("%s, asked %d times, %d dials, told %v", p.state, len(*asked), len(p.dials), p.told)
	}
}
