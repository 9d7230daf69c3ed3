package viewer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
)

// audience is a trace of the kind that `leeway-lab bench swarm` plays in a lab, by the same dice: the same seed has the same
// viewers come at the same times behind the same lines.
type audience struct {
	viewers      int
	film, within time.Duration
	seed         uint64
	alone        bool                    // no peers
	thin         float64                 // what the seed sends, bytes per second; 0: more than is asked of it
	ahead        bool                    // prefetch is on
	lines        []homes                 // nil: homeLines
	short        bool                    // segments of two seconds
	ladder       bool                    // twenty renditions, each an eighth larger than the one before
	heavy        int                     // so many times as many bytes; 0: once
	each         func(s *scene, n *node) // what becomes of a viewer's line
	trouble      func(s *scene, film time.Duration)
}

// homes are the access lines of a share of the viewers.
type homes struct {
	name  string
	share float64
	access
}

var homeLines = []homes{
	{"5/1", 0.3, access{up: 125_000, down: 625_000, delay: 30 * time.Millisecond}},
	{"20/5", 0.4, access{up: 625_000, down: 2_500_000, delay: 15 * time.Millisecond}},
	{"100/40", 0.3, access{up: 5e6, down: 12.5e6, delay: 7500 * time.Microsecond}},
}

// plan is what one viewer does.
type plan struct {
	arrive, seekAfter, seekTo, leaveAfter time.Duration
	line                                  int
}

func (a audience) plans() []plan {
	r := rand.New(rand.NewPCG(a.seed, 0x6c656577617900))
	between := func(low, high float64, d time.Duration) time.Duration {
		return time.Duration((low + (high-low)*r.Float64()) * float64(d)).Round(time.Millisecond)
	}
	share := func(of float64) int { return int(of*float64(a.viewers) + 0.5) }
	lines, plans := a.lines, make([]plan, a.viewers)
	for i := range plans {
		plans[i].arrive = between(0, 1, a.within)
	}
	slices.SortFunc(plans, func(a, b plan) int { return int(a.arrive - b.arrive) })
	order, next := r.Perm(a.viewers), 0
	for i, l := range lines {
		upTo := a.viewers
		if i < len(lines)-1 {
			upTo = next + share(l.share)
		}
		for ; next < upTo; next++ {
			plans[order[next]].line = i
		}
	}
	for _, i := range r.Perm(a.viewers)[:share(0.3)] {
		plans[i].seekAfter, plans[i].seekTo = between(0.05, 0.5, a.film), between(0, 0.8, a.film)
	}
	for _, i := range r.Perm(a.viewers)[:share(0.2)] {
		plans[i].leaveAfter = between(0.1, 0.9, a.film)
	}
	return plans
}

// shape is how large the segments of a real film are, against the largest.
var shape = []float64{0.88, 0.86, 0.88, 0.86, 0.38, 0.71, 0.84, 1, 0.8, 0.88, 0.9, 0.57, 0.47, 0.86, 0.9}

// tally is what came of an audience.
type tally struct {
	offload, duplicates, wasted float64 // shares of all bytes
	stall                       float64 // share of the time
	stalls                      int64
	bitrate                     float64 // Mbit/s
	startup                     float64 // s, median
	saved                       float64 // share of all bytes that peers sent beyond what the seed fetched
	requests                    float64 // to the origin, for each segment that any player got
	queue                       float64 // ms: p95 of what waits for the thinnest uplinks while they send
}

func (a audience) play(t testing.TB) tally {
	s, out := a.run(t)
	s.check()
	return out
}

// run plays the trace and leaves to the caller whether all viewers have to have ended well.
func (a audience) run(t testing.TB) (*scene, tally) {
	if a.lines == nil {
		a.lines = homeLines
	}
	lines, plans := a.lines, a.plans()
	s := newScene(t, a.newFilm)
	s.film.node.delay, s.seed.node.delay = 0, 0
	s.film.node.up.Rate, s.seed.node.up.Rate = 125e6, 125e6
	if a.thin > 0 {
		s.seed.node.up.Rate = a.thin
	}
	s.tracker.home = swarm.New()
	s.tracker.policy.Prefetch = a.ahead
	if a.trouble != nil {
		a.trouble(s, a.film)
	}
	waits := s.watchUplinks(lines[0].up)
	for _, p := range plans {
		s.w.run(p.arrive - s.w.now.Sub(worldBegin))
		v := s.viewer(lines[p.line].access, func(c *Config) {
			if p.seekAfter > 0 {
				c.Seeks = []Seek{{After: p.seekAfter, To: p.seekTo}}
			}
			c.Leave = p.leaveAfter
			if a.alone {
				c.Tracker = ""
			}
		})
		if a.each != nil {
			a.each(s, v.node)
		}
	}
	s.w.run(2*a.film + a.within)
	out := s.tally()
	if slices.Sort(*waits); len(*waits) > 0 {
		out.queue = (*waits)[len(*waits)*95/100].Seconds() * 1000
	}
	return s, out
}

func (a audience) newFilm(w *world) *film {
	if a.ladder {
		sizes := []int{200_000}
		for range 19 {
			sizes = append(sizes, sizes[len(sizes)-1]*9/8)
		}
		return newVaried(w, int(a.film/(4*time.Second)), 4*time.Second, shape, sizes...)
	}
	heavy := max(1, a.heavy)
	if a.short {
		return newVaried(w, int(a.film/(2*time.Second)), 2*time.Second, shape, 121_431*heavy, 253_067*heavy, 469_340*heavy)
	}
	return newVaried(w, int(a.film/(4*time.Second)), 4*time.Second, shape, 242_862*heavy, 506_135*heavy, 938_681*heavy)
}

