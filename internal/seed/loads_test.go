package seed

import (
	"slices"
	"sync"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
)

// TestSessionsTakeTurnsAtTheDisk: one that wants a hundred segments has the others wait for one of them, and what several want is
// read once.
func TestSessionsTakeTurnsAtTheDisk(t *testing.T) {
	var mu sync.Mutex
	var order []byte
	gate := make(chan struct{})
	var all sync.WaitGroup
	l := newLoads(func(id segment.ID) *held {
		<-gate
		mu.Lock()
		defer mu.Unlock()
		order = append(order, id[0])
		return &held{id: id}
	}, func(f func()) bool { all.Go(f); return true }, 1)
	greedy, a, b := &reader{}, &reader{}, &reader{}
	var came []byte
	want := func(r *reader, n byte) bool {
		return l.want(r, segment.ID{n}, func(h *held) {
			mu.Lock()
			defer mu.Unlock()
			came = append(came, h.id[0])
		})
	}
	taken := 0
	for n := range byte(100) {
		if want(greedy, n+1) {
			taken++
		}
	}
	if taken != maxLoads+1 {
		t.Errorf("%d wait, want %d and the one that is read", taken, maxLoads)
	}
	if !want(a, 201) || !want(b, 202) || !want(a, 203) || !l.join(segment.ID{1}, func(*held) {}) || l.join(segment.ID{201}, func(*held) {}) {
		t.Error("no room for others, or one that is not read is joined")
	}
	close(gate)
	all.Wait()
	if !slices.Equal(order[:6], []byte{1, 201, 202, 2, 203, 3}) || len(order) != taken+3 || len(came) != len(order) {
		t.Errorf("read in the order %d; %d of %d came", order, len(came), len(order))
	}
	if l.running != 0 || len(l.under) != 0 || len(l.turns) != 0 {
		t.Errorf("left behind: %d running, %d under way, %d turns", l.running, len(l.under), len(l.turns))
	}
}

// TestAReadThatWaitsForTheDiskEndsWithTheSeed.
func TestAReadThatWaitsForTheDiskEndsWithTheSeed(t *testing.T) {
	l := newLoads(nil, func(func()) bool { return false }, 1)
	told := 0
	r := &reader{}
	for n := range byte(3) {
		if !l.want(r, segment.ID{n}, func(h *held) {
			if h == nil {
				told++
			}
		}) {
			t.Error("no room")
		}
	}
	if told != 3 {
		t.Errorf("%d of 3 were told", told)
	}
}
