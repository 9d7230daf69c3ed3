package seed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/pause"
	"github.com/leeway-video/leeway/internal/segment"
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

// warmUp has siblings give this seed what their viewers want most, before its own come. It asks no origin for a segment.
func (s *Service) warmUp(ctx context.Context) {
	defer s.warmed()
	if !s.gather(ctx) {
		return
	}
	w, began := s.fleet.cfg.WarmUp, s.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, w.Longest)
	defer cancel()
	run := warming{service: s, titles: map[signal.ID]*title{}, tired: map[signal.ID]bool{}}
	limit := min(w.Bytes, s.cfg.DiskBytes)
	for _, e := range errandsOf(s.id, s.askWanted(ctx)) {
		if ctx.Err() != nil || run.bytes >= limit {
			break
		}
		n, outcome := run.do(ctx, e)
		s.cfg.Metrics.Add(mWarmSegments, 1, outcome)
		s.cfg.Metrics.Add(mWarmBytes, float64(n))
		run.bytes += n
		run.segments++
		if n > 0 {
			pause.For(ctx, time.Duration(float64(n)/float64(w.Rate)*float64(time.Second)))
		}
	}
	if run.segments > 0 {
		s.cfg.Log.Info("warmed up", "segments", run.segments, "bytes", run.bytes, "seconds", s.cfg.Now().Sub(began).Seconds())
	}
}

// warmed lets viewers come.
func (s *Service) warmed() {
	close(s.warm)
	s.cfg.Metrics.Set(mWarm, 1)
	s.beat(false)
}

func (s *Service) isWarm() bool {
	select {
	case <-s.warm:
		return true
	default:
		return false
	}
}

// gather waits until the seeds that are there have been heard; false when there is none.
func (s *Service) gather(ctx context.Context) bool {
	timer := time.NewTimer(alone)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	case <-s.fleet.met:
	}
	return pause.For(ctx, gathering)
}

// askWanted asks siblings what is wanted of them. One that does not say wants nothing.
func (s *Service) askWanted(ctx context.Context) (all []sibling.Wanted) {
	siblings := s.fleet.heardOf()
	for _, to := range siblings[:min(maxTold, len(siblings))] {
		w, err := s.fleet.cfg.Siblings.Wanted(ctx, s.id, to)
		if err != nil {
			s.cfg.Log.Debug("a seed of the fleet did not say what is wanted", "address", to.Address, "error", err)
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
		seeds := make([]swarm.ID, len(t.Seeds))
		for i, seed := range t.Seeds {
			seeds[i] = swarm.ID(seed)
		}
		if len(seeds) == 0 || !cluster.Joins(swarm.ID(self), swarm.ID(id), seeds, t.Viewers) {
			continue
		}
		seeds = append(seeds, swarm.ID(self))
		t.Seeds = append(slices.Clone(t.Seeds), self)
		for w, n := range counts[id] {
			owner := swarm.Order(seeds, swarm.ID(w))[0]
			out = append(out, errand{title: t, id: segment.ID(w), n: n, owned: signal.ID(owner) == self})
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
	service  *Service
	titles   map[signal.ID]*title // nil: of no use
	tired    map[signal.ID]bool   // siblings that failed, or are busy
	bytes    int64
	segments int
}

// do has one segment from whoever may hold it.
func (w *warming) do(ctx context.Context, e errand) (n int64, outcome string) {
	s := w.service
	t := w.title(ctx, e.title)
	if t == nil {
		return 0, warmMissing
	}
	ix := t.want(party{})
	if ix == nil {
		return 0, warmMissing
	}
	r := ix.lookup(e.id)
	if r == nil || r.object > 0 {
		return 0, warmMissing
	}
	now := s.cfg.Now()
	if h := s.store.get(e.id); h != nil && s.good(h.cert, now) {
		return 0, warmHeld
	}
	if _, no := s.refuses(t.site.name, r.seg.name, now); no {
		return 0, warmMissing
	}
	q := sibling.Question{Segment: e.id, Swarm: e.title.Swarm, Held: true}
	for _, to := range w.holders(t, e.id) {
		if w.tired[to.ID] {
			continue
		}
		h, _, err := s.ask(ctx, wish{title: t, ref: r}, to, q, nil, s.fleet.cfg.Patience)
		if h != nil {
			return int64(len(h.data)), warmFetched
		}
		var failed *SiblingError
		w.tired[to.ID] = errors.As(err, &failed)
	}
	return 0, warmMissing
}

// holders lists whom to ask for a segment: who would own it without this seed comes first.
func (w *warming) holders(t *title, id segment.ID) []Sibling {
	s := w.service
	rank := slices.DeleteFunc(s.fleet.rank(id, t.listedSeeds()), func(one Sibling) bool { return one.ID == s.id })
	return s.fleet.holders(id, append([]Sibling{{ID: s.id}}, rank...))
}

// title follows a title as if a tracker had named it, and waits for its playlists once.
func (w *warming) title(ctx context.Context, named bus.Title) *title {
	t, known := w.titles[named.Swarm]
	if !known {
		if t, _ = w.service.named(&named); t != nil && !t.await(ctx) {
			t = nil
		}
		w.titles[named.Swarm] = t
	}
	return t
}

// await waits for the playlists, for as long as a viewer would, and says whether there is anything in them.
func (t *title) await(ctx context.Context) bool {
	ix := t.want(party{})
	return ix != nil && ix.await(ctx)
}

func (ix *index) await(ctx context.Context) bool {
	ix.mu.Lock()
	loads, loaded := ix.loads, ix.loaded
	ix.mu.Unlock()
	if loads == 0 {
		ix.wait(ctx, loaded)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.refs) > 0
}
