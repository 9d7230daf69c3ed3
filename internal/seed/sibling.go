package seed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Bounds of asking siblings (spec/cluster.md, "Seeds").
const (
	maxOwners   = 3               // owners that are asked one after the other
	maxHolders  = 2               // siblings that an owner asks for what it does not hold, and those that drain
	ownerAnswer = 5 * time.Second // within which an owner has a segment, unless Fleet.Patience says otherwise
	heldShare   = 16              // of that a sibling has a part to give what it holds already
	maxAsking   = 64              // questions under way at a time
)

// Why a sibling's certificate is not taken although it holds.
var (
	errStale   = errors.New("the certificate is withdrawn, or no newer than the own one")
	errDiffers = errors.New("the bytes differ from what this seed vouches for")
)

// bring has a segment from its owner, or from the origin where this seed is the owner or the owner cannot help.
func (s *Service) bring(ctx context.Context, w wish, old *held) (verdict, time.Duration) {
	if v, keep, ok := s.fromSiblings(ctx, w, old); ok {
		return v, keep
	}
	f, known := s.pull(w, old)
	if f == nil {
		return known, failedFor
	}
	select {
	case <-ctx.Done():
		return verdict{none: peer.NoneOrigin}, failedFor
	case <-f.done:
		return f.verdict, f.keep
	}
}

// fromSiblings asks the owner of a segment, and who is the owner where that one is gone. ok is false where the origin is to
// be asked.
func (s *Service) fromSiblings(ctx context.Context, w wish, old *held) (v verdict, keep time.Duration, ok bool) {
	for range maxOwners {
		rank := s.fleet.rank(w.ref.id, w.title.listedSeeds())
		if len(rank) == 0 {
			return verdict{}, 0, false
		}
		if rank[0].ID == s.id {
			return s.fromHolders(ctx, w, old, s.fleet.holders(w.ref.id, rank))
		}
		q := sibling.Question{Segment: w.ref.id, Swarm: signal.ID(w.title.swarm)}
		if old != nil {
			q.Have = (*sibling.Content)(&old.sum)
		}
		h, a, err := s.ask(ctx, w, rank[0], q, old, s.fleet.cfg.Patience)
		var failed *SiblingError
		switch {
		case h != nil:
			return verdict{held: h}, 0, true
		case errors.Is(err, errDiffers):
			return verdict{none: peer.NoneWithdrawn}, refusedFor, true
		case errors.As(err, &failed) && failed.Outcome == SiblingUnreachable:
			continue // the next in rank is the owner now
		case err != nil:
			return verdict{}, 0, false
		}
		return s.ownersVerdict(w, a)
	}
	return verdict{}, 0, false
}

// ownersVerdict is what an owner's answer without a certificate is worth: what it found out of the origin's object holds here,
// what it lacks does not.
func (s *Service) ownersVerdict(w wish, a *sibling.Answer) (v verdict, keep time.Duration, ok bool) {
	switch a.None {
	case peer.NoneNotAllowed:
		return verdict{none: a.None}, refusedFor, true
	case peer.NoneTooLarge:
		if w.ref.seg.ranged {
			return verdict{}, 0, false
		}
		w.title.tooLarge(w.ref, a.Object)
		return verdict{none: a.None, object: a.Object}, refusedFor, true
	case peer.NoneWithdrawn:
		return verdict{none: a.None}, failedFor, true
	}
	return verdict{}, 0, false
}

// fromHolders asks siblings whether they hold what the owner does not.
func (s *Service) fromHolders(ctx context.Context, w wish, old *held, holders []Sibling) (v verdict, keep time.Duration, ok bool) {
	if old != nil {
		return verdict{}, 0, false // the origin says whether the bytes are still the same
	}
	for _, to := range holders {
		q := sibling.Question{Segment: w.ref.id, Swarm: signal.ID(w.title.swarm), Held: true}
		if h, _, _ := s.ask(ctx, w, to, q, nil, s.fleet.cfg.Patience/heldShare); h != nil {
			return verdict{held: h}, 0, true
		}
	}
	return verdict{}, 0, false
}

