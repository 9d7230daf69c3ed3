package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// session is the hostile viewer's connection to the tracker. Towards the tracker it behaves: it wants to be introduced.
type session struct {
	o    options
	film *film
	note func(event string, detail any)
	ws   *websocket.Conn

	mu    sync.Mutex          // guards writes to ws too
	self  signal.ID           // guarded by mu
	swarm signal.ID           // guarded by mu
	links map[signal.ID]*link // guarded by mu, by link ID
}

// join is the whole life of a hostile viewer; it ends with ctx.
func join(ctx context.Context, o options, f *film, note func(string, any)) error {
	header := http.Header{}
	if o.origin != "" {
		header.Set("Origin", o.origin)
	}
	dialer := websocket.Dialer{Subprotocols: []string{signal.Subprotocol}, HandshakeTimeout: 5 * time.Second}
	ws, _, err := dialer.DialContext(ctx, o.tracker, header)
	if err != nil {
		return fmt.Errorf("hostile: dial %s: %w", o.tracker, err)
	}
	s := &session{o: o, film: f, note: note, ws: ws, links: map[signal.ID]*link{}}
	stop := context.AfterFunc(ctx, func() { ws.Close() })
	defer stop()
	defer s.close()
	if err := s.send(&signal.Hello{Version: signal.Version, Client: "hostile", Site: o.site}); err != nil {
		return err
	}
	for {
		_, b, err := ws.ReadMessage()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hostile: tracker: %w", err)
		}
		m, err := signal.Decode(b)
		if err != nil {
			return fmt.Errorf("hostile: tracker: %w", err)
		}
		if err := s.message(m); err != nil {
			note("error", err.Error())
		}
	}
}

func (s *session) message(m signal.Message) error {
	switch m := m.(type) {
	case *signal.Welcome:
		s.mu.Lock()
		s.self = m.Session
		s.mu.Unlock()
		s.note("session", m.Session.Hex())
		every := time.Duration(m.UpdateEvery) * time.Millisecond
		time.AfterFunc(every, func() { s.update(every) })
		return s.send(&signal.Join{
			Request: 1, Title: s.o.title, Manifest: s.o.manifest, Role: "full", Want: 8,
			Range: &signal.Range{From: 0, To: 600_000},
		})
	case *signal.Joined:
		s.mu.Lock()
		s.swarm = m.Swarm
		s.mu.Unlock()
		s.note("joined", m.Viewers)
	case *signal.Introduce:
		for _, p := range m.Peers {
			if err := s.offer(p.Peer); err != nil {
				return err
			}
		}
	case *signal.Signal:
		return s.signal(m)
	case *signal.Error:
		return errors.New(m.Code + ": " + m.Message)
	}
	return nil
}

// update keeps the session alive.
func (s *session) update(every time.Duration) {
	s.mu.Lock()
	swarm, links := s.swarm, len(s.links)
	s.mu.Unlock()
	if !swarm.IsZero() {
		update := &signal.Update{Swarm: swarm, Links: links, Want: 8, Range: &signal.Range{From: 0, To: 600_000}}
		if s.send(update) != nil {
			return
		}
	}
	time.AfterFunc(every, func() { s.update(every) })
}

func (s *session) offer(to signal.ID) error {
	var id signal.ID
	_, _ = crand.Read(id[:])
	l, err := s.link(id, to)
	if err != nil {
		return err
	}
	sdp, err := l.offer()
	if err != nil {
		return err
	}
	return s.to(to, id, signal.Signal{Kind: "offer", SDP: sdp, Plan: &signal.Plan{V: 1, Data: l.plan.Data, Message: l.plan.Message}})
}

func (s *session) signal(m *signal.Signal) error {
	s.mu.Lock()
	l := s.links[m.Link]
	s.mu.Unlock()
	switch {
	case m.Kind == "offer" && m.Plan != nil:
		l, err := s.link(m.Link, m.From)
		if err != nil {
			return err
		}
		l.plan = l.plan.Agree(peer.Plan{V: 1, Data: m.Plan.Data, Message: m.Plan.Message})
		sdp, err := l.answer(m.SDP)
		if err != nil {
			return err
		}
		return s.to(m.From, m.Link, signal.Signal{Kind: "answer", SDP: sdp, Plan: &signal.Plan{V: 1, Data: l.plan.Data, Message: l.plan.Message}})
	case l == nil:
		return nil
	case m.Kind == "answer" && m.Plan != nil:
		l.plan = l.plan.Agree(peer.Plan{V: 1, Data: m.Plan.Data, Message: m.Plan.Message})
		return l.accept(m.SDP)
	case m.Kind == "candidate":
		line := uint16(m.MLine)
		return l.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: m.Candidate, SDPMid: &m.Mid, SDPMLineIndex: &line})
	case m.Kind == "fail":
		s.note("fail", m.Reason)
	}
	return nil
}

// link makes a link and what attacks over it.
func (s *session) link(id, to signal.ID) (*link, error) {
	l, err := newLink(func() { s.note("closed", to.Hex()) })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &attack{
		behave: s.o.behave, film: s.film, wire: l, self: peer.ID(s.self), swarm: peer.ID(s.swarm),
		random: rand.New(rand.NewPCG(1, uint64(len(s.links)))), //nolint:gosec // repeatable, not secret
		note: func(event string, detail any) {
			s.note(event, map[string]any{"peer": to.Hex(), "value": detail})
		},
	}
	l.ready = func() {
		a.note("open", nil)
		go func() {
			if err := a.open(); err != nil {
				a.note("refused", err.Error())
			}
		}()
	}
	l.handle = func(b []byte) {
		if err := a.control(b); err != nil {
			a.note("refused", err.Error())
		}
	}
	s.links[id] = l
	return l, nil
}

func (s *session) to(to, link signal.ID, m signal.Signal) error {
	s.mu.Lock()
	m.Swarm = s.swarm
	s.mu.Unlock()
	m.To, m.Link = to, link
	return s.send(&m)
}

func (s *session) send(m signal.Message) error {
	b, err := signal.Encode(m)
	if err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ws.WriteMessage(websocket.TextMessage, b); err != nil {
		return fmt.Errorf("hostile: send %s: %w", m.Type(), err)
	}
	return nil
}

func (s *session) close() {
	s.mu.Lock()
	links := s.links
	s.links = nil
	s.mu.Unlock()
	for _, l := range links {
		_ = l.pc.Close()
	}
}
