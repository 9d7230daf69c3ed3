package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
)

// group is a group of a run.
type group struct {
	*Group
	u      *run
	source string // of chunks, or of video; empty: none
	said   atomic.Int64
	stage  []chan struct{} // of publishers: closed when the peer forwards them

	tracker tracker // of behavior join
}

// client is a client that is there.
type client struct {
	g        *group
	number   int
	sessions []*Session // at the arm
	others   []*Session // at the peer
	sources  []string   // of this client, at the peer
	driver   *loadgen.Driver
	endpoint *endpoint
}

// prepare gives every arm what the group's clients send.
func (u *run) prepare(ctx context.Context, of *Group) (*group, error) {
	g := &group{Group: of, u: u}
	body := armwire.SourceBody{Source: of.Name, Kind: armwire.SourceData, Rate: of.Rate, Chunk: of.Chunk}
	switch of.Behavior {
	case Join:
		var err error
		if g.tracker, err = lookUp(ctx, of.Tracker); err != nil {
			return nil, fmt.Errorf("load: group %s: %w", of.Name, err)
		}
	case Active, Echo, Mesh:
		g.source = of.Name
	case OneToMany, Conference, WHIP:
		g.source = of.Name
		body = armwire.SourceBody{Source: of.Name, Kind: armwire.SourceSynthetic, Video: &armwire.TrackBody{Codec: armwire.VP8, Bitrate: of.Bitrate}}
		for range of.Publishers {
			g.stage = append(g.stage, make(chan struct{}))
		}
	}
	if g.source == "" {
		return g, nil
	}
	arms := u.arms
	if of.Behavior == Mesh {
		arms = append([]*Arm{u.peer}, arms...)
	}
	for _, a := range arms {
		if _, err := a.Call(ctx, armwire.AddMediaSource, "", body); err != nil {
			return nil, fmt.Errorf("load: group %s: %w", of.Name, err)
		}
	}
	return g, nil
}

// open connects a client, as its group's behavior says.
func (g *group) open(ctx context.Context, c *client) error {
	if g.Behavior == Join {
		return g.join(ctx, c)
	}
	a, err := g.u.pick()
	if err != nil {
		return err
	}
	switch g.Behavior {
	case Viewer:
		s, err := a.Create(ctx, g.id(), armwire.SessionBody{Viewer: &armwire.ViewerBody{Manifest: g.Manifest, Tracker: g.Tracker, Site: g.Site, Token: g.Token}})
		if err == nil {
			c.sessions = append(c.sessions, s)
		}
		return err
	case OneToMany, Conference:
		return g.attend(ctx, c, a)
	case WHIP, WHEP:
		return g.attach(ctx, c, a)
	case Mesh:
		for range c.number {
			if err := g.pair(ctx, c, a, armwire.SessionBody{Stack: g.Stack, Source: g.source}); err != nil {
				return err
			}
		}
		return nil
	}
	return g.pair(ctx, c, a, armwire.SessionBody{Stack: g.Stack, Echo: g.Behavior == Echo})
}

func (g *group) id() string { return g.Name + "-" + strconv.FormatInt(g.u.next.Add(1), 10) }

// pair connects a data session of the arm with one of the peer, which is as body says.
func (g *group) pair(ctx context.Context, c *client, a *Arm, body armwire.SessionBody) error {
	id := g.id()
	other, err := g.u.peer.Create(ctx, id, body)
	if err != nil {
		return err
	}
	c.others = append(c.others, other)
	s, err := a.Create(ctx, id, armwire.SessionBody{Stack: g.Stack, Source: g.source})
	if err != nil {
		return err
	}
	c.sessions = append(c.sessions, s)
	if err := Connect(ctx, s, other, armwire.OfferBody{Data: 1}); err != nil {
		return err
	}
	return WaitBothUp(ctx, s, other)
}

// attend is a client of a conference: a publisher sends its video to the peer, and everyone else receives it from there.
func (g *group) attend(ctx context.Context, c *client, a *Arm) error {
	if c.number < g.Publishers {
		if err := g.publish(ctx, c, a); err != nil {
			return err
		}
		close(g.stage[c.number])
		if g.Behavior == OneToMany {
			return nil
		}
	}
	for p, ready := range g.stage {
		if p == c.number {
			continue
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return errors.New("a publisher was not there")
		}
		if err := g.subscribe(ctx, c, a, p); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) forwarded(publisher int) string { return fmt.Sprintf("%s.%d", g.Name, publisher) }

func (g *group) publish(ctx context.Context, c *client, a *Arm) error {
	s, other, err := g.media(ctx, c, a, armwire.SessionBody{Source: g.source}, armwire.SessionBody{})
	if err != nil {
		return err
	}
	if err := Connect(ctx, s, other, armwire.OfferBody{Video: armwire.SendOnly}); err != nil {
		return err
	}
	if err := WaitBothUp(ctx, s, other); err != nil {
		return err
	}
	name := g.forwarded(c.number)
	_, err = g.u.peer.Call(ctx, armwire.AddMediaSource, "", armwire.SourceBody{
		Source: name, Kind: armwire.SourceForward, Session: other.ID, Video: &armwire.TrackBody{Codec: armwire.VP8},
	})
	if err == nil {
		c.sources = append(c.sources, name)
	}
	return err
}

// subscribe has the peer offer a publisher's video.
func (g *group) subscribe(ctx context.Context, c *client, a *Arm, publisher int) error {
	s, other, err := g.media(ctx, c, a, armwire.SessionBody{}, armwire.SessionBody{Source: g.forwarded(publisher)})
	if err != nil {
		return err
	}
	if err := Connect(ctx, other, s, armwire.OfferBody{Video: armwire.SendOnly}); err != nil {
		return err
	}
	return WaitBothUp(ctx, s, other)
}

// media makes a session at the arm and one at the peer.
func (g *group) media(ctx context.Context, c *client, a *Arm, ours, theirs armwire.SessionBody) (s, other *Session, err error) {
	id := g.id()
	if other, err = g.u.peer.Create(ctx, id, theirs); err != nil {
		return nil, nil, err
	}
	c.others = append(c.others, other)
	if s, err = a.Create(ctx, id, ours); err != nil {
		return nil, nil, err
	}
	c.sessions = append(c.sessions, s)
	return s, other, nil
}

// join opens a session with the tracker, which is over the client's own socket.
func (g *group) join(ctx context.Context, c *client) (err error) {
	c.driver, err = loadgen.Open(ctx, loadgen.Config{
		Protocol: loadgen.Native, Address: g.tracker.address, Path: g.tracker.path, TLS: g.tracker.tls, Sources: g.tracker.source(c.number), Site: g.Site,
		Sessions: 1, First: c.number, Swarms: g.Swarms, Opening: 1,
	})
	return err
}

// leave ends a client's sessions, in a time of its own when the run ends.
func (c *client) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if c.driver != nil {
		_ = c.driver.Close()
	}
	if c.endpoint != nil {
		if err := c.endpoint.leave(ctx); err != nil {
			c.g.complain(fmt.Errorf("it left: %w", err))
		}
	}
	for _, list := range [][]*Session{c.sessions, c.others} {
		for _, s := range list {
			_ = s.Destroy(ctx) // an arm that does not answer is named by the run
		}
	}
	for _, name := range c.sources {
		_, _ = c.g.u.peer.Call(ctx, armwire.RemoveMediaSource, "", armwire.SourceName{Source: name})
	}
}
