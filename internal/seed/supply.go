package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

// How long an origin's failure is remembered, and how many fetches of one segment purges may overtake.
const (
	failedFor  = 2 * time.Second
	refusedFor = time.Minute
	overtaken  = 3
)

// A segment of a live playlist that the origin does not have is asked for again, first after freshPause, then after twice that, and no
// more after freshLast: a cache may not have yet what the playlist names.
const (
	freshPause = 100 * time.Millisecond
	freshLast  = 400 * time.Millisecond
)

// A segment of a live stream is at the edge while fewer than atTheEdge follow it, which is where players begin. The certificate of one
// that is older than mostFresh says nothing of its publication. A player that has a segment later than when stillLive follow it has stalled, or has
// gone back.
const (
	atTheEdge = 3
	stillLive = 2 * atTheEdge
	mostFresh = time.Minute
)

// supply has certified segments: from the shelf, from the fleet, or from the origin (docs/architecture.md, "A segment's way through a seed").
type supply struct {
	shelf     *shelf
	fetches   *fetches
	fleet     Fleet
	issuer    *issuer
	budgets   *budgets
	lookAhead int                 // segments after one that was asked for
	withhold  func(...segment.ID) // rejects what viewers asked for of segments that are not served any more
	sink      metric.Sink
	log       *slog.Logger
	now       func() time.Time
}

// request is a segment that is wanted, and the session that pays for the fetch; nil: a sibling's, whose viewers paid there.
type request struct {
	title *title
	ref   *ref
	payer *account
}

// costs notes what a fetch for a viewer has brought. A sibling counts for its viewers itself.
func (r *request) costs(bytes int) {
	if r.payer != nil {
		r.title.costs(bytes)
	}
}

// certified returns a segment with its certificate, and has it fetched if need be. What a packager contradicts gets none.
func (s *supply) certified(ctx context.Context, r request) result {
	got := s.get(ctx, r)
	if got.held != nil && s.contradicted(r, got.held) {
		return s.refuseContradicted(r)
	}
	return got
}

// get is certified, whatever packagers signed.
func (s *supply) get(ctx context.Context, r request) result {
	if r.ref.object > 0 {
		return result{none: peer.NoneTooLarge, object: r.ref.object}
	}
	h, may := s.shelf.have(ctx, r.payer, r.ref.id)
	if !may {
		return result{none: peer.NoneBudget}
	}
	rests := r.title.rests()
	if h != nil && s.issuer.good(h.cert) {
		if s.issuer.ending(h.cert) && !rests {
			s.fetch(r, h, false) // the old one is good until the new one is there
		}
		s.sink.Add(mFetches, 1, r.title.site.name, fetchedCache)
		return result{held: h}
	}
	if rests {
		return result{none: peer.NoneTooFewViewers}
	}
	f, known := s.fetch(r, h, false)
	if f == nil {
		return known
	}
	return f.wait(ctx)
}

// forSibling is certified for another seed, which gets what is held while nothing better can be had. It does not ask the fleet.
func (s *supply) forSibling(ctx context.Context, r request, old *held) result {
	if r.ref.object > 0 {
		return result{none: peer.NoneTooLarge, object: r.ref.object}
	}
	f, got := s.fetch(r, old, true)
	if f != nil {
		got = f.wait(ctx)
	}
	if got.held == nil && old != nil {
		return result{held: old} // as long as it is good
	}
	return got
}

// fetch begins to fetch a segment, or joins the fetch that is under way. old is what is held of it.
func (s *supply) fetch(r request, old *held, forSibling bool) (*fetch, result) {
	if why, is := s.issuer.refuses(r.title.site.name, r.ref.seg.Name); is {
		return nil, result{none: why}
	}
	may := func() bool { return s.budgets.mayFetch(r.payer) }
	return s.fetches.join(r.ref.id, forSibling, may, func(ctx, fleet context.Context) (result, time.Duration) {
		if h := s.newer(r.ref.id, old); h != nil {
			return result{held: h}, 0
		}
		if old != nil && s.issuer.good(old.cert) {
			s.issuer.learn(old)
		}
		if got, keep, ok := s.fromFleet(fleet, r, old); ok {
			return got, keep
		}
		return s.fromOrigin(ctx, r, old)
	})
}

// newer is what is in memory by now, if that is better than what was held when it was looked: a fetch may have ended in between.
func (s *supply) newer(id segment.ID, old *held) *held {
	h := s.shelf.cached(id)
	if h == nil || !s.issuer.good(h.cert) || old != nil && !h.cert.NotAfter.After(old.cert.NotAfter) {
		return nil
	}
	return h
}

