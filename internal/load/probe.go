package load

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

// Probe joins the swarm of a session by one of the trackers. Where it is one of so many viewers it asks to be introduced to
// some, offers to them and waits for their answers, at most for so long: asking uses up what others want.
func (a *Audience) Probe(ctx context.Context, tracker, number, viewers, want int, patience time.Duration) (p Probe, err error) {
	var from netip.Addr
	if n := len(a.cfg.Sources); n > 0 {
		from = a.cfg.Sources[number%n]
	}
	ws, err := dial(ctx, Config{Protocol: Native, Address: a.cfg.Trackers[tracker], Path: "/"}, from)
	if err != nil {
		return p, err
	}
	defer ws.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = ws.conn.Close() })()
	_ = ws.conn.SetDeadline(time.Now().Add(patience))
	say := func(m signal.Message) {
		if b, err := signal.Encode(m); err == nil {
			_, _ = ws.conn.Write(appendFrame(nil, opText, b)) // the reader learns of a socket that is lost
		}
	}
	say(&signal.Hello{Version: signal.Version, Client: "leeway-load", Site: a.cfg.Site})
	open := map[signal.ID]time.Time{}
	for joined := false; ; {
		op, payload, _, err := ws.next()
		var late interface{ Timeout() bool }
		if errors.As(err, &late) && late.Timeout() {
			return p, nil // what is missing is missing
		}
		if err != nil || op == opClose {
			return p, errors.Join(err, errors.New("load: the tracker ended a probe"))
		}
		if op != opText {
			continue
		}
		m, err := signal.Decode(payload)
		if err != nil {
			return p, fmt.Errorf("the tracker sent %.200q: %w", payload, err)
		}
		switch m := m.(type) {
		case *signal.Welcome:
			say(&signal.Join{Request: 1, Title: a.cfg.title(number), Role: "full", Range: &signal.Range{From: 0, To: 30_000}})
		case *signal.Joined:
			joined, p.Viewers = true, m.Viewers
			if m.Viewers != viewers {
				return p, nil
			}
			say(&signal.Update{Swarm: m.Swarm, Want: want})
		case *signal.Introduce:
			for _, o := range m.Peers {
				link := newLink()
				open[link] = time.Now()
				p.Introduced++
				say(&signal.Signal{Swarm: m.Swarm, To: o.Peer, Link: link, Kind: "offer", SDP: sdp, Plan: plan})
			}
		case *signal.Signal:
			if at, ok := open[m.Link]; ok && (m.Kind == "answer" || m.Kind == "fail") {
				delete(open, m.Link)
				if m.Kind == "answer" || m.Reason != "gone" {
					p.Reached++
					p.Trip = append(p.Trip, time.Since(at))
				}
			}
		case *signal.Error:
			return p, &refusedError{m.Code, m.Message}
		}
		if joined && p.Introduced > 0 && len(open) == 0 {
			return p, nil
		}
	}
}
