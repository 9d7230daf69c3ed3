package seed

import (
	"context"
	"errors"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/courier"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func outcomeOf(err error) Outcome {
	var f *FetchError
	if errors.As(err, &f) {
		return f.Outcome
	}
	return OutcomeNetwork
}

// beat tells the trackers that the seed is there, what it signs with and how busy it is.
func (s *Service) beat(gone bool) {
	now := s.cfg.Now()
	s.mu.Lock()
	draining, signer := s.stopping || !s.outside.isReached() || !s.isWarm(), s.signer
	signs := !s.revoked.Withdraws(&certificate.Certificate{KeyID: signer.id})
	s.mu.Unlock()
	s.budgets.Lock()
	load := max(s.places.load(), s.scope.load(now))
	s.budgets.Unlock()
	m := &bus.SeedBeat{Seed: s.id, LoadPermille: load, Draining: draining, Gone: gone}
	for name := range s.sites {
		m.Sites = append(m.Sites, name)
	}
	m.VerifyKeys = []bus.SeedKey{{VerifyKey: signal.VerifyKey{KeyID: signer.id[:], Alg: 1, Key: signer.point}, Sites: m.Sites}}
	if f := s.cfg.Fleet; f != nil && signs {
		m.Fleet = &bus.SeedFleet{ID: f.ID[:], Address: f.Address.String()}
	}
	s.publish(bus.SubjectSeedBeat, m)
}

func (s *Service) publish(subject string, m bus.Message) {
	b, err := bus.Encode(m)
	if err == nil {
		err = s.bus.Publish(subject, b)
	}
	if err != nil {
		s.cfg.Log.Warn("a message did not go out", "subject", bus.Kind(subject), "error", err)
	}
}

// newCourier carries signals to trackers, and theirs to this seed.
func (s *Service) newCourier() *courier.Courier[*bus.Signal, *bus.SeedDelivery] {
	return courier.New[*bus.Signal, *bus.SeedDelivery](courier.Config[*bus.Signal]{
		Self: s.id, Now: s.cfg.Now, Connected: s.bus.Connected,
		Lives: func(id signal.ID) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			_, ok := s.trackers[id]
			return ok
		},
		Say: func(to signal.ID, m *bus.Signal, at *bus.Stream) {
			s.publish(bus.SubjectSeedSignal(to), &bus.Delivery{Kind: bus.KindSignal, Signal: m, Stream: at})
		},
		Ack:   func(to signal.ID, a *bus.Ack) { s.publish(bus.SubjectSeedAck(to), a) },
		Lost:  s.undelivered,
		Count: func(outcome string) { s.cfg.Metrics.Add(mSignals, 1, outcome) },
	})
}

// signal sends one to the tracker that holds the viewer.
func (s *Service) signal(tracker signal.ID, m *bus.Signal) { s.courier.Send(tracker, m) }

// undelivered ends a link whose viewer did not get the answer.
func (s *Service) undelivered(m *bus.Signal) {
	s.mu.Lock()
	v := s.viewers[m.Link]
	s.mu.Unlock()
	if v != nil && m.Kind == "answer" {
		v.end(peer.CloseFailed, peer.ByeLeaving)
	}
}

func (s *Service) onAck(data []byte) {
	var a bus.Ack
	if bus.Decode(data, &a) == nil {
		s.courier.Acked(&a)
	}
}

func (s *Service) onTrackerBeat(data []byte) {
	var m bus.TrackerBeat
	if bus.Decode(data, &m) != nil {
		return
	}
	now := s.cfg.Now()
	s.mu.Lock()
	_, known := s.trackers[m.Tracker]
	s.trackers[m.Tracker] = now
	if m.Gone {
		delete(s.trackers, m.Tracker)
	}
	isNew := !known && !m.Gone && !s.stopping
	s.newcomers = s.newcomers || isNew
	s.mu.Unlock()
	if isNew {
		s.outside.meets()
		s.beat(false)
	}
}

// deliver takes what trackers send to this seed.
func (s *Service) deliver(data []byte) {
	m := &bus.SeedDelivery{}
	if err := bus.Decode(data, m); err != nil {
		s.cfg.Log.Debug("a delivery was dropped", "error", err)
		return
	}
	if m.Stream == nil {
		s.act(m)
		return
	}
	for _, m := range s.courier.Take(m.Stream, m) {
		s.act(m)
	}
}

