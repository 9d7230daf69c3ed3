package viewer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// script is a tracker that says what a test wants, and a listener that notes what a session tells.
type script struct {
	w       *world
	dials   []time.Time
	sockets []*scripted
	answer  func(s *scripted, m signal.Message)
	refuse  bool
	told    []string
	*session
}

type scripted struct {
	p      *script
	events SocketEvents
	sent   []signal.Message
	at     []time.Time
	closed bool
}

func newScript(answer func(*scripted, signal.Message)) *script {
	p := &script{w: newWorld(), answer: answer}
	p.session = newSession(sessionOptions{loop: p.w, dialer: p, random: rand.New(rand.NewPCG(1, 2)), events: p, url: "ws://t/", hello: signal.Hello{Version: 1}})
	p.session.start()
	return p
}

func (p *script) Dial(_, _ string, events SocketEvents) Socket {
	s := &scripted{p: p, events: events}
	p.dials, p.sockets = append(p.dials, p.w.now), append(p.sockets, s)
	if p.refuse {
		events.Lost()
	} else {
		events.Opened()
	}
	return s
}

func (s *scripted) Send(b []byte) {
	m, err := signal.Decode(b)
	if err != nil {
		panic(err)
	}
	s.sent, s.at = append(s.sent, m), append(s.at, s.p.w.now)
	s.p.answer(s, m)
}

func (s *scripted) Close() { s.closed = true }

func (s *scripted) say(m signal.Message) {
	b, err := signal.Encode(m)
	if err != nil {
		panic(err)
	}
	s.events.Message(b)
}

func (p *script) greeted()                  {}
func (p *script) welcome(m *signal.Welcome) { p.told = append(p.told, "welcome") }
func (p *script) pushed(m signal.Message)   { p.told = append(p.told, m.Type()) }
func (p *script) lost()                     { p.told = append(p.told, "lost") }
func (p *script) refused(e *signal.Error)   { p.told = append(p.told, "refused "+e.Code) }

// greet answers hello alone.
func greet(s *scripted, m signal.Message) {
	if h, ok := m.(*signal.Hello); ok {
		s.say(&signal.Welcome{
			Session: signal.ID{1}, Ticket: fmt.Sprintf("t%d after %q", len(s.p.sockets), h.Ticket), Site: []byte("{}"),
			ServerTime: s.p.w.now.Add(time.Hour).UnixMilli(),
			Policy:     signal.Policy{Role: "full", Relay: "allow", Local: "never", SignedManifests: "off"},
			Limits:     signal.Limits{MessagesPerSecond: 11}, UpdateEvery: 1000, StatsInterval: 1000,
		})
	}
}

func TestBackOffGrowsWithJitterAndEndsAtThirtySeconds(t *testing.T) {
	p := &script{w: newWorld(), answer: greet, refuse: true}
	p.session = newSession(sessionOptions{loop: p.w, dialer: p, random: rand.New(rand.NewPCG(1, 2)), events: p})
	p.session.start()
	p.w.run(10 * time.Minute)
	var longest time.Duration
	for i := 1; i < len(p.dials); i++ {
		d := p.dials[i].Sub(p.dials[i-1])
		if most := min(30*time.Second, 500*time.Millisecond<<min(i-1, 16)); d > most {
			t.Errorf("attempt %d after %v; at most %v", i, d, most)
		}
		longest = max(longest, d)
	}
	if longest < 10*time.Second || len(p.dials) < 25 || len(p.dials) > 80 {
		t.Errorf("%d attempts in ten minutes, the longest wait %v", len(p.dials), longest)
	}
}

func TestSessionsResumeByTicketAndComeBackWhenTold(t *testing.T) {
	p := newScript(greet)
	p.w.run(time.Millisecond)
	if p.state != sessionReady || p.offset != time.Hour || p.ticket != `t1 after ""` {
		t.Fatalf("%s, %v, %q", p.state, p.offset, p.ticket)
	}
	p.sockets[0].say(&signal.Ticket{Ticket: "fresh"})
	p.w.run(2 * time.Minute)
	p.sockets[0].say(&signal.Reconnect{AfterMs: 7000})
	p.w.run(time.Second)
	if p.state != sessionWaiting || !p.sockets[0].closed {
		t.Errorf("%s after a drain began", p.state)
	}
	p.sockets[0].events.Lost() // late, of a socket that is no longer used
	p.w.run(6 * time.Second)
	if len(p.dials) != 2 || p.dials[1].Sub(p.dials[0]) < 2*time.Minute+7*time.Second || p.ticket != `t2 after "fresh"` {
		t.Errorf("%v, %q", p.dials, p.ticket)
	}
	if !slices.Equal(p.told, []string{"welcome", "lost", "welcome"}) {
		t.Errorf("told %v", p.told)
	}
}

