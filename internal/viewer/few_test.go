package viewer

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/testkit"
)

// windows are viewers that come to a film 5 s apart and leave after 75 s, as in `leeway-lab bench swarm --case rival-4`.
type windows struct {
	lines   []int // of homeLines, in the order of coming
	signed  bool  // at packaging
	from    int   // viewers from which on a seed certifies
	ahead   bool  // prefetch is on
	looks   int   // segments that a seed fetches behind one that was asked for
	refuses bool  // a seed refuses pieces of what it has yet to fetch, as it did
	far     bool  // the origin is 160 ms away, and sends 20 Mbit/s
}

const (
	windowsApart = 5 * time.Second
	windowsWatch = 75 * time.Second
	linkedSoon   = 3 // segments that a viewer may have asked for before its first link is open
)

// askedOrigin is a request to the origin for a segment.
type askedOrigin struct {
	at   time.Duration
	from string // the node
	path string
	size int64
}

func (c windows) play(t testing.TB) (*scene, []askedOrigin) {
	a := audience{film: 5 * time.Minute}
	s := newScene(t, a.newFilm)
	s.film.node.delay, s.seed.node.delay = 0, 0
	s.film.node.up.Rate, s.seed.node.up.Rate = 125e6, 125e6
	if c.far {
		s.film.node.delay, s.film.node.up.Rate = 80*time.Millisecond, 2.5e6
	}
	s.seed.ahead, s.seed.refuses = c.looks, c.refuses
	s.tracker.home = swarm.New()
	s.tracker.policy.Prefetch = c.ahead
	if c.signed {
		s.film.certify(worldBegin.Add(-time.Hour))
		s.tracker.keys = append(s.tracker.keys, packagerVerifyKey())
	}
	s.seed.few = func() bool { return len(s.tracker.order) < c.from }
	var all []askedOrigin
	s.film.heard = func(n *node, path string, size int) {
		all = append(all, askedOrigin{s.w.now.Sub(worldBegin), n.name, path, int64(size)})
	}
	for _, line := range c.lines {
		s.viewer(homeLines[line].access, func(c *Config) { c.Leave = windowsWatch })
		s.w.run(windowsApart)
	}
	s.w.run(windowsWatch + 30*time.Second)
	return s, all
}

// causes says why the origin was asked more than once for a segment that was played, and for what no viewer played.
func (s *scene) causes(all []askedOrigin) (segments int, n map[string]int, bytes map[string]int64) {
	n, bytes = map[string]int{}, map[string]int64{}
	nth := map[string]map[string]int{} // of the viewer's segments, by viewer and path; from 1 on
	why := map[string]map[string]schedule.Reason{}
	played := s.given()
	for _, v := range s.viewers {
		nth[v.node.name], why[v.node.name] = map[string]int{}, map[string]schedule.Reason{}
		for i, r := range v.results {
			nth[v.node.name][path(r.URL)], why[v.node.name][path(r.URL)] = i+1, r.Reason
		}
	}
	before := map[string][]string{}
	for _, a := range all {
		cause, others, place := "once", before[a.path], nth[a.from][a.path]
		switch {
		case !played[a.path]:
			cause = "unplayed"
		case len(others) == 0:
		case a.from == "seed":
			cause = "seed-again"
		case slices.Contains(others, a.from):
			cause = "stretch"
		case place == 0:
			cause = "left"
		case place < linkedSoon:
			cause = fmt.Sprintf("start-%d", place)
		default:
			cause = "later-" + string(why[a.from][a.path])
		}
		before[a.path] = append(others, a.from)
		n[cause]++
		bytes[cause] += a.size
	}
	return len(played), n, bytes
}

func orders() (all [][]int) {
	for a := range 4 {
		for b := range 4 {
			for c := range 4 {
				d := 6 - a - b - c
				if a == b || a == c || b == c || d < 0 || d > 3 || d == a || d == b || d == c {
					continue
				}
				of := []int{2, 0, 1, 1}
				one := []int{of[a], of[b], of[c], of[d]}
				if !slices.ContainsFunc(all, func(o []int) bool { return slices.Equal(o, one) }) {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// TestASeedBringsWhatTheFirstViewerCannot: the first viewer is behind 1 Mbit/s. What it cannot send in time one fetch of the seed brings
// to all, and not one of each viewer's own.
func TestASeedBringsWhatTheFirstViewerCannot(t *testing.T) {
	testkit.InOneGoroutine(t)
	c := windows{signed: true, from: 2, lines: []int{0, 1, 2, 1}}
	s, _ := c.play(t)
	got := s.tally()
	c.refuses = true
	s, _ = c.play(t)
	refused := s.tally()
	t.Logf("%+v; where the seed refuses %+v", got, refused)
	if got.requests > 2.2 || got.requests > 0.8*refused.requests || got.offload < refused.offload-0.02 || got.stalls > 0 {
		t.Errorf("%+v; where the seed refuses %+v", got, refused)
	}
}

// BenchmarkFewViewers says what origin requests beyond the first one for each segment are made for.
func BenchmarkFewViewers(b *testing.B) {
	for _, c := range []struct {
		name string
		windows
	}{
		{"signed", windows{signed: true, from: 2}},
		{"signed-refuses", windows{signed: true, from: 2, refuses: true}},
		{"signed-ahead-refuses", windows{signed: true, from: 2, refuses: true, ahead: true}},
		{"signed-ahead", windows{signed: true, from: 2, ahead: true}},
		{"unsigned-from-2-ahead", windows{from: 2, ahead: true}},
		{"unsigned-from-2", windows{from: 2}},
		{"unsigned-from-1", windows{from: 1}},
		{"looks-from-2", windows{from: 2, looks: 2}},
		{"looks-from-1", windows{from: 1, looks: 2}},
		{"far-from-2", windows{from: 2, far: true}},
		{"far-from-1", windows{from: 1, far: true}},
		{"far-looks-from-2", windows{from: 2, looks: 2, far: true}},
		{"far-looks-from-1", windows{from: 1, looks: 2, far: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				counts, sizes, segments := map[string]int{}, map[string]int64{}, 0
				var sum tally
				orders := orders()
				for _, c.lines = range orders {
					s, all := c.play(b)
					k, n, bytes := s.causes(all)
					segments += k
					for cause := range n {
						counts[cause] += n[cause]
						sizes[cause] += bytes[cause]
					}
					sum.add(s.tally(), float64(len(orders)))
				}
				requests := 0
				for _, cause := range slices.Sorted(maps.Keys(counts)) {
					requests += counts[cause]
					b.ReportMetric(float64(counts[cause])/float64(segments), cause+"/seg")
					b.ReportMetric(float64(sizes[cause])/1e6/float64(len(orders)), cause+"-MB")
				}
				b.ReportMetric(float64(requests)/float64(segments), "requests") // for each segment played
				b.ReportMetric(sum.offload, "offload")
				b.ReportMetric(sum.saved, "saved")
				b.ReportMetric(sum.startup, "startup-s")
				b.ReportMetric(float64(sum.stalls), "stalls")
				b.ReportMetric(sum.bitrate, "Mbps")
			}
		})
	}
}
