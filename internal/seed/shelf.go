package seed

import (
	"context"
	"runtime"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
)

// shelf is the store as sessions use it: what is read from disk for a session is charged to it.
type shelf struct {
	*store
	loads   *loads
	budgets *budgets
	sink    metric.Sink
}

func newShelf(s *store, t *tasks, b *budgets, sink metric.Sink) *shelf {
	return &shelf{s, newLoads(s.get, t.begin, max(1, runtime.GOMAXPROCS(0)/2)), b, sink}
}

// load has a segment read from disk for a session, at its expense; done is called with it, or with nil. false: the session has
// spent what it may, or waits for too much.
func (s *shelf) load(a *account, id segment.ID, done func(*held)) bool {
	if s.loads.join(id, done) {
		return true
	}
	n := s.onDisk(id)
	if !s.budgets.mayRead(a, n) || !s.loads.want(&a.reader, id, done) {
		return false
	}
	s.sink.Add(mDiskRead, float64(n))
	return true
}

// have returns a segment that the store holds, nil if it does not. What is on disk is read at the session's expense, or without a
// session at once; ok is false where the session may not.
func (s *shelf) have(ctx context.Context, a *account, id segment.ID) (h *held, ok bool) {
	if h := s.cached(id); h != nil {
		return h, true
	}
	if s.onDisk(id) == 0 {
		return nil, true
	}
	if a == nil {
		return s.loads.now(id), true
	}
	came := make(chan *held, 1)
	if !s.load(a, id, func(h *held) { came <- h }) {
		return nil, false
	}
	select {
	case h := <-came:
		return h, true
	case <-ctx.Done():
		return nil, false
	}
}
