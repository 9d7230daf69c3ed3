package cluster

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/swarm"
)

// TestRankLeavesOutReplicasThatTakeNoWork: a replica that drains, is silent, gone or not asked about is in no rank; the others keep their order.
func TestRankLeavesOutReplicasThatTakeNoWork(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	ids, keys := draws(r, 7), draws(r, 200)
	v := NewView(ids[0], 3*beat)
	for _, id := range ids[1:] {
		v.Beat(id, 0, false, start)
	}
	among := append(slices.Clone(ids[:6]), draw(r)) // one was never heard, one is not asked about
	whole := map[swarm.ID][]swarm.ID{}
	for _, k := range keys {
		whole[k] = v.Rank(k, among)
		if len(whole[k]) != 6 || slices.Contains(whole[k], ids[6]) {
			t.Fatalf("%d of 6 in the rank", len(whole[k]))
		}
	}
	v.Silent(ids[1])
	v.Beat(ids[2], 0, true, start)
	v.Gone(ids[3])
	out := []swarm.ID{ids[1], ids[2], ids[3]}
	owned := map[swarm.ID]int{}
	for _, k := range keys {
		want := slices.DeleteFunc(slices.Clone(whole[k]), func(id swarm.ID) bool { return slices.Contains(out, id) })
		if got := v.Rank(k, among); !slices.Equal(got, want) {
			t.Fatalf("rank %x, want %x", got, want)
		}
		owned[want[0]]++
	}
	if len(owned) != 3 {
		t.Errorf("of %d segments each of three owns one at least: %v", len(keys), owned)
	}
	if got := v.Rank(keys[0], nil); len(got) != 0 {
		t.Errorf("of none %x", got)
	}
}