// watchUplinks collects how long a packet would wait for the uplinks of a rate, ten times a second, where they send.
func (s *scene) watchUplinks(rate float64) *[]time.Duration {
	waits := &[]time.Duration{}
	var look func()
	look = func() {
		for _, v := range s.viewers {
			if wait := v.node.up.Wait(s.w.now); v.node.up.Rate == rate && wait > 0 {
				*waits = append(*waits, wait)
			}
		}
		s.w.After(100*time.Millisecond, look)
	}
	look()
	return waits
}

func (s *scene) tally() (out tally) {
	var peers, all, twice, wasted, stalled, played, bits int64
	var startups []int64
	for _, v := range s.viewers {
		st := v.now().Stats
		peers += st.Bytes["peer"]
		twice += st.DuplicateBytes
		wasted += st.WastedBytes
		out.stalls += st.Stalls
		stalled += st.StallMs
		played += st.PlayedMs
		bits += st.PlayedBits
		startups = append(startups, st.StartupMs)
		for _, n := range st.Bytes {
			all += n
		}
	}
	slices.Sort(startups)
	out.startup = float64(startups[len(startups)/2]) / 1000
	out.bitrate = float64(bits) / float64(played) / 1000
	out.stall = float64(stalled) / float64(stalled+played)
	out.offload, out.duplicates, out.wasted = float64(peers)/float64(all), float64(twice)/float64(all), float64(wasted)/float64(all)
	for _, b := range s.seed.held {
		peers -= int64(len(b))
	}
	out.saved = float64(peers) / float64(all)
	asked := 0
	for _, n := range s.film.sent {
		asked += n
	}
	out.requests = float64(asked) / float64(len(s.given()))
	return out
}

// given are the paths of the segments that players got. A segment that the origin was asked for and that no viewer plays makes what is asked
// for each that is played more, not less.
func (s *scene) given() map[string]bool {
	paths := map[string]bool{}
	for _, v := range s.viewers {
		for _, r := range v.results {
			paths[path(r.URL)] = true
		}
	}
	return paths
}

// TestAnAudienceServesItself plays traces with and without peers and holds what came of them to what the schedule reached
// when it was tuned on them. Virtual time: the same figures on every machine. The bounds leave room for honest changes.
func TestAnAudienceServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	for name, c := range map[string]struct {
		audience
		most tally // least of offload and saved
	}{
		// Measured 0.830, 0.745, 0.001, 0.003, 2.0 and 53.
		"twelve come over a time": {audience{viewers: 12, film: 100 * time.Second, within: 50 * time.Second},
			tally{offload: 0.8, saved: 0.71, duplicates: 0.006, wasted: 0.01, requests: 2.4, queue: 60}},
		// Measured 0.688, 0.549, 0.001, 0.002, 1.7 and 41.
		"eight come together, a thin seed": {audience{viewers: 8, film: 100 * time.Second, within: 20 * time.Second, thin: 1.25e6},
			tally{offload: 0.64, saved: 0.5, duplicates: 0.005, wasted: 0.015, requests: 2.2, queue: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			const traces = 4
			var sum, base tally
			for seed := range uint64(traces) {
				a := c.audience
				a.seed = seed + 1
				got := a.play(t)
				a.alone = true
				alone := a.play(t)
				t.Logf("trace %d: %+v, by the origin alone %+v", seed, got, alone)
				sum.add(got, traces)
				base.add(alone, traces)
			}
			t.Logf("on average %+v, by the origin alone %+v", sum, base)
			if m := c.most; sum.offload < m.offload || sum.saved < m.saved || sum.duplicates > m.duplicates || sum.wasted > m.wasted || sum.requests > m.requests ||
				sum.queue > m.queue {
				t.Errorf("on average %+v", sum)
			}
			if sum.stall > base.stall+0.001 || sum.bitrate < 0.98*base.bitrate || sum.startup > 1.05*base.startup {
				t.Errorf("on average %+v, by the origin alone %+v", sum, base)
			}
		})
	}
}

// add makes a mean of n.
func (t *tally) add(o tally, n float64) {
	for _, v := range []struct {
		to   *float64
		from float64
	}{
		{&t.offload, o.offload}, {&t.saved, o.saved}, {&t.duplicates, o.duplicates}, {&t.wasted, o.wasted}, {&t.stall, o.stall},
		{&t.bitrate, o.bitrate}, {&t.startup, o.startup}, {&t.requests, o.requests}, {&t.queue, o.queue},
	} {
		*v.to += v.from / n
	}
	t.stalls += o.stalls
}

// BenchmarkAudience plays thirty viewers over five minutes without prefetch and with it, in virtual time.
func BenchmarkAudience(b *testing.B) {
	const traces = 1
	for b.Loop() {
		var sums [2]tally
		for i := range sums {
			for seed := range uint64(traces) {
				sums[i].add(audience{viewers: 30, film: 5 * time.Minute, within: 5 * time.Minute, seed: seed + 1, ahead: i == 1}.play(b), traces)
			}
		}
		for i, name := range []string{"", "-ahead"} {
			b.ReportMetric(sums[i].offload, "offload"+name)
			b.ReportMetric(sums[i].duplicates, "duplicates"+name)
			b.ReportMetric(sums[i].wasted, "wasted"+name)
			b.ReportMetric(sums[i].queue, "uplink-ms-p95"+name)
		}
		b.ReportMetric(sums[1].offload/sums[0].offload, "offload-ratio")
	}
}