func (s *Service) act(m *bus.SeedDelivery) {
	var t *title
	full := false
	if m.Title != nil {
		t, full = s.named(m.Title)
	}
	if m.Kind == bus.KindSignal {
		s.onSignal(m, t, full)
	}
}

// named takes in that a title is wanted, and by how many. full says that there is no room for it now.
func (s *Service) named(m *bus.Title) (t *title, full bool) {
	site := s.sites[m.Site]
	if site == nil || m.Manifest == "" {
		return nil, false // no manifest: no seed serves the swarm
	}
	if key, err := site.rules.KeyOfPath(m.Manifest); err != nil || key != m.Manifest {
		return nil, false // what the tracker sends is a key already; anything else asks the origin for what the site does not name
	}
	swarm := peer.ID(m.Swarm)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t = s.titles[swarm]; t == nil {
		if s.stopping || m.Viewers == 0 {
			return nil, false
		}
		if len(s.titles) >= s.cfg.MaxTitles && !s.makeRoom(m.Viewers) {
			return nil, true
		}
		t = s.newTitle(site, swarm, m.Manifest)
		s.titles[swarm] = t
	}
	if t.site != site {
		return nil, false
	}
	t.name(m.Viewers, m.Seeds)
	if m.Chosen {
		t.choose(m.Manifest)
	}
	return t, false
}

// makeRoom drops a title without links that has fewer viewers than one that is wanted: whoever names a thousand titles that
// nobody else watches must not keep out those that are watched. Under mu.
func (s *Service) makeRoom(viewers int) bool {
	used := map[*title]bool{}
	for _, v := range s.viewers {
		used[v.title] = true
	}
	var least *title
	for _, t := range s.titles {
		if n := t.audience(); !used[t] && n < viewers && (least == nil || n < least.audience()) {
			least = t
		}
	}
	if least == nil {
		return false
	}
	delete(s.titles, least.swarm)
	return true
}

func (s *Service) onSignal(d *bus.SeedDelivery, t *title, full bool) {
	m := d.Signal
	if m.To != s.id {
		return
	}
	if m.Kind == "offer" {
		s.onOffer(m, party{m.From, d.Subnet, d.Subject}, t, full)
		return
	}
	s.mu.Lock()
	v := s.viewers[m.Link]
	s.mu.Unlock()
	if v == nil || v.peer != m.From {
		return // a signal of somebody else's link, or of one that is gone
	}
	switch m.Kind {
	case "candidate":
		v.remoteCandidate(transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine)})
	case "end":
		v.remoteCandidate(transfer.Candidate{End: true})
	case "fail":
		v.end(peer.CloseFailed, peer.ByeLeaving)
	}
}

// onOffer begins a link, or says why not. A second one of a viewer in a swarm takes the place of the first.
func (s *Service) onOffer(m *bus.Signal, from party, t *title, full bool) {
	v := &viewer{service: s, title: t, id: m.Link, peer: m.From, from: from, tracker: m.Tracker}
	v.ctx, v.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	if t == nil {
		t = s.titles[peer.ID(m.Swarm)]
		v.title = t
	}
	reason := ""
	var old, displaced *viewer
	switch {
	case t == nil && full, t != nil && s.offLocked(t.site.name, s.cfg.Now()):
		reason = "busy" // to be tried again, unlike refused
	case t == nil || t.swarm != peer.ID(m.Swarm) || s.stopping || s.viewers[m.Link] != nil:
		reason = "refused"
	default:
		for _, o := range s.viewers {
			if o.peer == m.From && o.title == t {
				old = o
			}
		}
		var ok bool
		if displaced, ok = s.places.offer(v, old); !ok {
			reason, old = "busy", nil
			break
		}
		s.viewers[m.Link] = v
		s.wg.Go(func() { v.answer(m) })
	}
	s.mu.Unlock()
	if reason != "" {
		v.cancel()
		s.signal(m.Tracker, &bus.Signal{Signal: signal.Signal{
			Swarm: m.Swarm, From: s.id, To: m.From, Role: "seed", Link: m.Link, Kind: "fail", Reason: reason,
		}})
	}
	if old != nil {
		old.end(peer.CloseClosed, peer.ByeReplaced)
	}
	if displaced != nil {
		s.cfg.Metrics.Add(mDisplaced, 1, displacedHalfOpen)
		displaced.giveUp()
	}
}

// giveUp ends a link that is on its way. The viewer may try again.
func (v *viewer) giveUp() {
	v.end(peer.CloseTimeout, peer.ByeLeaving)
	v.service.signal(v.tracker, v.fail("busy"))
}