func TestATrackerThatRefusesIsNotAskedAgain(t *testing.T) {
	for _, code := range []string{"bad-site", "token-expired"} {
		p := newScript(func(s *scripted, m signal.Message) { s.say(&signal.Error{Code: code, Message: "No."}) })
		p.w.run(time.Hour)
		if p.state != sessionRefused || len(p.dials) != 1 || !slices.Equal(p.told, []string{"refused " + code}) {
			t.Errorf("%s: %s, %d dials, told %v", code, p.state, len(p.dials), p.told)
		}
	}
	p := newScript(func(s *scripted, m signal.Message) {
		s.say(&signal.Error{Code: "overloaded", RetryAfterMs: 60_000})
		s.events.Lost()
	})
	p.w.run(59 * time.Second)
	if len(p.dials) != 1 {
		t.Errorf("%d dials before the tracker wants one", len(p.dials))
	}
	p.w.run(2 * time.Second)
	if len(p.dials) != 2 {
		t.Errorf("%d dials after", len(p.dials))
	}
}

func TestSilenceOfATrackerIsALoss(t *testing.T) {
	p := newScript(func(*scripted, signal.Message) {})
	p.w.run(answerTimeout - time.Millisecond)
	if len(p.told) > 0 {
		t.Errorf("told %v too early", p.told)
	}
	p.w.run(time.Second)
	if !slices.Equal(p.told[:1], []string{"lost"}) || !p.sockets[0].closed {
		t.Errorf("told %v", p.told)
	}
}

func TestMessagesKeepTheTrackersRate(t *testing.T) {
	p := newScript(greet)
	p.w.run(time.Millisecond)
	for range 35 {
		p.send(&signal.Update{Swarm: signal.ID{1}})
	}
	p.w.run(10 * time.Second)
	s := p.sockets[0]
	if len(s.sent) != 36 {
		t.Fatalf("%d messages", len(s.sent))
	}
	for i := range s.at {
		if j := i + 11; j < len(s.at) && s.at[j].Sub(s.at[i]) < time.Second {
			t.Errorf("messages %d to %d within %v", i, j, s.at[j].Sub(s.at[i]))
		}
	}
	for range 20 {
		p.send(&signal.Update{Swarm: signal.ID{1}})
	}
	p.send(&signal.Leave{Swarm: signal.ID{1}})
	p.stop()
	if _, ok := s.sent[len(s.sent)-1].(*signal.Leave); !ok || len(s.sent) != 36+21 {
		t.Errorf("last words waited, or went ahead of what they are about: %d messages, and %T", len(s.sent), s.sent[len(s.sent)-1])
	}
}

func TestJoinsAreAnsweredOnce(t *testing.T) {
	var codes []string
	note := func(m *signal.Joined, e *signal.Error) {
		if e != nil {
			codes = append(codes, e.Code)
		} else {
			codes = append(codes, fmt.Sprint("joined ", m.Viewers))
		}
	}
	p := newScript(func(s *scripted, m signal.Message) {
		greet(s, m)
		if j, ok := m.(*signal.Join); ok && j.Title == "/a" {
			s.say(&signal.Joined{Request: j.Request, Swarm: signal.ID{1}, Viewers: 3})
			s.say(&signal.Error{Request: j.Request, Code: "swarm-full"}) // too late
		} else if ok && j.Title == "/b" {
			s.say(&signal.Error{Request: j.Request, Code: "swarm-full"})
		}
	})
	p.join(signal.Join{Title: "/early", Role: "full"}, note)
	p.w.run(time.Millisecond)
	for _, title := range []string{"/a", "/b", "/silent", "/lost"} {
		p.join(signal.Join{Title: title, Role: "full"}, note)
		if title == "/silent" {
			p.w.run(answerTimeout + time.Second)
		}
	}
	p.sockets[0].events.Lost()
	p.w.run(time.Millisecond)
	if want := []string{"lost", "joined 3", "swarm-full", "timeout", "lost"}; !slices.Equal(codes, want) {
		t.Errorf("%v, want %v", codes, want)
	}
}

// TestNoSwarmIsJoinedBeforeTheWelcome: a join may go out ahead, its answer not come ahead.
func TestNoSwarmIsJoinedBeforeTheWelcome(t *testing.T) {
	p := newScript(func(*scripted, signal.Message) {})
	p.w.run(time.Millisecond)
	joined := 0
	p.join(signal.Join{Title: "t", Manifest: "m", Role: "full", Ahead: true}, func(m *signal.Joined, e *signal.Error) {
		if joined++; m == nil {
			t.Errorf("the join failed: %v", e)
		}
	})
	answer := &signal.Joined{Request: 1, Swarm: signal.ID{1}}
	p.sockets[0].say(answer)
	p.w.run(time.Second)
	if joined > 0 {
		t.Error("joined without a session")
	}
	greet(p.sockets[0], &signal.Hello{})
	p.sockets[0].say(answer)
	p.w.run(time.Second)
	if joined != 1 {
		t.Errorf("joined %d times", joined)
	}
}
