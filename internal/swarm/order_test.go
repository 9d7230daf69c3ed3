package swarm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrderIsTheHomeWithoutThoseBefore: the next in order is the home when those before it are gone.
func TestOrderIsTheHomeWithoutThoseBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 12 {
		replicas := draw(r, n)
		before := slices.Clone(replicas)
		for _, key := range draw(r, 50) {
			left := slices.Clone(replicas)
			for _, next := range Order(replicas, key) {
				if home, ok := Home(left, key); !ok || home != next {
					t.Fatalf("of %d replicas %x comes after %d others; the home is %x", n, next, n-len(left), home)
				}
				left = slices.DeleteFunc(left, func(id ID) bool { return id == next })
			}
			if len(left) > 0 {
				t.Fatalf("%d replicas are not in the order", len(left))
			}
		}
		if !slices.Equal(before, replicas) {
			t.Fatal("the list was sorted in place")
		}
	}
}
