package loadgen

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func newLink() (id signal.ID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// Probe is what a newcomer to one of an audience's swarms met.
type Probe struct {
	Viewers    int // that the tracker counts, the newcomer among them
	Introduced int
	Reached    int             // introduced peers that answered, or said why not
	Trip       []time.Duration // from each offer until its answer
}

// Probe joins the swarm of a session by one of the trackers. Where there are as many viewers as should be it asks to be
// introduced to some, offers to them and waits for their answers, at most for so long: asking uses up what others want.
func (a *Audience) Probe(ctx context.Context, tracker, number int, enough func(viewers int) bool, want int, patience time.Duration) (Probe, error) {
	var from netip.Addr
	if n := len(a.cfg.Sources); n > 0 {
		from = a.cfg.Sources[number%n]
	}
	ws, err := dial(ctx, Config{Protocol: Native, Address: a.cfg.Trackers[tracker], Path: "/"}, from)
	if err != nil {
		return Probe{}, err
	}
	defer ws.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = ws.conn.Close() })()
	_ = ws.conn.SetDeadline(time.Now().Add(patience))
	p := &probing{c: client{ws: ws}, title: a.cfg.title(number), enough: enough, want: want, open: map[signal.ID]time.Time{}}
	p.say(&signal.Hello{Version: signal.Version, Client: "leeway-load", Site: a.cfg.Site})
	for !p.done {
		m, err := await[signal.Message](&p.c)
		var late interface{ Timeout() bool }
		if errors.As(err, &late) && late.Timeout() {
			break // what is missing is missing
		}
		if err != nil {
			return p.Probe, fmt.Errorf("load: a probe: %w", err)
		}
		p.hear(m)
	}
	return p.Probe, nil
}

// probing is a probe under way.
type probing struct {
	Probe
	c      client
	title  string
	enough func(viewers int) bool
	want   int
	open   map[signal.ID]time.Time // links that were offered, and when
	done   bool
}

// say sends a message; the reader learns of a socket that is lost.
func (p *probing) say(m signal.Message) { _ = p.c.say(m) }

func (p *probing) hear(m signal.Message) {
	switch m := m.(type) {
	case *signal.Welcome:
		p.say(&signal.Join{Request: 1, Title: p.title, Role: "full", Range: &signal.Range{From: 0, To: 30_000}})
	case *signal.Joined:
		if p.Viewers = m.Viewers; p.want == 0 || !p.enough(m.Viewers) {
			p.done = true
			return
		}
		p.say(&signal.Update{Swarm: m.Swarm, Want: p.want})
	case *signal.Introduce:
		for _, o := range m.Peers {
			link := newLink()
			p.open[link] = time.Now()
			p.Introduced++
			p.say(&signal.Signal{Swarm: m.Swarm, To: o.Peer, Link: link, Kind: "offer", SDP: sdp, Plan: plan})
		}
	case *signal.Signal:
		at, ok := p.open[m.Link]
		if !ok || m.Kind != "answer" && m.Kind != "fail" {
			return
		}
		delete(p.open, m.Link)
		if m.Kind == "answer" || m.Reason != "gone" {
			p.Reached++
			p.Trip = append(p.Trip, time.Since(at))
		}
		p.done = len(p.open) == 0
	}
}
