package judge

import (
	"net/netip"
	"time"
)

// recent remembers networks for a time, and at most so many of them: the one that was taken first is forgotten first.
type recent struct {
	most  int
	taken map[netip.Prefix]time.Time
	order []netip.Prefix // of taken, the oldest first
}

// take notes a network, and says whether it was not taken within the last time.
func (r *recent) take(net netip.Prefix, now time.Time, within time.Duration) bool {
	r.expire(now, within)
	if _, known := r.taken[net]; known {
		return false
	}
	if len(r.order) >= r.most {
		r.forget()
	}
	if r.taken == nil {
		r.taken = map[netip.Prefix]time.Time{}
	}
	r.taken[net] = now
	r.order = append(r.order, net)
	return true
}

// expire forgets networks that were taken longer ago.
func (r *recent) expire(now time.Time, within time.Duration) {
	for len(r.order) > 0 && now.Sub(r.taken[r.order[0]]) >= within {
		r.forget()
	}
}

func (r *recent) forget() {
	delete(r.taken, r.order[0])
	r.order = r.order[1:]
}
