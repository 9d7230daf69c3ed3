package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// How a newcomer finds its siblings (spec/cluster.md, "Seeds").
const (
	alone     = beatEvery + 500*time.Millisecond // without a sibling's beat: there is none
	gathering = 500 * time.Millisecond           // from the first one's on; the others answer a newcomer's at once
	maxTold   = 8                                // siblings that are asked what is wanted
)

// WarmUp bounds what a newcomer has its siblings give it before viewers come.
type WarmUp struct {
	Bytes   int64         // at most
	Rate    int64         // bytes/s
	Longest time.Duration // after which it is done, whatever it lacks
}

// Warm implements seed.Fleet.
func (m *Member) Warm() bool {
	select {
	case <-m.warm:
		return true
	default:
		return false
	}
}

// WarmUp implements seed.Fleet: siblings give this seed what their viewers want most, before its own come. It asks no origin for a
// segment.
func (m *Member) WarmUp(ctx context.Context) {
	defer close(m.warm)
	if !m.gather(ctx) {
		return
	}
	w, began := m.cfg.WarmUp, m.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, w.Longest)
	defer cancel()
	run := warming{member: m, follows: map[signal.ID]seed.Followed{}, tired: map[signal.ID]bool{}}
	limit := min(w.Bytes, m.room)
	for _, e := range errandsOf(m.local.ID(), m.askWanted(ctx)) {
		if ctx.Err() != nil || run.bytes >= limit {
			break
		}
		n, outcome := run.do(ctx, e)
		m.cfg.Metrics.Add(mWarmSegments, 1, outcome)
		m.cfg.Metrics.Add(mWarmBytes, float64(n))
		run.bytes += n
		run.segments++
		if n > 0 {
			sleep.For(ctx, time.Duration(float64(n)/float64(w.Rate)*float64(time.Second)))
		}
	}
	if run.segments > 0 {
		m.cfg.Log.Info("warmed up", "segments", run.segments, "bytes", run.bytes, "seconds", m.cfg.Now().Sub(began).Seconds())
	}
}

// gather waits until the seeds that are there have been heard; false when there is none.
func (m *Member) gather(ctx context.Context) bool {
	timer := time.NewTimer(alone)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	case <-m.known.met:
	}
	return sleep.For(ctx, gathering)
}

// askWanted asks siblings what is wanted of them. One that does not say wants nothing.
func (m *Member) askWanted(ctx context.Context) (all []sibling.Wanted) {
	siblings := m.known.heardOf()
	for _, to := range siblings[:min(maxTold, len(siblings))] {
		w, err := m.cfg.Siblings.Wanted(ctx, m.local.ID(), to)
		if err != nil {
			m.cfg.Log.Debug("a seed of the fleet did not say what is wanted", "address", to.Address, "error", err)
			continue
		}
		all = append(all, w)
	}
	return all
}

// errand is a segment that a newcomer wants before viewers do.
type errand struct {
	title bus.Title // this seed among those that serve it
	id    segment.ID
	n     int
	owned bool
}

// errandsOf puts together what siblings want: of the titles that a newcomer will serve, what it will own, then the rest, each
// from most wanted to least.
func errandsOf(self signal.ID, answers []sibling.Wanted) []errand {
	titles, counts := map[signal.ID]bus.Title{}, map[signal.ID]map[signal.ID]int{}
	for _, a := range answers {
		for _, t := range a.Titles {
			id := t.Title.Swarm
			if old, ok := titles[id]; !ok || len(t.Title.Seeds) > len(old.Seeds) {
				titles[id] = t.Title
			}
			if counts[id] == nil {
				counts[id] = map[signal.ID]int{}
			}
			for _, w := range t.Segments {
				counts[id][w.ID] += w.N
			}
		}
	}
	var out []errand
	for id, t := range titles {
		if len(t.Seeds) == 0 || !cluster.Joins(self, id, t.Seeds, t.Viewers) {
			continue
		}
		t.Seeds = append(slices.Clone(t.Seeds), self)
		for w, n := range counts[id] {
			owner := swarm.Order(t.Seeds, w)[0]
			out = append(out, errand{title: t, id: segment.ID(w), n: n, owned: owner == self})
		}
	}
	slices.SortFunc(out, func(a, b errand) int {
		if a.owned != b.owned {
			if a.owned {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.n, a.n), bytes.Compare(a.id[:], b.id[:]))
	})
	return out
}

// warming is one warm-up.
type warming struct {
	member   *Member
	follows  map[signal.ID]seed.Followed // titles by swarm; nil: of no use
	tired    map[signal.ID]bool          // siblings that failed, or are busy
	bytes    int64
	segments int
}

// do has one segment from a sibling that may hold it.
func (w *warming) do(ctx context.Context, e errand) (n int64, outcome string) {
	title := w.title(ctx, e.title)
	if title == nil {
		return 0, warmMissing
	}
	m := w.member
	lacks, held := title(ctx, e.id)
	switch {
	case held:
		return 0, warmHeld
	case lacks == nil:
		return 0, warmMissing
	}
	q := sibling.Question{Segment: e.id, Swarm: e.title.Swarm, Held: true}
	for _, to := range w.holders(*lacks) {
		if w.tired[to.ID] {
			continue
		}
		a, err := m.ask(ctx, *lacks, to, q, m.cfg.Patience)
		if a != nil && a.Certificate != nil {
			return int64(len(a.Data)), warmFetched
		}
		var failed *AskError
		w.tired[to.ID] = errors.As(err, &failed)
	}
	return 0, warmMissing
}

// holders lists the siblings to ask for a segment: the one that would own it without this seed comes first.
func (w *warming) holders(lacks seed.Wanted) []Sibling {
	m, self := w.member, w.member.local.ID()
	rank := slices.DeleteFunc(m.known.rank(lacks.Segment, lacks.Seeds), func(one Sibling) bool { return one.ID == self })
	return m.known.holders(lacks.Segment, append([]Sibling{{ID: self}}, rank...))
}

// title has the seed follow a title, and waits for its playlists once.
func (w *warming) title(ctx context.Context, t bus.Title) seed.Followed {
	follows, known := w.follows[t.Swarm]
	if !known {
		follows = w.member.local.Follow(ctx, &t)
		w.follows[t.Swarm] = follows
	}
	return follows
}
