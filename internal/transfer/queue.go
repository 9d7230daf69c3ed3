package transfer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// queued is a request, and what is left of its piece once that is in hand.
type queued struct {
	segment segment.ID
	id      uint32
	piece   int
	lane    peer.Lane
	at      time.Time
	pushed  []byte // the piece, if it was not asked for; nil: it was
	data    []byte // all of the piece; nil: it is not in hand
	offset  int    // bytes of it that are sent
}

// queue has the requests of one link, each once: those that wait, by lane, those whose pieces are in hand for the controller, and the one
// that is being sent. Its owner guards it.
type queue struct {
	lanes  [2][]queued
	ready  []queued // those of the foreground first; the first is being sent
	active *uint32  // request being sent beside the controller
	stop   bool     // the active request was canceled
}

// lists are where requests wait.
func (q *queue) lists() [3]*[]queued { return [3]*[]queued{&q.lanes[0], &q.lanes[1], &q.ready} }

// waiting is how many requests wait.
func (q *queue) waiting() int { return len(q.lanes[0]) + len(q.lanes[1]) + len(q.ready) }

// find is the request that waits, where it waits; nil: none does.
func (q *queue) find(id uint32) (list *[]queued, at int) {
	for _, list := range q.lists() {
		if i := slices.IndexFunc(*list, func(r queued) bool { return r.id == id }); i >= 0 {
			return list, i
		}
	}
	return nil, -1
}

// outstanding says whether a request waits or is being sent.
func (q *queue) outstanding(id uint32) bool {
	if q.active != nil && *q.active == id {
		return true
	}
	list, _ := q.find(id)
	return list != nil
}

// begin makes the first request of the foreground the active one.
func (q *queue) begin() queued {
	first := q.lanes[peer.Foreground][0]
	q.lanes[peer.Foreground] = q.lanes[peer.Foreground][1:]
	id := first.id
	q.active, q.stop = &id, false
	return first
}

// cancel takes a request out, or has the active one stop, and says whether there was one.
func (q *queue) cancel(id uint32) bool {
	if q.active != nil && *q.active == id && !q.stop {
		q.stop = true
		return true
	}
	_, ok := q.take(id)
	return ok
}

// take removes a request that waits.
func (q *queue) take(id uint32) (queued, bool) {
	list, i := q.find(id)
	if list == nil {
		return queued{}, false
	}
	r := (*list)[i]
	if i == 0 { // mostly; a queue of hundreds is neither copied nor moved then
		(*list)[0] = queued{}
		*list = (*list)[1:]
	} else {
		*list = slices.Delete(*list, i, i+1)
	}
	return r, true
}

// withdraw removes requests for a segment, as many as one message may list, and returns their IDs.
func (q *queue) withdraw(segment segment.ID) (gone []uint32) {
	for _, list := range q.lists() {
		var keep []queued
		for _, r := range *list {
			if r.segment == segment && len(gone) < maxIDs {
				gone = append(gone, r.id)
			} else {
				keep = append(keep, r)
			}
		}
		*list = keep
	}
	return gone
}

// behind says whether a request waits in the background.
func (q *queue) behind(id uint32) bool {
	list, i := q.find(id)
	return list != nil && (*list)[i].lane == peer.Background
}

// front is how many of what is ready are of the foreground.
func (q *queue) front() int {
	if n := slices.IndexFunc(q.ready, func(r queued) bool { return r.lane != peer.Foreground }); n >= 0 {
		return n
	}
	return len(q.ready)
}

// hold puts a request whose piece is in hand behind those of its lane.
func (q *queue) hold(r queued) {
	at := len(q.ready)
	if r.lane == peer.Foreground {
		at = q.front()
	}
	q.ready = slices.Insert(q.ready, at, r)
}

// loaded puts the piece of a request of the foreground in hand where it waits.
func (q *queue) loaded(id uint32, data []byte) {
	for i := range q.lanes[peer.Foreground] {
		if r := &q.lanes[peer.Foreground][i]; r.id == id {
			r.data = data
		}
	}
}
