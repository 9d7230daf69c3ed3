package viewer

import (
	"maps"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const answerTimeout = 10 * time.Second // for a welcome, and for the answer to a request

// requests are what a session asked of its tracker and has no answer to yet. IDs are never used again.
type requests struct {
	loop    Loop
	last    int
	pending map[int]*pendingJoin
}

// pendingJoin is a join that waits for its answer.
type pendingJoin struct {
	then func(*signal.Joined, *signal.Error)
	stop func()
}

// id is that of the next request.
func (r *requests) id() int {
	r.last++
	return r.last
}

// await has then called once: with the answer, or with the error that there is none.
func (r *requests) await(id int, then func(*signal.Joined, *signal.Error)) {
	r.pending[id] = &pendingJoin{then, r.loop.After(answerTimeout, func() { r.settle(id, nil, &signal.Error{Code: "timeout"}) })}
}

// settle hands over the answer to a request. It says whether the request waited for one.
func (r *requests) settle(id int, answer *signal.Joined, refusal *signal.Error) bool {
	j := r.pending[id]
	delete(r.pending, id)
	if j == nil {
		return false
	}
	j.stop()
	j.then(answer, refusal)
	return true
}

// lose ends all of them: the socket is gone.
func (r *requests) lose() {
	for _, id := range slices.Sorted(maps.Keys(r.pending)) {
		r.settle(id, nil, &signal.Error{Code: "lost"})
	}
}
