package peersbench

import (
	"sync"
)

// fetcher shares a job's items among its lanes: a lane that has got one asks for the next.
type fetcher struct {
	ask  func(l lane, item, bytes int) error
	done func(done)
	fail func(error)

	mu    sync.Mutex
	job   job     // guarded by mu
	next  int     // guarded by mu: item
	left  int     // guarded by mu: items that have not come
	since float64 // guarded by mu
}

// begin starts a job; the one before is done.
func (f *fetcher) begin(j job) {
	f.mu.Lock()
	f.job, f.next, f.left, f.since = j, 0, j.items(), now()
	f.mu.Unlock()
	for range j.Ahead {
		for _, l := range j.Lanes {
			f.more(l)
		}
	}
}

// more asks for the next item on a lane, if there is one.
func (f *fetcher) more(l lane) {
	f.mu.Lock()
	item, bytes := f.next, 0
	if item < f.job.items() {
		f.next++
		bytes = f.job.size(item)
	}
	f.mu.Unlock()
	if bytes == 0 {
		return
	}
	if err := f.ask(l, item, bytes); err != nil {
		f.fail(err)
	}
}

// arrived notes that an item has come whole on a lane.
func (f *fetcher) arrived(l lane) {
	f.mu.Lock()
	f.left--
	left, since := f.left, f.since
	f.mu.Unlock()
	if left == 0 {
		f.done(done{MS: now() - since})
		return
	}
	f.more(l)
}
