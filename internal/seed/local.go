package seed

import (
	"context"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

var _ Local = (*Service)(nil)

// Title implements Local.
func (s *Service) Title(swarm swarm.ID) (named bus.Title, serves bool) {
	t := s.titles.get(swarm)
	if t == nil {
		return bus.Title{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return bus.Title{
		Site: t.site.name, Title: t.manifest, Manifest: t.manifest, Swarm: t.swarm, Viewers: t.viewers, Seeds: t.seeds,
	}, true
}

// Follow implements Local. It waits for the playlists for as long as a viewer would.
func (s *Service) Follow(ctx context.Context, named *bus.Title) Followed {
	t, _ := s.titles.named(named)
	if t == nil {
		return nil
	}
	if ix := t.want(party{}); ix == nil || !ix.await(ctx) {
		return nil
	}
	return func(ctx context.Context, id segment.ID) (w *Wanted, held bool) {
		if t.want(party{}) == nil {
			return nil, false
		}
		return s.supply.lacks(ctx, t, t.lookup(id))
	}
}

// Answer answers a sibling's question. It asks no other sibling.
func (s *Service) Answer(ctx context.Context, q sibling.Question) *sibling.Answer {
	h, _ := s.supply.shelf.have(ctx, nil, q.Segment)
	if h != nil && !s.issuer.good(h.cert) {
		h = nil
	}
	if h != nil && (q.Have == nil || !s.issuer.ending(h.cert)) || q.Held {
		return answerOf(result{held: h, none: peer.NoneUnknown}, q)
	}
	t := s.titles.get(q.Swarm)
	if t == nil {
		return answerOf(result{none: peer.NoneUnknown}, q)
	}
	r, _ := t.find(ctx, q.Segment, party{})
	if r == nil {
		return answerOf(result{none: peer.NoneUnknown}, q)
	}
	return answerOf(s.supply.forSibling(ctx, request{title: t, ref: r}, h), q)
}

func answerOf(r result, q sibling.Question) *sibling.Answer {
	if r.held == nil {
		return &sibling.Answer{None: r.none, Object: r.object}
	}
	a := &sibling.Answer{Certificate: r.held.cert.Bytes(), Data: r.held.data}
	if q.Have != nil && *q.Have == sibling.Content(r.held.sum) {
		a.Data = nil
	}
	return a
}
