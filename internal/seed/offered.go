package seed

import (
	"context"
	"errors"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

// Why a certificate of the fleet is not taken although it holds.
var (
	ErrStale   = errors.New("the certificate is withdrawn, or no newer than the own one")
	ErrDiffers = errors.New("the bytes differ from what this seed certified")
)

// offered is a segment that the fleet may give, as far as it has come. Nothing of it is believed: it is verified as a viewer does.
type offered struct {
	supply *supply
	request
	old  *held // nil: nothing is held
	cert *certificate.Certificate
	held *held // nil until it was kept
}

func (s *supply) offer(r request, old *held) *offered {
	return &offered{supply: s, request: r, old: old}
}

// lacks is what the fleet is told of a segment that the seed may have and does not; held: it has it.
func (s *supply) lacks(ctx context.Context, t *title, r *ref) (w *Wanted, held bool) {
	if r == nil || r.object > 0 {
		return nil, false
	}
	if h, _ := s.shelf.have(ctx, nil, r.id); h != nil && s.issuer.good(h.cert) {
		return nil, true
	}
	if _, is := s.issuer.refuses(t.site.name, r.seg.Name); is {
		return nil, false
	}
	wanted := s.offer(request{title: t, ref: r}, nil).wanted()
	return &wanted, false
}

// wanted is what the fleet is told of it.
func (o *offered) wanted() Wanted {
	w := Wanted{Segment: o.ref.id, Swarm: o.title.swarm, Seeds: o.title.listedSeeds(), Accept: o.accept, Keep: o.keep}
	if o.old != nil {
		w.Have = (*sibling.Content)(&o.old.sum)
	}
	return w
}

// accept judges a certificate before its bytes are taken.
func (o *offered) accept(raw []byte, length int) error {
	c, err := certificate.Parse(raw)
	if err != nil {
		return err
	}
	i := o.supply.issuer
	if outcome := i.verifiers.verify(c, o.title.site.name, o.ref.seg.Name, i.now()); outcome != certificate.Valid {
		return &certificate.Error{Outcome: outcome, Cause: errors.New("of a sibling")}
	}
	same := o.old != nil && contentOf(c) == o.old.sum
	switch {
	case i.takedowns.withdraws(c), same && !c.NotAfter.After(o.old.cert.NotAfter):
		return ErrStale
	case length == 0 && !same, length != 0 && int64(length) != c.Length:
		return errors.New("other bytes than the certificate is of")
	}
	o.cert = c
	return nil
}

// keep stores a segment under the certificate that was accepted; without bytes it is what is held already.
func (o *offered) keep(data []byte) error {
	s, id := o.supply, o.ref.id
	came := len(data)
	if came == 0 {
		data = o.old.data
	} else if !matches(o.cert, data) {
		return errors.New("pieces that do not match the certificate")
	}
	h := newHeld(id, o.cert, data)
	if !s.issuer.record(id, *o.cert, h.sum) {
		s.log.Warn("a sibling's bytes differ from what is certified: withheld until the old certificate ends",
			"site", o.title.site.name, "hint", "leeway purge withdraws the old one")
		return ErrDiffers
	}
	s.budgets.charge(o.payer, len(data))
	o.costs(came)
	s.keep(h)
	if s.issuer.takedowns.withdraws(o.cert) { // a purge came in between, and may have looked through the store before
		s.disown(id)
		return ErrStale
	}
	s.sink.Add(mFetches, 1, o.title.site.name, fetchedSibling)
	o.held = h
	return nil
}
