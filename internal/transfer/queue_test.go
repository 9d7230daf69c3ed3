package transfer

import (
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func order(list []queued) (ids []uint32) {
	for _, r := range list {
		ids = append(ids, r.id)
	}
	return ids
}

// filled has 1, 2, 3 waiting in the foreground, 4, 5 in the background, and 6 (foreground), 7, 8 (background) in hand.
func filled() *queue {
	q := &queue{}
	for id := uint32(1); id <= 5; id++ {
		lane := peer.Lane(id / 4)
		q.lanes[lane] = append(q.lanes[lane], queued{id: id, lane: lane, segment: segment.ID{byte(id % 2)}})
	}
	for _, r := range []queued{{id: 7, lane: peer.Background}, {id: 6, lane: peer.Foreground}, {id: 8, lane: peer.Background}} {
		r.segment = segment.ID{byte(r.id % 2)}
		q.hold(r)
	}
	return q
}

func TestQueue(t *testing.T) {
	foreground, background := peer.Foreground, peer.Background
	for name, c := range map[string]struct {
		do                    func(*queue)
		first, second, inHand []uint32
	}{
		"as it was":                {func(*queue) {}, []uint32{1, 2, 3}, []uint32{4, 5}, []uint32{6, 7, 8}},
		"the first is taken":       {func(q *queue) { q.take(1) }, []uint32{2, 3}, []uint32{4, 5}, []uint32{6, 7, 8}},
		"one between is taken":     {func(q *queue) { q.take(2) }, []uint32{1, 3}, []uint32{4, 5}, []uint32{6, 7, 8}},
		"one in hand is canceled":  {func(q *queue) { q.cancel(7) }, []uint32{1, 2, 3}, []uint32{4, 5}, []uint32{6, 8}},
		"an unknown one is":        {func(q *queue) { q.cancel(9) }, []uint32{1, 2, 3}, []uint32{4, 5}, []uint32{6, 7, 8}},
		"a segment is withdrawn":   {func(q *queue) { q.withdraw(segment.ID{1}) }, []uint32{2}, []uint32{4}, []uint32{6, 8}},
		"one begins":               {func(q *queue) { q.begin() }, []uint32{2, 3}, []uint32{4, 5}, []uint32{6, 7, 8}},
		"foreground comes in hand": {func(q *queue) { q.hold(queued{id: 9, lane: foreground}) }, []uint32{1, 2, 3}, []uint32{4, 5}, []uint32{6, 9, 7, 8}},
		"background comes in hand": {func(q *queue) { q.hold(queued{id: 9, lane: background}) }, []uint32{1, 2, 3}, []uint32{4, 5}, []uint32{6, 7, 8, 9}},
	} {
		q := filled()
		c.do(q)
		if !slices.Equal(order(q.lanes[0]), c.first) || !slices.Equal(order(q.lanes[1]), c.second) || !slices.Equal(order(q.ready), c.inHand) {
			t.Errorf("%s: %v %v %v", name, order(q.lanes[0]), order(q.lanes[1]), order(q.ready))
		}
		if n := len(c.first) + len(c.second) + len(c.inHand); q.waiting() != n {
			t.Errorf("%s: %d wait, want %d", name, q.waiting(), n)
		}
		for _, id := range slices.Concat(c.first, c.second, c.inHand) {
			if !q.outstanding(id) || q.behind(id) != (id == 4 || id == 5 || id == 7 || id == 8 || id == 9 && name == "background comes in hand") {
				t.Errorf("%s: request %d is outstanding: %v, behind: %v", name, id, q.outstanding(id), q.behind(id))
			}
		}
	}
}

// TestTheActiveRequestStopsOnce: it is outstanding until its owner says that it is over, and canceled once.
func TestTheActiveRequestStopsOnce(t *testing.T) {
	q := filled()
	if r := q.begin(); r.id != 1 || q.stop || !q.outstanding(1) || q.waiting() != 7 {
		t.Errorf("request %d begins", r.id)
	}
	if !q.cancel(1) || !q.stop || q.cancel(1) {
		t.Error("the active request is not canceled once")
	}
	if q.begin(); q.stop {
		t.Error("the next request is canceled with the one before")
	}
}

// TestAWithdrawalIsOneMessage: of more requests than a message may list the others stay.
func TestAWithdrawalIsOneMessage(t *testing.T) {
	q := &queue{}
	for id := range uint32(300) {
		q.lanes[peer.Background] = append(q.lanes[peer.Background], queued{id: id})
	}
	if gone := q.withdraw(segment.ID{}); len(gone) != maxIDs || q.waiting() != 300-maxIDs {
		t.Errorf("%d of 300 requests are withdrawn, %d left", len(gone), q.waiting())
	}
}
