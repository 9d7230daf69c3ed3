package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

const (
	maxOwners = 3  // owners that are asked one after the other
	heldShare = 16 // of its patience a seed has a part for a sibling to give what it holds already
)

// Segment implements seed.Fleet: it asks the owner of a segment, and the next in rank where that one is gone. The owner itself asks those
// that may hold it.
func (m *Member) Segment(ctx context.Context, w seed.Wanted) (*sibling.Answer, error) {
	for range maxOwners {
		rank := m.known.rank(w.Segment, w.Seeds)
		if len(rank) == 0 {
			return nil, nil
		}
		if rank[0].ID == m.local.ID() {
			return m.fromHolders(ctx, w, m.known.holders(w.Segment, rank)), nil
		}
		a, err := m.ask(ctx, w, rank[0], sibling.Question{Segment: w.Segment, Swarm: w.Swarm, Have: w.Have}, m.cfg.Patience)
		var failed *AskError
		if errors.As(err, &failed) && failed.Outcome == OutcomeUnreachable {
			continue // the next in rank is the owner now
		}
		return a, err
	}
	return nil, nil
}

// fromHolders asks siblings whether they hold what the owner does not.
func (m *Member) fromHolders(ctx context.Context, w seed.Wanted, holders []Sibling) *sibling.Answer {
	if w.Have != nil {
		return nil // the origin says whether the bytes are still the same
	}
	for _, to := range holders {
		q := sibling.Question{Segment: w.Segment, Swarm: w.Swarm, Held: true}
		if a, _ := m.ask(ctx, w, to, q, m.cfg.Patience/heldShare); a != nil && a.Certificate != nil {
			return a
		}
	}
	return nil
}

// ask asks one sibling, and has the seed keep what it gives. An answer with a certificate has been kept.
func (m *Member) ask(ctx context.Context, w seed.Wanted, to Sibling, q sibling.Question, patience time.Duration) (*sibling.Answer, error) {
	select {
	case m.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, &AskError{Outcome: OutcomeSlow, Cause: ctx.Err()}
	}
	defer func() { <-m.asking }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began, sink := m.cfg.Now(), m.cfg.Metrics
	a, err := m.cfg.Siblings.Ask(ctx, m.local.ID(), to, q, w.Accept)
	if err == nil && a.Certificate != nil {
		if err = w.Keep(a.Data); err == nil {
			m.known.asked(to.ID, false, began)
			sink.Add(mSiblingRequests, 1, string(OutcomeOK))
			sink.Add(mSiblingBytes, float64(len(a.Certificate)+len(a.Data)), "in")
			sink.Observe(mSiblingTime, m.cfg.Now().Sub(began).Seconds())
			return a, nil
		}
	}
	if err == nil || errors.Is(err, seed.ErrStale) || errors.Is(err, seed.ErrDiffers) {
		m.known.asked(to.ID, false, began)
		sink.Add(mSiblingRequests, 1, string(OutcomeNone))
		if err != nil {
			return nil, err
		}
		return a, nil
	}
	return nil, m.failed(to, err)
}

// failed notes that a question brought no answer.
func (m *Member) failed(to Sibling, err error) *AskError {
	failed := &AskError{Outcome: OutcomeInvalid, Cause: err}
	errors.As(err, &failed)
	m.cfg.Metrics.Add(mSiblingRequests, 1, string(failed.Outcome))
	gone := failed.Outcome == OutcomeUnreachable || failed.Outcome == OutcomeInvalid
	if m.known.asked(to.ID, gone, m.cfg.Now()) {
		m.cfg.Log.Warn("a seed of the fleet cannot be asked: the next one owns its segments", "address", to.Address, "error", failed.Cause,
			"hint", "siblings reach each other at seed.fleet.announce, on the port of seed.fleet.listen")
	}
	if failed.Outcome == OutcomeRefused {
		m.cfg.Log.Debug("a seed of the fleet refused a question", "address", to.Address, "error", failed.Cause)
	}
	return failed
}
