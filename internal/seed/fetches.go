package seed

import (
	"context"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// result is what came of a request for a certified segment: the segment, or why there is none.
type result struct {
	held   *held
	none   peer.NoneReason
	object int64 // bytes, for NoneTooLarge
}

// fetches are the segments on their way: one fetch of a segment at a time, for all that want it. A fetch asks the fleet first, then the
// origin. One that a sibling waits for leaves the fleet out: otherwise two seeds that differ about the owner of a segment would wait
// for each other.
type fetches struct {
	tasks *tasks
	now   func() time.Time

	mu      sync.Mutex
	running map[segment.ID]*fetch  // guarded by mu
	failed  map[segment.ID]failure // guarded by mu
}

// fetch is one segment on its way.
type fetch struct {
	began      time.Time
	leaveFleet context.CancelFunc // goes on to the origin
	done       chan struct{}
	result     result // fixed once done is closed
}

// failure is a recent result without a segment: the origin is not asked again at once.
type failure struct {
	result result
	until  time.Time
}

// source has a segment. fleet ends when the fleet is not to be waited for any more, and before ctx. keep is how long a result without a
// segment holds.
type source func(ctx, fleet context.Context) (r result, keep time.Duration)

func newFetches(t *tasks, now func() time.Time) *fetches {
	return &fetches{tasks: t, now: now, running: map[segment.ID]*fetch{}, failed: map[segment.ID]failure{}}
}

// join returns the fetch of a segment that is under way, or begins one if it may. Without a fetch there is a result: that of a recent
// failure, or that the budget is spent.
func (f *fetches) join(id segment.ID, forSibling bool, may func() bool, from source) (*fetch, result) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.running[id]
	if one == nil {
		if failed, ok := f.failed[id]; ok && now.Before(failed.until) {
			return nil, failed.result
		}
		delete(f.failed, id)
		if !may() {
			return nil, result{none: peer.NoneBudget}
		}
		ctx, cancel := context.WithTimeout(f.tasks.ctx, fetchTimeout)
		fleet, leave := context.WithCancel(ctx)
		one = &fetch{began: now, leaveFleet: leave, done: make(chan struct{})}
		if !f.tasks.begin(func() { defer cancel(); f.run(ctx, fleet, id, one, from) }) {
			cancel()
			return nil, result{none: peer.NoneBudget}
		}
		f.running[id] = one
	}
	if forSibling {
		one.leaveFleet()
	}
	return one, result{}
}

func (f *fetches) run(ctx, fleet context.Context, id segment.ID, one *fetch, from source) {
	r, keep := from(ctx, fleet)
	one.leaveFleet()
	f.mu.Lock()
	delete(f.running, id)
	if r.held == nil {
		f.failed[id] = failure{r, f.now().Add(keep)}
	}
	f.mu.Unlock()
	one.result = r
	close(one.done)
}

// wait returns what comes of the fetch, or that nothing came in time.
func (f *fetch) wait(ctx context.Context) result {
	select {
	case <-ctx.Done():
		return result{none: peer.NoneOrigin}
	case <-f.done:
		return f.result
	}
}

// retry forgets failures: what was refused may be had now.
func (f *fetches) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.failed)
}

// expire forgets failures that hold no longer.
func (f *fetches) expire() {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, failed := range f.failed {
		if now.After(failed.until) {
			delete(f.failed, id)
		}
	}
}
