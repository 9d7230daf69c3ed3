package transfer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// mostWait is how long what was asked for in the foreground waits at a viewer while nothing goes out over its link. Then it is rejected as
// busy: the other side cannot tell a busy viewer from one that does not want to send, and its stall time is a second or more
// (spec/peer-protocol.md, Uploads).
const mostWait = 500 * time.Millisecond

// shed rejects what has waited for mostWait over the links that are served under the controller, and says whether there was any, and after
// how long to look again. It comes after what may go out has gone. A host that is not paced has a budget, which says how long a request
// waits.
func (u *Uploader) shed() (wait time.Duration, did bool) {
	if wait = time.Hour; !u.Paced {
		return wait, false
	}
	type overdue struct {
		up  *Upload
		ids []uint32
	}
	var all []overdue
	now := u.now()
	u.mu.Lock()
	for _, up := range u.ring {
		if !up.paced() {
			continue
		}
		ids, left := up.overdue(now)
		if wait = min(wait, left); len(ids) > 0 {
			all = append(all, overdue{up, ids})
		}
	}
	u.mu.Unlock()
	for _, o := range all {
		for part := range slices.Chunk(o.ids, maxIDs) {
			o.up.reject(peer.RejectBusy, part)
		}
	}
	return wait, len(all) > 0
}

// overdue takes out the foreground requests that have waited for mostWait while nothing went out over the link, one that is half sent among
// them, and says after how long there may be more. What is pushed was not asked for and stays. Under mu.
func (up *Upload) overdue(now time.Time) (gone []uint32, wait time.Duration) {
	if wait = time.Hour; now.Sub(up.back.moved) < mostWait {
		if len(up.lanes[peer.Foreground]) > 0 || up.front() > 0 {
			wait = up.back.moved.Add(mostWait).Sub(now)
		}
		return nil, wait
	}
	for _, list := range up.lists() {
		*list = slices.DeleteFunc(*list, func(q queued) bool {
			if q.lane != peer.Foreground || q.pushed != nil {
				return false
			}
			if left := q.at.Add(mostWait).Sub(now); left > 0 {
				wait = min(wait, left)
				return false
			}
			gone = append(gone, q.id)
			return true
		})
	}
	return gone, wait
}