// fromFleet has a segment from another seed; ok is false where the origin is to be asked.
func (s *supply) fromFleet(ctx context.Context, r request, old *held) (got result, keep time.Duration, ok bool) {
	if ctx.Err() != nil {
		return result{}, 0, false
	}
	o := s.offer(r, old)
	a, err := s.fleet.Segment(ctx, o.wanted())
	switch {
	case errors.Is(err, ErrDiffers):
		return result{none: peer.NoneWithdrawn}, refusedFor, true
	case err != nil || a == nil:
		return result{}, 0, false
	case o.held != nil:
		return result{held: o.held}, 0, true
	}
	return s.fleetsResult(r, a)
}

// fleetsResult is what an owner's answer without a certificate is worth: what it found out of the origin's object holds here, what it
// lacks does not.
func (s *supply) fleetsResult(r request, a *sibling.Answer) (got result, keep time.Duration, ok bool) {
	switch a.None {
	case peer.NoneNotAllowed:
		return result{none: a.None}, refusedFor, true
	case peer.NoneTooLarge:
		if r.ref.seg.Ranged {
			return result{}, 0, false
		}
		r.title.tooLarge(r.ref, a.Object)
		return result{none: a.None, object: a.Object}, refusedFor, true
	case peer.NoneWithdrawn:
		return result{none: a.None}, failedFor, true
	}
	return result{}, 0, false
}

// fromOrigin fetches and certifies. A purge that comes meanwhile may be of the very bytes that are on their way: the origin is asked
// again.
func (s *supply) fromOrigin(ctx context.Context, r request, old *held) (got result, keep time.Duration) {
	site, name := r.title.site.name, r.ref.seg.Name
	for range overtaken {
		if why, is := s.issuer.refuses(site, name); is {
			return result{none: why}, failedFor
		}
		under := s.issuer.standing(site, name)
		if got, keep = s.askOrigin(ctx, r, old, under); s.issuer.standing(site, name) == under {
			return got, keep
		}
		s.disown(r.ref.id)
		old = nil
	}
	return result{none: peer.NoneWithdrawn}, failedFor
}

// disown forgets a certificate that no viewer has seen, with its segment.
func (s *supply) disown(id segment.ID) {
	s.issuer.disown(id)
	s.shelf.drop(id)
}

// askOrigin asks the origin once. A certificate is as old as the question, for the answer may be; but not older than a purge that the
// seed knew of when it asked, whose clock may be ahead of the seed's.
func (s *supply) askOrigin(ctx context.Context, r request, old *held, under standing) (got result, keep time.Duration) {
	t, ref, issuedAt := r.title, r.ref, s.now()
	if purged := time.UnixMilli(under.purgedMs); issuedAt.Before(purged) {
		issuedAt = purged
	}
	f := Fetch{Path: ref.seg.Path, Ranged: ref.seg.Ranged, First: ref.seg.First, Last: ref.seg.Last, MaxBytes: segment.MaxLength, Shared: true}
	if old != nil {
		f.Validator = old.cert.Validator
	}
	fetched, err := s.fetchAgain(ctx, r, f)
	if err == nil {
		s.budgets.charge(r.payer, len(fetched.Data))
		r.costs(len(fetched.Data))
	}
	var failed *FetchError
	switch {
	case err == nil && len(fetched.Data) == 0, ref.seg.Ranged && ref.seg.Last-ref.seg.First >= segment.MaxLength:
		return result{none: peer.NoneNotAllowed}, refusedFor
	case err == nil:
		return s.certify(r, under.signer, issuedAt, fetched)
	case !errors.As(err, &failed):
		return result{none: peer.NoneOrigin}, failedFor
	case failed.Outcome == OutcomeNotModified && old != nil:
		return s.certify(r, under.signer, issuedAt, &Fetched{Data: old.data, ObjectLength: old.cert.ObjectLength, Validator: old.cert.Validator})
	case failed.Outcome == OutcomeTooLarge && failed.ObjectLength > segment.MaxLength && failed.ObjectLength <= segment.MaxObject && !ref.seg.Ranged:
		t.tooLarge(ref, failed.ObjectLength)
		return result{none: peer.NoneTooLarge, object: failed.ObjectLength}, refusedFor
	case failed.Outcome == OutcomeRefused || failed.Outcome == OutcomeTooLarge:
		s.shelf.drop(ref.id) // what may not be shared now is not kept from before either
		s.sink.Add(mCertificates, 1, t.site.name, "refused")
		s.log.Info("a segment may not be shared", "site", t.site.name, "cause", failed.Cause)
		return result{none: peer.NoneNotAllowed}, refusedFor
	}
	return result{none: peer.NoneOrigin}, failedFor
}

