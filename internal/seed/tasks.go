package seed

import (
	"context"
	"sync"
)

// tasks are the goroutines of a seed. After end none begins; wait returns when all have returned.
type tasks struct {
	ctx  context.Context // ends with wait
	stop context.CancelFunc

	wg     sync.WaitGroup
	mu     sync.Mutex
	ending bool // guarded by mu
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// begin runs f beside the caller, or returns false when the seed is about to end. It has no bound of its own: a bound for all links
// together would let a few of them keep the others waiting, so each link bounds what it has under way.
func (t *tasks) begin(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return false
	}
	t.wg.Go(f)
	return true
}

// end keeps everything new from beginning.
func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
}

func (t *tasks) isEnding() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ending
}

// wait cancels what goes on and returns when it has ended.
func (t *tasks) wait() {
	t.stop()
	t.wg.Wait()
}
