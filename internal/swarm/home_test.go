package swarm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
)

// draw makes IDs as trackers and swarms have them: 128 random bits.
func draw(r *rand.Rand, n int) []ID {
	out := make([]ID, n)
	for i := range out {
		for j := range out[i] {
			out[i][j] = byte(r.Uint32())
		}
	}
	return out
}

func homes(replicas, keys []ID) map[ID]ID {
	out := map[ID]ID{}
	for _, k := range keys {
		out[k], _ = Home(replicas, k)
	}
	return out
}

func TestHomeDoesNotDependOnTheOrder(t *testing.T) {
	err := quick.Check(func(replicas []ID, key ID) bool {
		before, ok := Home(replicas, key)
		slices.Reverse(replicas)
		after, _ := Home(replicas, key)
		return before == after && ok == (len(replicas) > 0) && (!ok || slices.Contains(replicas, before))
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

func TestAReplicaMovesOnlyItsShare(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{2, 3, 5, 10} {
		replicas, keys := draw(r, n), draw(r, 2000)
		before := homes(replicas, keys)
		gone := replicas[n/2]
		for key, home := range homes(slices.Delete(slices.Clone(replicas), n/2, n/2+1), keys) {
			if before[key] != gone && home != before[key] {
				t.Fatalf("of %d replicas one left, and a swarm of another one moved", n)
			}
			if home == gone {
				t.Fatal("a swarm stayed with the one that left")
			}
		}
	}
}

func TestHomesSpreadEvenly(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	counted := make([]ID, 20_000) // IDs that differ in their last bits only are the harder case
	for i := range counted {
		counted[i] = id(i)
	}
	for name, keys := range map[string][]ID{"random": draw(r, 20_000), "counted": counted} {
		for _, n := range []int{2, 3, 5, 8} {
			for kind, replicas := range map[string][]ID{"random": draw(r, n), "counted": counted[:n]} {
				load := map[ID]int{}
				for _, home := range homes(replicas, keys) {
					load[home]++
				}
				mean := len(keys) / n
				for _, replica := range replicas {
					if got := load[replica]; got < mean*80/100 || got > mean*120/100 {
						t.Errorf("%s keys, %s replicas: one of %d has %d swarms, the mean is %d", name, kind, n, got, mean)
					}
				}
			}
		}
	}
}