// fetchAgain fetches, and again what is of a live stream and not there yet.
func (s *supply) fetchAgain(ctx context.Context, r request, f Fetch) (*Fetched, error) {
	for pause := freshPause; ; pause *= 2 {
		got, err := r.title.fetch(ctx, f)
		var failed *FetchError
		if !r.ref.live || pause > freshLast || !errors.As(err, &failed) || failed.Outcome != OutcomeNotFound || !s.budgets.mayFetch(r.payer) {
			return got, err
		}
		if !sleep.For(ctx, pause) {
			return got, err
		}
	}
}

// certify signs a certificate for bytes that were just fetched, or just found unchanged, and stores both.
func (s *supply) certify(r request, by *signer, issuedAt time.Time, got *Fetched) (result, time.Duration) {
	site, id := r.title.site.name, r.ref.id
	h, err := s.issuer.issue(site, r.ref, by, issuedAt, got)
	switch {
	case errors.Is(err, errContradicts): // the name is the origin's alone until the first certificate ends or is withdrawn
		s.sink.Add(mContradictions, 1, site)
		s.shelf.drop(id)
		s.withhold(id)
		s.log.Warn("the origin's bytes differ from what is certified: withheld until the old certificate ends",
			"site", site, "hint", "leeway purge withdraws the old one")
		return result{none: peer.NoneWithdrawn}, refusedFor
	case err != nil:
		s.log.Warn("a certificate could not be issued", "site", site, "error", err)
		return result{none: peer.NoneNotAllowed}, refusedFor
	}
	if s.contradicted(r, h) {
		return s.refuseContradicted(r), refusedFor
	}
	s.sink.Add(mFetches, 1, site, fetchedOrigin)
	s.keep(h)
	s.observeFreshness(r)
	return result{held: h}, 0
}

// signPart signs a part of a segment that was asked for at a time, under what held then. It is kept by no store: viewers have it at once
// or never.
func (s *supply) signPart(r request, under standing, asked time.Time, got *Fetched) (*held, error) {
	site, name := r.title.site.name, r.ref.seg.Name
	if why, is := s.issuer.refuses(site, name); is {
		return nil, fmt.Errorf("it may not be certified (reason %d)", why)
	}
	if s.issuer.standing(site, name) != under {
		return nil, errors.New("it was purged while it was fetched")
	}
	if purged := time.UnixMilli(under.purgedMs); asked.Before(purged) {
		asked = purged
	}
	h, err := s.issuer.issue(site, r.ref, under.signer, asked, got)
	if err == nil && s.contradicted(r, h) {
		err = errors.New("a packager has signed other bytes")
	}
	return h, err
}

// observeFreshness counts how long after its publication a segment at the edge of a live stream has a certificate. Further back viewers ask late,
// and the time would be theirs.
func (s *supply) observeFreshness(r request) {
	if took, is := s.fresh(r.title, r.ref, atTheEdge); is {
		s.sink.Observe(mFresh, took.Seconds(), r.title.site.name)
	}
}

// observeHeld counts how long after its publication a viewer says that it holds a segment of a live stream. A viewer that was linked later than
// it was published begins with it: the time would be that of its coming.
func (s *supply) observeHeld(t *title, id segment.ID, linked time.Time) {
	r := t.lookup(id)
	if r == nil || linked.After(time.UnixMilli(r.seg.Made)) {
		return
	}
	if took, is := s.fresh(t, r, stillLive); is {
		s.sink.Observe(mHeld, took.Seconds(), t.site.name)
	}
}

// fresh is how long ago a segment that fewer than so many follow was published, by the stream's clock; false: that is not known. Streams that
// were made at another time than they are shown say nothing.
func (s *supply) fresh(t *title, r *ref, followers int) (time.Duration, bool) {
	if r.seg.Made == 0 || len(t.following(r, followers)) == followers {
		return 0, false
	}
	took := s.now().Sub(time.UnixMilli(r.seg.Made))
	return max(0, took), took > -time.Second && took < mostFresh
}

func (s *supply) keep(h *held) {
	if err := s.shelf.put(h); err != nil {
		s.log.Warn("a segment could not be kept on disk", "error", err)
	}
}

// ahead fetches what a viewer of this rendition may want next, where the operator has the seed look ahead.
func (s *supply) ahead(r request) {
	if r.title.rests() {
		return
	}
	for _, next := range r.title.following(r.ref, s.lookAhead) {
		if next.object > 0 {
			continue
		}
		if h := s.shelf.cached(next.id); h == nil && s.shelf.onDisk(next.id) == 0 || h != nil && !s.issuer.good(h.cert) {
			s.fetch(request{r.title, next, r.payer}, h, false)
		}
	}
}
