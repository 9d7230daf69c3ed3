package seed

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	demandHalves = 10 * time.Minute // of a count, after which it is worth half
	demandLeast  = 1. / 16          // a count below is none
	maxDemand    = 16384            // segments that are counted
)

// demand is what viewers of this seed asked for of late. Siblings' questions do not count: who joins adds up what all say.
type demand struct {
	mu     sync.Mutex
	counts map[wantedID]count // guarded by mu
}

type wantedID struct {
	swarm   peer.ID
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

// ordered lists what is wanted, the most wanted first, and forgets what nobody wants any more. Under mu.
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

// Wanted says to a sibling what viewers asked for here.
func (s *Service) Wanted() sibling.Wanted {
	var out sibling.Wanted
	at, segments := map[peer.ID]int{}, 0
	for _, w := range s.demand.list(s.cfg.Now()) {
		if segments == sibling.MaxWantedIDs {
			break
		}
		i, known := at[w.id.swarm]
		if !known {
			t := s.titleOf(w.id.swarm)
			if t == nil || len(out.Titles) == sibling.MaxWantedTitles {
				continue
			}
			i = len(out.Titles)
			at[w.id.swarm] = i
			out.Titles = append(out.Titles, sibling.WantedTitle{Title: t.told()})
		}
		out.Titles[i].Segments = append(out.Titles[i].Segments, sibling.WantedSegment{ID: signal.ID(w.id.segment), N: int(math.Ceil(w.worth))})
		segments++
	}
	return out
}

func (s *Service) titleOf(swarm peer.ID) *title {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.titles[swarm]
}

// told is the title as trackers tell of it.
func (t *title) told() bus.Title {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bus.Title{
		Site: t.site.name, Title: t.manifest, Manifest: t.manifest, Swarm: signal.ID(t.swarm), Viewers: t.viewers, Seeds: t.seeds,
	}
}
