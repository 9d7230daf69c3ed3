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
	links map[signal.ID]*link // guarded by mu, by link ID; nil at the end
	seeds map[signal.ID]bool  // guarded by mu
	tries map[signal.ID]int   // guarded by mu: offers made to a viewer
	vault *vault
}

// mostTries is how often a viewer is offered a link that it has ended.
const mostTries = 6

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
	s := &session{
		o: o, film: f, note: note, ws: ws, links: map[signal.ID]*link{},
		seeds: map[signal.ID]bool{}, tries: map[signal.ID]int{}, vault: newVault(),
	}
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
			s.mu.Lock()
			s.seeds[p.Peer] = p.Role == "seed"
			s.mu.Unlock()
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

// again offers a link to a viewer that has ended one: a hostile peer does not take no for an answer.
func (s *session) again(to signal.ID) {
	s.mu.Lock()
	s.tries[to]++
	enough := s.tries[to] >= mostTries || s.links == nil
	s.mu.Unlock()
	if enough {
		return
	}
	time.AfterFunc(300*time.Millisecond, func() {
		if err := s.offer(to); err != nil {
			s.note("error", err.Error())
		}
	})
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
	return s.describe(to, id, "offer", sdp, l)
}

// describe sends an offer or an answer.
func (s *session) describe(to, link signal.ID, kind, sdp string, l *link) error {
	if s.o.lf {
		sdp = inLines(sdp)
	}
	err := s.to(to, link, signal.Signal{Kind: kind, SDP: sdp, Plan: &signal.Plan{V: 1, Data: l.plan.Data, Message: l.plan.Message}})
	if err != nil || !s.o.lf {
		return err
	}
	s.note("described", map[string]any{"peer": to.Hex(), "value": kind})
	for _, c := range trickled {
		if err := s.to(to, link, signal.Signal{Kind: "candidate", Candidate: c, Mid: "0"}); err != nil {
			return err
		}
	}
	return nil
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
		return s.describe(m.From, m.Link, "answer", sdp, l)
	case l == nil:
		return nil
	case m.Kind == "answer" && m.Plan != nil:
		l.plan = l.plan.Agree(peer.Plan{V: 1, Data: m.Plan.Data, Message: m.Plan.Message})
		return l.accept(m.SDP)
	case m.Kind == "candidate":
		line := uint16(m.MLine)
		return l.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: m.Candidate, SDPMid: &m.Mid, SDPMLineIndex: &line})
	case m.Kind == "fail":
		s.note("fail", map[string]any{"peer": m.From.Hex(), "value": m.Reason})
		go func() { _ = l.pc.Close() }() // which ends it, and has it tried again
	}
	return nil
}

// link makes a link and what attacks over it.
func (s *session) link(id, to signal.ID) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links == nil {
		return nil, errors.New("hostile: at its end")
	}
	a := &attack{
		behave: s.o.behave, film: s.film, self: s.self, swarm: s.swarm,
		seed: s.seeds[to], vault: s.vault,
		random: rand.New(rand.NewPCG(1, uint64(len(s.links)))), //nolint:gosec // repeatable, not secret
		note: func(event string, detail any) {
			s.note(event, map[string]any{"peer": to.Hex(), "value": detail})
		},
	}
	var l *link
	l, err := newLink(sync.OnceFunc(func() { go s.ended(a, l, to) }))
	if err != nil {
		return nil, err
	}
	a.wire = l
	l.ready = func() {
		if a.seed {
			a.note("seed", nil)
		} else {
			a.note("open", nil)
		}
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

// ended is called when a link is gone, by either end.
func (s *session) ended(a *attack, l *link, to signal.ID) {
	s.mu.Lock()
	over := s.links == nil
	s.mu.Unlock()
	if over {
		return
	}
	a.out("closed")
	_ = l.pc.Close()
	s.again(to)
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
