package cluster

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/leeway-video/leeway/internal/swarm"
)

// TestPartsAreADivision lets a swarm grow to many times what a part takes, as a home parts it, and walks members to their part.
func TestPartsAreADivision(t *testing.T) {
	const most = 100
	levels := map[Part]int{}    // of the parts that there are
	members := map[Part][]int{} // by number
	place := func(n int) Part {
		hash := Hash(binary.BigEndian.AppendUint32(nil, uint32(n)))
		for at := (Part{}); ; {
			next := at.Toward(hash, max(levels[at], at.Level))
			if next == at {
				return at
			}
			if !next.Valid() || next.Number&(1<<at.Level-1) != at.Number {
				t.Fatalf("from %+v to %+v", at, next)
			}
			at = next
		}
	}
	const all = 5000
	for n := range all {
		p := place(n)
		members[p] = append(members[p], n)
		if len(members[p]) <= most {
			continue
		}
		levels[p] = max(levels[p], p.Level) + 1
		was := members[p]
		members[p] = nil
		for _, m := range was {
			members[place(m)] = append(members[place(m)], m)
		}
	}
	total, keys := 0, map[swarm.ID]bool{}
	for p, in := range members {
		total += len(in)
		keys[p.Key(swarm.ID{1})] = true
		if len(in) > most {
			t.Errorf("%+v has %d members", p, len(in))
		}
		for _, m := range in {
			if place(m) != p {
				t.Errorf("member %d is in %+v, and would be looked for in %+v", m, p, place(m))
			}
		}
	}
	if total != all || len(keys) != len(members) || len(members) < all/most || len(members) > 4*all/most {
		t.Errorf("%d members in %d parts of %d keys", total, len(members), len(keys))
	}
}

func TestPartsHaveHomesOfTheirOwn(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	v := NewView(draw(r), beat)
	for range 2 {
		v.Beat(draw(r), 0, false, start)
	}
	id, spread := draw(r), map[swarm.ID]int{}
	if (Part{}).Key(id) != id {
		t.Error("a swarm that is whole has another home than its own")
	}
	for n := range uint32(1 << 8) {
		spread[v.Home(Part{n, 8}.Key(id))]++
	}
	for home, n := range spread {
		if len(spread) != 3 || n < 50 {
			t.Errorf("%x is home to %d of 256 parts, with %d trackers", home[:2], n, len(spread))
		}
	}
	for p, ok := range map[Part]bool{{}: true, {1, 1}: true, {2, 1}: false, {0, -1}: false, {0, MaxLevel + 1}: false, {1023, MaxLevel}: true} {
		if p.Valid() != ok {
			t.Errorf("%+v: valid %v", p, p.Valid())
		}
	}
}
