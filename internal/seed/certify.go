package seed

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Lives of certificates (spec/certificate.md), and how long an origin's failure is remembered.
const (
	lifeVOD    = certificate.MaxLife
	lifeLive   = 10 * time.Minute
	failedFor  = 2 * time.Second
	refusedFor = time.Minute
	maxLedger  = 65536
	overtaken  = 3 // fetches of one segment that purges may overtake
)

// verdict is what came of a wish for a certificate: a held segment, or why there is none.
type verdict struct {
	held   *held
	none   peer.NoneReason
	object int64 // bytes, for NoneTooLarge
}

// wish is a segment that is wanted, and the session that pays for the fetch.
type wish struct {
	title *title
	ref   *ref
	payer *account
}

// flight is one way to a segment that everybody who wants it waits for.
type flight struct {
	done    chan struct{}
	verdict verdict       // fixed once done is closed
	keep    time.Duration // likewise: how long a verdict without a certificate holds
}

// failure is a recent verdict without a certificate: the origin is not asked again at once.
type failure struct {
	verdict verdict
	until   time.Time
}

// issued is what the seed vouched for: as long as it is valid, other content under the same name gets no certificate,
// for two valid certificates would withdraw the name at every viewer.
type issued struct {
	cert    certificate.Certificate // without digests
	content [32]byte
}

func contentOf(c *certificate.Certificate) [32]byte {
	h := sha256.New()
	for _, d := range c.Digests {
		h.Write(d[:])
	}
	return [32]byte(h.Sum(nil))
}

// certify returns a segment's certificate with its bytes, fetching them if need be.
func (s *Service) certify(ctx context.Context, w wish) verdict {
	r := w.ref
	if r.object > 0 {
		return verdict{none: peer.NoneTooLarge, object: r.object}
	}
	now := s.cfg.Now()
	h, may := s.have(ctx, w.payer, r.id)
	if !may {
		return verdict{none: peer.NoneBudget}
	}
	if h != nil && s.good(h.cert, now) {
		if ending(h.cert, now) {
			s.fly(w, h) // the old one is good until the new one is there
		}
		s.cfg.Metrics.Add(mFetches, 1, w.title.site.name, fetchedCache)
		return verdict{held: h}
	}
	f, known := s.fly(w, h)
	if f == nil {
		return known
	}
	select {
	case <-ctx.Done():
		return verdict{none: peer.NoneOrigin}
	case <-f.done:
		return f.verdict
	}
}

// good says whether a certificate may be handed out.
func (s *Service) good(c *certificate.Certificate, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(c.NotAfter) && !s.revoked.Withdraws(c)
}

// ending says whether it is time for a new certificate.
func ending(c *certificate.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < c.NotAfter.Sub(c.IssuedAt)/4
}

// fresh is what is held by now, if that is better than what was held when somebody looked: a flight may have ended in between.
func (s *Service) fresh(ctx context.Context, w wish, old *held) *held {
	h, _ := s.have(ctx, w.payer, w.ref.id)
	now := s.cfg.Now()
	if h == nil || !s.good(h.cert, now) || old != nil && !h.cert.NotAfter.After(old.cert.NotAfter) {
		return nil
	}
	return h
}

// fly begins to have a segment for a session, or joins what is under way. Without a flight the verdict is a recent failure.
func (s *Service) fly(w wish, old *held) (*flight, verdict) {
	return s.begin(s.flights, w, old, func(ctx context.Context) (verdict, time.Duration) { return s.bring(ctx, w, old) })
}

// pull is fly from the origin alone: what an owner does, and who has none. A flight may wait for a sibling that asks this
// seed, so siblings wait for pulls, which wait for nobody.
func (s *Service) pull(w wish, old *held) (*flight, verdict) {
	return s.begin(s.pulls, w, old, func(ctx context.Context) (verdict, time.Duration) { return s.obtain(ctx, w, old) })
}

