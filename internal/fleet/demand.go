package fleet

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
)

const (
	demandHalves = 10 * time.Minute // of a count, after which it is worth half
	demandLeast  = 1. / 16          // a count below is none
	maxDemand    = 16384            // segments that are counted
)

// demand is what viewers of this seed asked for of late. Siblings' questions do not count: a newcomer adds up what all say.
type demand struct {
	mu     sync.Mutex
	counts map[wantedID]count // guarded by mu
}

type wantedID struct {
	swarm   swarm.ID
	segment segment.ID
}

// count is how often something was asked for, as it was worth at a time.
type count struct {
	n  float64
	at time.Time
}

func (c count) worth(now time.Time) float64 {
	return c.n * math.Exp2(-float64(now.Sub(c.at))/float64(demandHalves))
}

func newDemand() *demand { return &demand{counts: map[wantedID]count{}} }

// note counts a viewer's question for a certificate.
func (d *demand) note(id wantedID, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, known := d.counts[id]
	if !known && len(d.counts) >= maxDemand {
		for _, w := range d.ordered(now)[maxDemand*3/4:] {
			delete(d.counts, w.id)
		}
	}
	d.counts[id] = count{old.worth(now) + 1, now}
}

// demanded is a segment with what its count is worth.
type demanded struct {
	id    wantedID
	worth float64
}

// ordered lists what is wanted, the most wanted first, and forgets what is not wanted any more. Under mu.
func (d *demand) ordered(now time.Time) []demanded {
	out := make([]demanded, 0, len(d.counts))
	for id, c := range d.counts {
		if worth := c.worth(now); worth >= demandLeast {
			out = append(out, demanded{id, worth})
		} else {
			delete(d.counts, id)
		}
	}
	slices.SortFunc(out, func(a, b demanded) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), bytes.Compare(a.id.segment[:], b.id.segment[:]))
	})
	return out
}

func (d *demand) list(now time.Time) []demanded {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ordered(now)
}
