package viewer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// audience is a small trace of the kind that `leeway bench swarm` plays in a lab: viewers come over a time, behind lines
// of three kinds, some seek, some leave.
type audience struct {
	viewers, segments, bytes int
	within                   time.Duration
	seed                     uint64
}

var lines = []access{{up: 125_000, down: 625_000}, {up: 625_000, down: 2_500_000}, {up: 5e6, down: 12.5e6}} // 5/1, 20/5, 100/40 Mbit/s

// tally is what came of an audience.
type tally struct {
	offload, duplicates, wasted float64 // shares of all bytes
	stalls                      int64
	requests                    float64 // to the origin, for each segment that was played anywhere
}

func (a audience) play(t *testing.T) tally {
	s := newScene(t, fourSeconds(a.segments, a.bytes))
	r := rand.New(rand.NewPCG(a.seed, 1))
	length := time.Duration(a.segments) * 4 * time.Second
	come := make([]time.Duration, a.viewers)
	for i := range come {
		come[i] = time.Duration(r.Float64() * float64(a.within))
	}
	slices.Sort(come)
	for i, at := range come {
		s.w.run(at - s.w.now.Sub(worldBegin))
		line := lines[(i*7+int(a.seed))%10/4] // 40 %, 40 % and 20 %
		seek, leave := r.Float64() < 0.3, r.Float64() < 0.2
		after, to := time.Duration(r.Float64()*float64(length/2)), time.Duration(r.Float64()*0.8*float64(length))
		s.viewer(line, func(c *Config) {
			if seek {
				c.Seeks = []Seek{{After: after, To: to}}
			}
			if leave {
				c.Leave = length/4 + after
			}
		})
	}
	s.w.run(2*length + a.within)
	s.check()
	var out tally
	var peers, all, twice, wasted int64
	for _, v := range s.viewers {
		st := v.now().Stats
		peers += st.Bytes["peer"]
		twice += st.DuplicateBytes
		wasted += st.WastedBytes
		out.stalls += st.Stalls
		for _, n := range st.Bytes {
			all += n
		}
	}
	out.offload, out.duplicates, out.wasted = float64(peers)/float64(all), float64(twice)/float64(all), float64(wasted)/float64(all)
	asked := 0
	for _, n := range s.film.sent {
		asked += n
	}
	out.requests = float64(asked) / float64(len(s.film.sent))
	return out
}

// TestAnAudienceServesItself plays four traces and holds what came of them to what the schedule reached when it was
// tuned on them. Virtual time: the same figures on every machine. The bounds leave room for honest changes.
func TestAnAudienceServesItself(t *testing.T) {
	var sum tally
	const traces = 4
	for seed := range uint64(traces) {
		got := audience{viewers: 12, segments: 25, bytes: 450_000, within: 50 * time.Second, seed: seed}.play(t)
		t.Logf("trace %d: %+v", seed, got)
		sum.offload += got.offload / traces
		sum.duplicates += got.duplicates / traces
		sum.wasted += got.wasted / traces
		sum.requests += got.requests / traces
		sum.stalls += got.stalls
	}
	// Measured 0.761, 0.025, 0.067, 1.92 and 2.
	if sum.offload < 0.72 || sum.duplicates > 0.04 || sum.wasted > 0.1 || sum.requests > 2.3 || sum.stalls > 5 {
		t.Errorf("on average %+v", sum)
	}
}