// ask asks one sibling, and takes in what it has.
func (s *Service) ask(ctx context.Context, w wish, to Sibling, q sibling.Question, old *held, patience time.Duration) (*held, *sibling.Answer, error) {
	select {
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, &SiblingError{Outcome: SiblingSlow, Cause: ctx.Err()}
	}
	defer func() { <-s.asking }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := s.cfg.Now()
	var cert *certificate.Certificate
	a, err := s.fleet.cfg.Siblings.Ask(ctx, s.id, to, q, func(raw []byte, length int) (err error) {
		cert, err = s.acceptable(w, raw, length, old)
		return err
	})
	m := s.cfg.Metrics
	if err == nil && a.Certificate != nil {
		var h *held
		if h, err = s.takes(w, cert, a.Data, old); h != nil {
			s.fleet.asked(to.ID, false, began)
			m.Add(mSiblingRequests, 1, string(SiblingOK))
			m.Add(mSiblingBytes, float64(len(a.Certificate)+len(a.Data)), "in")
			m.Observe(mSiblingTime, s.cfg.Now().Sub(began).Seconds())
			return h, a, nil
		}
	}
	if err == nil || errors.Is(err, errStale) || errors.Is(err, errDiffers) {
		s.fleet.asked(to.ID, false, began)
		m.Add(mSiblingRequests, 1, string(SiblingNone))
		return nil, a, err
	}
	failed := &SiblingError{Outcome: SiblingInvalid, Cause: err}
	errors.As(err, &failed)
	m.Add(mSiblingRequests, 1, string(failed.Outcome))
	gone := failed.Outcome == SiblingUnreachable || failed.Outcome == SiblingInvalid
	if s.fleet.asked(to.ID, gone, s.cfg.Now()) {
		s.cfg.Log.Warn("a seed of the fleet cannot be asked: the next one owns its segments", "address", to.Address, "error", failed.Cause,
			"hint", "siblings reach each other at seed.fleet.announce, on the port of seed.fleet.listen")
	}
	if failed.Outcome == SiblingRefused {
		s.cfg.Log.Debug("a seed of the fleet refused a question", "address", to.Address, "error", failed.Cause)
	}
	return nil, nil, failed
}

// acceptable judges a sibling's certificate before its bytes are taken.
func (s *Service) acceptable(w wish, raw []byte, length int, old *held) (*certificate.Certificate, error) {
	c, err := certificate.Parse(raw)
	if err != nil {
		return nil, err
	}
	t, r := w.title, w.ref
	if o := s.verifiers.verify(c, t.site.name, r.seg.name, s.cfg.Now()); o != certificate.Valid {
		return nil, &certificate.Error{Outcome: o, Cause: errors.New("of a sibling")}
	}
	switch {
	case s.withdraws(c):
		return nil, errStale
	case old != nil && contentOf(c) == old.sum && !c.NotAfter.After(old.cert.NotAfter):
		return nil, errStale
	case length == 0 && (old == nil || contentOf(c) != old.sum), length != 0 && int64(length) != c.Length:
		return nil, errors.New("other bytes than the certificate is of")
	}
	return c, nil
}

// takes keeps a segment of a sibling.
func (s *Service) takes(w wish, c *certificate.Certificate, data []byte, old *held) (*held, error) {
	if len(data) == 0 {
		data = old.data
	} else if !slices.Equal(certificate.DigestPieces(data), c.Digests) {
		return nil, errors.New("pieces that do not match the certificate")
	}
	id := w.ref.id
	h := newHeld(id, c, data)
	if !s.vouch(id, *c, h.sum, s.cfg.Now()) {
		s.cfg.Log.Warn("a sibling's bytes differ from what is certified: withheld until the old certificate ends",
			"site", w.title.site.name, "hint", "leeway purge withdraws the old one")
		return nil, errDiffers
	}
	s.charge(w.payer, len(data))
	if err := s.store.put(h); err != nil {
		s.cfg.Log.Warn("a segment could not be kept on disk", "error", err)
	}
	if s.withdraws(c) { // a purge came in between, and may have looked through the store before
		s.disown(id)
		return nil, errStale
	}
	s.cfg.Metrics.Add(mFetches, 1, w.title.site.name, fetchedSibling)
	return h, nil
}

// Answer answers a sibling's question. It asks no other sibling.
func (s *Service) Answer(ctx context.Context, q sibling.Question) *sibling.Answer {
	h := s.store.get(q.Segment)
	now := s.cfg.Now()
	if h != nil && !s.good(h.cert, now) {
		h = nil
	}
	if h != nil && (q.Have == nil || !ending(h.cert, now)) || q.Held {
		return answerOf(verdict{held: h, none: peer.NoneUnknown}, q)
	}
	s.mu.Lock()
	t := s.titles[peer.ID(q.Swarm)]
	s.mu.Unlock()
	if t == nil {
		return answerOf(verdict{none: peer.NoneUnknown}, q)
	}
	r, _ := t.find(ctx, q.Segment, party{})
	if r == nil {
		return answerOf(verdict{none: peer.NoneUnknown}, q)
	}
	if r.object > 0 {
		return answerOf(verdict{none: peer.NoneTooLarge, object: r.object}, q)
	}
	f, v := s.pull(wish{t, r, nil}, h)
	if f != nil {
		select {
		case <-ctx.Done():
			return answerOf(verdict{none: peer.NoneOrigin}, q)
		case <-f.done:
			v = f.verdict
		}
	}
	if v.held == nil && h != nil {
		v = verdict{held: h} // as long as it is good
	}
	return answerOf(v, q)
}

func answerOf(v verdict, q sibling.Question) *sibling.Answer {
	if v.held == nil {
		return &sibling.Answer{None: v.none, Object: v.object}
	}
	a := &sibling.Answer{Certificate: v.held.cert.Bytes(), Data: v.held.data}
	if q.Have != nil && *q.Have == sibling.Content(v.held.sum) {
		a.Data = nil
	}
	return a
}

// Answered counts what went out to a sibling.
func (s *Service) Answered(bytes int) { s.cfg.Metrics.Add(mSiblingBytes, float64(bytes), "out") }