// begin starts a flight among those of one kind, or returns the one that is under way.
func (s *Service) begin(all map[segment.ID]*flight, w wish, old *held, run func(context.Context) (verdict, time.Duration)) (*flight, verdict) {
	now, id := s.cfg.Now(), w.ref.id
	if why, no := s.refuses(w.title.site.name, w.ref.seg.name, now); no {
		return nil, verdict{none: why}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := all[id]; f != nil {
		return f, verdict{}
	}
	if f, ok := s.failures[id]; ok {
		if now.Before(f.until) {
			return nil, f.verdict
		}
		delete(s.failures, id)
	}
	if s.stopping || !s.mayFetch(w.payer) {
		return nil, verdict{none: peer.NoneBudget}
	}
	f := &flight{done: make(chan struct{})}
	all[id] = f
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, fetchTimeout)
		defer cancel()
		if h := s.fresh(ctx, w, old); h != nil {
			f.verdict = verdict{held: h}
		} else {
			f.verdict, f.keep = run(ctx)
		}
		s.mu.Lock()
		delete(all, id)
		if f.verdict.held == nil {
			s.failures[id] = failure{f.verdict, s.cfg.Now().Add(f.keep)}
		}
		s.mu.Unlock()
		close(f.done)
	})
	return f, verdict{}
}

// obtain fetches and certifies; for a verdict without a certificate, keep is how long it holds. A purge that comes
// meanwhile may be of the very bytes that are on their way: the origin is asked again.
func (s *Service) obtain(ctx context.Context, w wish, old *held) (v verdict, keep time.Duration) {
	for range overtaken {
		if why, no := s.refuses(w.title.site.name, w.ref.seg.name, s.cfg.Now()); no {
			return verdict{none: why}, failedFor
		}
		now := s.standing(w)
		if v, keep = s.attempt(ctx, w, old, now); s.standing(w) == now {
			return v, keep
		}
		s.disown(w.ref.id)
		old = nil
	}
	return verdict{none: peer.NoneWithdrawn}, failedFor
}

// standing is under what a segment is certified: the time of its last purge, and the key.
type standing struct {
	purgedMs int64
	signer   *signer
}

func (s *Service) standing(w wish) standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return standing{s.revoked.Since(w.title.site.name, w.ref.seg.name).UnixMilli(), s.signer}
}

// disown forgets a certificate that nobody has seen.
func (s *Service) disown(id segment.ID) {
	s.mu.Lock()
	delete(s.ledger, id)
	s.mu.Unlock()
	s.store.drop(id)
}

// attempt asks the origin once. A certificate is as old as the question, for the answer may be; but not older than a purge
// that the seed knew of when it asked, whose clock may be ahead of the seed's.
func (s *Service) attempt(ctx context.Context, w wish, old *held, under standing) (v verdict, keep time.Duration) {
	t, r, issuedAt := w.title, w.ref, s.cfg.Now()
	if purged := time.UnixMilli(under.purgedMs); issuedAt.Before(purged) {
		issuedAt = purged
	}
	f := Fetch{Path: r.seg.path, Ranged: r.seg.ranged, First: r.seg.first, Last: r.seg.last, MaxBytes: segment.MaxLength, Shared: true}
	if old != nil {
		f.Validator = old.cert.Validator
	}
	got, err := t.site.fetch(ctx, f)
	if err == nil {
		s.charge(w.payer, len(got.Data))
	}
	var failed *FetchError
	switch {
	case err == nil && len(got.Data) == 0, r.seg.ranged && r.seg.last-r.seg.first >= segment.MaxLength:
		return verdict{none: peer.NoneNotAllowed}, refusedFor
	case err == nil:
		return s.issue(t, r, under.signer, issuedAt, got)
	case !errors.As(err, &failed):
		return verdict{none: peer.NoneOrigin}, failedFor
	case failed.Outcome == OutcomeNotModified && old != nil:
		return s.issue(t, r, under.signer, issuedAt, &Fetched{Data: old.data, ObjectLength: old.cert.ObjectLength, Validator: old.cert.Validator})
	case failed.Outcome == OutcomeTooLarge && failed.ObjectLength > segment.MaxLength && failed.ObjectLength <= segment.MaxObject && !r.seg.ranged:
		t.tooLarge(r, failed.ObjectLength)
		return verdict{none: peer.NoneTooLarge, object: failed.ObjectLength}, refusedFor
	case failed.Outcome == OutcomeRefused || failed.Outcome == OutcomeTooLarge:
		s.store.drop(r.id) // what may not be shared now is not kept from before either
		s.cfg.Metrics.Add(mCertificates, 1, t.site.name, "refused")
		s.cfg.Log.Info("a segment may not be shared", "site", t.site.name, "cause", failed.Cause)
		return verdict{none: peer.NoneNotAllowed}, refusedFor
	}
	return verdict{none: peer.NoneOrigin}, failedFor
}

