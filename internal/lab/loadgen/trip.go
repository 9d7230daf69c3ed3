package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Trip is two sessions of one swarm, at one tracker or at two, that tell how long signals take between them.
type Trip struct {
	near, far *client
	swarm     signal.ID
	stop      func() bool
}

// client is a session that is asked one thing at a time.
type client struct {
	ws *socket
	id signal.ID
}

func (c *client) say(m signal.Message) error {
	b, err := signal.Encode(m)
	if err == nil {
		_, err = c.ws.conn.Write(appendFrame(nil, opText, b))
	}
	return err
}

// await reads until a message of type M comes.
func await[M signal.Message](c *client) (m M, err error) {
	for {
		op, payload, _, err := c.ws.next()
		switch {
		case err != nil:
			return m, err
		case op == opPing:
			if _, err := c.ws.conn.Write(appendFrame(nil, opPong, payload)); err != nil {
				return m, err
			}
		case op == opClose:
			return m, errors.New("the tracker closed the socket")
		case op == opText:
			any, err := signal.Decode(payload)
			if err != nil {
				return m, fmt.Errorf("the tracker sent %.200q: %w", payload, err)
			}
			if e, ok := any.(*signal.Error); ok {
				return m, &refusedError{e.Code, e.Message}
			}
			if m, ok := any.(M); ok {
				return m, nil
			}
		}
	}
}

// enter connects and joins.
func enter(ctx context.Context, tracker netip.AddrPort, site, title string) (*client, signal.ID, error) {
	ws, err := dial(ctx, Config{Protocol: Native, Address: tracker, Path: "/"}, netip.Addr{})
	if err != nil {
		return nil, signal.ID{}, err
	}
	c := &client{ws: ws}
	_ = ws.conn.SetDeadline(time.Now().Add(answerWithin))
	err = c.say(&signal.Hello{Version: signal.Version, Client: "leeway-load", Site: site})
	var joined *signal.Joined
	if err == nil {
		var w *signal.Welcome
		if w, err = await[*signal.Welcome](c); err == nil {
			c.id = w.Session
			err = c.say(&signal.Join{Request: 1, Title: title, Role: "full", Want: 1})
		}
	}
	if err == nil {
		joined, err = await[*signal.Joined](c)
	}
	if err != nil {
		return nil, signal.ID{}, errors.Join(err, ws.conn.Close())
	}
	return c, joined.Swarm, nil
}

// OpenTrip connects two sessions, the second of which is introduced to the first.
func OpenTrip(ctx context.Context, near, far netip.AddrPort, site, title string) (t *Trip, err error) {
	t = &Trip{}
	if t.near, t.swarm, err = enter(ctx, near, site, title); err != nil {
		return nil, err
	}
	if t.far, _, err = enter(ctx, far, site, title); err != nil {
		return nil, errors.Join(err, t.near.ws.conn.Close())
	}
	t.stop = context.AfterFunc(ctx, func() { _ = t.near.ws.conn.Close() })
	if _, err = await[*signal.Introduce](t.far); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Once is how long an offer and its answer take.
func (t *Trip) Once() (time.Duration, error) {
	link := newLink()
	deadline := time.Now().Add(answerWithin)
	_ = t.near.ws.conn.SetDeadline(deadline)
	_ = t.far.ws.conn.SetDeadline(deadline)
	began := time.Now()
	if err := t.far.say(&signal.Signal{Swarm: t.swarm, To: t.near.id, Link: link, Kind: "offer", SDP: sdp, Plan: plan}); err != nil {
		return 0, err
	}
	if _, err := await[*signal.Signal](t.near); err != nil {
		return 0, err
	}
	if err := t.near.say(&signal.Signal{Swarm: t.swarm, To: t.far.id, Link: link, Kind: "answer", SDP: sdp, Plan: plan}); err != nil {
		return 0, err
	}
	if s, err := await[*signal.Signal](t.far); err != nil {
		return 0, err
	} else if s.Kind != "answer" || s.Link != link {
		return 0, fmt.Errorf("load: %s came instead of the answer", s.Kind)
	}
	return time.Since(began), nil
}

// Close ends both sessions.
func (t *Trip) Close() error {
	t.stop()
	return errors.Join(t.near.ws.conn.Close(), t.far.ws.conn.Close())
}
