package cluster

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/leeway-video/leeway/internal/swarm"
)

// MaxLevel bounds how often a swarm is halved.
const MaxLevel = 10

// Part is a part of a swarm: the members whose hash has its number in the lowest Level bits. The zero value is a swarm that
// has not been parted, or what is left of it.
type Part struct {
	Number uint32
	Level  int
}

// Valid says whether there can be such a part.
func (p Part) Valid() bool { return p.Level >= 0 && p.Level <= MaxLevel && p.Number < 1<<p.Level }

// Key is what the part's home is found by.
func (p Part) Key(id swarm.ID) swarm.ID {
	b := id[len(id)-4:]
	binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)^p.Number)
	return id
}

// Toward is the part that a member of this one belongs to after it was halved so often that its level is level now: itself,
// or the first half that was split off and is the member's.
func (p Part) Toward(member uint32, level int) Part {
	for l := p.Level; l < level; l++ {
		if member>>l&1 == 1 {
			return Part{Number: p.Number | 1<<l, Level: l + 1}
		}
	}
	return p
}

// Hash is what a member is sorted into parts by: what it is to share with those that it is to meet.
func Hash(label []byte) uint32 {
	h := fnv.New64a()
	_, _ = h.Write(label)
	return uint32(swarm.Finish(h.Sum64()))
}
