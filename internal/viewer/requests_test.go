package viewer

import (
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestARequestIsSettledOnce(t *testing.T) {
	w := newWorld()
	r := requests{loop: w, pending: map[int]*pendingJoin{}}
	var got []string
	await := func() int {
		id := r.id()
		r.await(id, func(m *signal.Joined, e *signal.Error) {
			if m != nil {
				got = append(got, "joined")
			} else {
				got = append(got, e.Code)
			}
		})
		return id
	}
	first := await()
	if !r.settle(first, &signal.Joined{}, nil) || r.settle(first, &signal.Joined{}, nil) || r.settle(99, nil, nil) {
		t.Error("settled twice, or without a request")
	}
	await()
	w.run(2 * answerTimeout)
	await()
	await()
	r.lose()
	w.run(2 * answerTimeout)
	if want := []string{"joined", "timeout", "lost", "lost"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