// issue signs a certificate for bytes that were just fetched, or just found unchanged, and stores both.
func (s *Service) issue(t *title, r *ref, by *signer, issuedAt time.Time, got *Fetched) (verdict, time.Duration) {
	data, validator := got.Data, got.Validator
	life := lifeVOD
	if r.live {
		life = lifeLive
	}
	if len(validator) > 255 {
		validator = ""
	}
	c := certificate.Certificate{
		KeyID: by.id, IssuedAt: issuedAt, NotAfter: issuedAt.Add(life), ObjectLength: got.ObjectLength, Length: int64(len(data)),
		Site: t.site.name, Name: r.seg.name, Validator: validator, Digests: certificate.DigestPieces(data),
	}
	content := contentOf(&c)
	if !s.vouch(r.id, c, content, s.cfg.Now()) {
		s.cfg.Metrics.Add(mCertificates, 1, t.site.name, "refused")
		s.contradicted(t.site.name, r.id)
		s.cfg.Log.Warn("the origin's bytes differ from what is certified: withheld until the old certificate ends",
			"site", t.site.name, "hint", "leeway purge withdraws the old one")
		return verdict{none: peer.NoneWithdrawn}, refusedFor
	}
	raw, err := certificate.Issue(rand.Reader, by.key, c)
	var cert *certificate.Certificate
	if err == nil {
		cert, err = certificate.Parse(raw)
	}
	if err != nil {
		s.cfg.Metrics.Add(mCertificates, 1, t.site.name, "refused")
		s.cfg.Log.Warn("a certificate could not be issued", "site", t.site.name, "error", err)
		return verdict{none: peer.NoneNotAllowed}, refusedFor
	}
	s.cfg.Metrics.Add(mCertificates, 1, t.site.name, "issued")
	s.cfg.Metrics.Add(mFetches, 1, t.site.name, fetchedOrigin)
	h := newHeld(r.id, cert, data)
	if err := s.store.put(h); err != nil {
		s.cfg.Log.Warn("a segment could not be kept on disk", "error", err)
	}
	return verdict{held: h}, 0
}

// contradicted acts on a name of two contents: it is the origin's alone until the first certificate ends or is withdrawn.
func (s *Service) contradicted(site string, id segment.ID) {
	s.cfg.Metrics.Add(mContradictions, 1, site)
	s.store.drop(id)
	s.mu.Lock()
	viewers := slices.Collect(maps.Values(s.viewers))
	s.mu.Unlock()
	withhold(viewers, id)
}

// vouch notes that a certificate is issued, unless another one with other content still holds.
func (s *Service) vouch(id segment.ID, c certificate.Certificate, content [32]byte, now time.Time) bool {
	c.Digests = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.ledger[id]; ok && old.content != content && now.Before(old.cert.NotAfter) && !s.revoked.Withdraws(&old.cert) {
		return false
	}
	if len(s.ledger) >= maxLedger {
		s.pruneLedger(now)
	}
	s.ledger[id] = issued{c, content}
	return true
}

// pruneLedger drops what has ended, and some of the rest if that is not enough. Under mu.
func (s *Service) pruneLedger(now time.Time) {
	for id, e := range s.ledger {
		if !now.Before(e.cert.NotAfter) {
			delete(s.ledger, id)
		}
	}
	for id := range s.ledger {
		if len(s.ledger) < maxLedger*3/4 {
			return
		}
		delete(s.ledger, id)
	}
}

// lookAhead fetches what a viewer of this rendition will want next, so that it need not wait for the origin.
func (s *Service) lookAhead(w wish) {
	now := s.cfg.Now()
	for _, next := range w.title.following(w.ref, s.cfg.LookAhead) {
		if next.object > 0 {
			continue
		}
		if h := s.store.cached(next.id); h == nil && s.store.onDisk(next.id) == 0 || h != nil && !s.good(h.cert, now) {
			s.fly(wish{w.title, next, w.payer}, h)
		}
	}
}
