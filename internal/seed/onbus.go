package seed

import (
	"context"
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const askRevocations = 5 * time.Second // between attempts to learn them

// subscriptions are what the seed hears on the bus.
func (s *Service) subscriptions() map[string]func([]byte) {
	return map[string]func([]byte){
		bus.SubjectSeedDeliver(s.id): s.deliver, bus.SubjectRevoke: s.onRevoke, bus.SubjectTrackerBeat: s.onTrackerBeat,
		bus.SubjectSeedBeat: s.onSeedBeat, bus.SubjectAck(s.id): s.outbox.onAck,
	}
}

// beat tells the trackers that the seed is there, what it signs with and how busy it is.
func (s *Service) beat(gone bool) {
	signer := s.issuer.key()
	m := &bus.SeedBeat{
		Seed: s.id, LoadPermille: max(s.links.places.load(), s.budgets.load()), Gone: gone,
		Resting:  s.titles.restingTold(),
		Draining: s.tasks.isEnding() || !s.reach.isReached() || !s.cfg.Fleet.Warm(),
	}
	for name := range s.sites {
		m.Sites = append(m.Sites, name)
	}
	m.VerifyKeys = []bus.SeedKey{{VerifyKey: signal.VerifyKey{KeyID: signer.id[:], Alg: 1, Key: signer.point}, Sites: m.Sites}}
	if s.issuer.signs() {
		m.Fleet = s.cfg.Fleet.Says()
	}
	s.outbox.publish(bus.SubjectSeedBeat, m)
}

func (s *Service) onTrackerBeat(data []byte) {
	var m bus.TrackerBeat
	if bus.Decode(data, &m) == nil && s.trackers.heard(&m, s.cfg.Now()) && !s.tasks.isEnding() {
		s.reach.meets()
		s.beat(false)
	}
}

// onSeedBeat takes in what another seed says of itself.
func (s *Service) onSeedBeat(data []byte) {
	var m bus.SeedBeat
	if bus.Decode(data, &m) != nil || m.Seed == s.id {
		return
	}
	s.learnKeys(m.VerifyKeys)
	if s.cfg.Fleet.Heard(&m) && !s.tasks.isEnding() {
		s.beat(false) // so that the newcomer knows us before its first viewer comes
	}
}

// learnKeys notes what other seeds sign with: a fleet hands on what one of them certified.
func (s *Service) learnKeys(keys []bus.SeedKey) {
	if s.cfg.Fleet.Says() == nil {
		return
	}
	for _, k := range keys {
		if k.Alg != 1 {
			continue
		}
		key := certificate.VerifyKey{KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: k.Sites}
		if err := s.issuer.verifiers.learn(key, s.cfg.Now()); err != nil {
			s.cfg.Log.Debug("a verify key of another seed was dropped", "error", err)
		}
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
	for _, m := range s.outbox.streams.Take(m.Stream, m) {
		s.act(m)
	}
}

func (s *Service) act(m *bus.SeedDelivery) {
	var t *title
	full := false
	if m.Title != nil && !s.tasks.isEnding() {
		t, full = s.titles.named(m.Title)
	}
	if t != nil && m.Kind == bus.KindTitle {
		s.weigh(t, m.Title)
	}
	if m.Kind != bus.KindSignal || m.Signal.To != s.id {
		return
	}
	if t == nil {
		t = s.titles.get(m.Signal.Swarm)
	}
	s.links.signal(m.Signal, party{m.Signal.From, m.Subnet, m.Subject}, t, full)
}

// weigh has a title rest, or tried again, by what its home says that viewers had from each other.
func (s *Service) weigh(t *title, m *bus.Title) {
	changed, rests := t.weigh(m.Credited, m.Viewers)
	switch {
	case !changed:
	case rests:
		s.cfg.Metrics.Add(mRests, 1, t.site.name)
		s.cfg.Log.Info("peers of a title cost more than they save: its viewers stay with the origin for a while", "site", m.Site, "title", m.Title, "viewers", m.Viewers)
	default:
		s.cfg.Log.Info("peers of a title are tried again", "site", m.Site, "title", m.Title, "viewers", m.Viewers)
	}
}

func (s *Service) onRevoke(data []byte) {
	var m bus.RevokeMessage
	if err := bus.Decode(data, &m); err != nil {
		s.cfg.Log.Warn("revocations were dropped", "error", err)
		return
	}
	s.revoke(m.Revocations, m.Switches)
}

// learnRevocations asks the trackers for what was revoked before this seed started.
func (s *Service) learnRevocations(ctx context.Context) {
	for {
		attempt, cancel := context.WithTimeout(ctx, askRevocations)
		b, err := s.bus.Request(attempt, bus.SubjectRevokeList, []byte("{}"))
		var m bus.RevokeList
		if err == nil {
			err = bus.Decode(b, &m)
		}
		if err == nil {
			cancel()
			s.learnKeys(m.VerifyKeys)
			s.revoke(m.Revocations, m.Switches)
			return
		}
		<-attempt.Done() // no tracker yet
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// revoke drops what is withdrawn: certificates, pieces, queued requests. Segments are fetched again when asked for, unless a
// tombstone lies on them.
func (s *Service) revoke(list []signal.Revocation, switches []bus.Switch) {
	if !s.takedowns.take(list, switches) {
		return
	}
	s.supply.fetches.retry()
	if s.issuer.rotate() {
		s.beat(false)
	}
	s.links.withhold(s.supply.shelf.withdraw(s.takedowns.withdraws)...)
}

// sayAgain tells trackers that were not known before what is revoked and switched: all of them may be new.
func (s *Service) sayAgain() {
	if !s.trackers.newcomers() {
		return
	}
	for _, m := range s.takedowns.messages() {
		if len(m.Revocations)+len(m.Switches) > 0 {
			s.outbox.publish(bus.SubjectRevokeKept, m)
		}
	}
}

// Ready says whether viewers can be sent here, and if not why.
func (s *Service) Ready() error {
	if err := s.reach.problem(); err != nil {
		return err
	}
	if !s.cfg.Fleet.Warm() {
		return errors.New("seed: warming up: siblings give it what is wanted most, before viewers are sent here")
	}
	return nil
}

// awaitReached asks trackers for a packet from outside until one has come. Trackers come in any order, so that each has its turn.
func (s *Service) awaitReached(ctx context.Context) {
	if s.reach.await(ctx, s.cfg.Log, func(n int) int {
		all := s.trackers.list()
		if len(all) > 0 {
			for _, m := range s.reach.probe(s.id) {
				s.outbox.publish(bus.SubjectProbe(all[n%len(all)]), m)
			}
		}
		return len(all)
	}) {
		if s.reach.key != "" { // else it was taken for granted
			s.beat(false)
		}
		s.cfg.Metrics.Set(mReached, 1)
	}
}

// warmUp has the fleet give this seed what is wanted most, before viewers come.
func (s *Service) warmUp(ctx context.Context) {
	s.cfg.Fleet.WarmUp(ctx)
	s.cfg.Metrics.Set(mWarm, 1)
	s.beat(false)
}
