package viewer

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// The traces that benches of a live audience play, its size and its segments.
var (
	firstTrace  = flag.Uint64("trace", 1, "the first trace of a live audience")
	mostTraces  = flag.Uint64("traces", 6, "how many traces of a live audience")
	liveViewers = flag.Int("viewers", 12, "how many viewers a live audience has")
	liveAudio   = flag.Int("audio", 0, "bytes a second of a sound that is apart in a live audience")
	liveSegment = flag.Duration("segment", 2*time.Second, "length of the segments of a live audience")
)

// joinSegments is how many segments a viewer of a live stream asks for at once when it comes: those between its playhead and the edge.
const joinSegments = 3

// account is where the bytes of a live audience came from, in shares of all of them, and how its segments travelled.
type account struct {
	all                int64
	peer, copied, more int64            // of viewers; of the seed, the first copy of each segment and what it sent beside that
	joined             int64            // of the origin, as a viewer came
	fetched            int64            // of the origin, by the seed
	least              int64            // one copy of each segment that is played
	most, mostSaved    int64            // that any schedule has from viewers; that it saves where a seed fetches what it vouches for
	origin             map[string]int64 // of the origin later, by reason
	asked, took        map[string][]time.Duration
}

// account makes the account of a scene with a broadcast.
func (s *scene) account() account {
	a := account{origin: map[string]int64{}, asked: map[string][]time.Duration{}, took: map[string][]time.Duration{}}
	seeded := map[string]int64{}
	for _, v := range s.viewers {
		for n, r := range v.results {
			a.all += int64(r.Len())
			a.peer += r.Bytes[FromPeer]
			seeded[r.URL] += r.Bytes[FromSeed]
			switch origin := r.Bytes[FromOrigin]; {
			case n < joinSegments:
				a.joined += origin
			default:
				a.origin[string(r.Reason)] += origin
			}
			var level, seq int
			if _, err := fmt.Sscanf(path(r.URL), "/media/film/%d/seg-%d.ts", &level, &seq); err == nil && n >= joinSegments {
				asked := v.came[n].Add(-r.Took)
				a.asked[v.line] = append(a.asked[v.line], asked.Sub(s.film.live.published(seq)))
				a.took[v.line] = append(a.took[v.line], r.Took)
			}
		}
	}
	for url, n := range seeded {
		whole := int64(len(s.film.files[path(url)]))
		one := min(n, whole)
		a.least += whole
		a.copied += one
		a.more += n - one
	}
	for _, data := range s.seed.held {
		a.fetched += int64(len(data))
	}
	a.most, a.mostSaved = s.mostFromViewers(1), s.mostFromViewers(2)
	return a
}

// report hands the account to the benchmark.
func (a account) report(b *testing.B) {
	share := func(n int64) float64 { return 100 * float64(n) / float64(a.all) }
	b.ReportMetric(share(a.peer), "peers-%")
	b.ReportMetric(share(a.copied), "seed-once-%")
	b.ReportMetric(share(a.more), "seed-again-%")
	b.ReportMetric(share(a.joined), "origin-join-%")
	b.ReportMetric(share(a.fetched), "seed-fetched-%")
	b.ReportMetric(share(a.least), "one-copy-%")
	b.ReportMetric(share(a.most), "most-%")
	b.ReportMetric(share(a.mostSaved), "most-saved-%")
	for reason, n := range a.origin {
		if n > 0 {
			b.ReportMetric(share(n), "origin-"+reason+"-%")
		}
	}
	for line, list := range a.asked {
		slices.Sort(list)
		slices.Sort(a.took[line])
		b.ReportMetric(float64(list[len(list)/2].Milliseconds()), line+"-asked-ms")
		b.ReportMetric(float64(a.took[line][len(list)/2].Milliseconds()), line+"-took-ms")
		b.ReportMetric(float64(a.took[line][len(list)*9/10].Milliseconds()), line+"-took-p90-ms")
	}
}

func (a *account) add(o account) {
	if a.origin == nil {
		*a = o
		return
	}
	a.all, a.peer, a.copied, a.more, a.joined = a.all+o.all, a.peer+o.peer, a.copied+o.copied, a.more+o.more, a.joined+o.joined
	a.fetched, a.least, a.most, a.mostSaved = a.fetched+o.fetched, a.least+o.least, a.most+o.most, a.mostSaved+o.mostSaved
	for reason, n := range o.origin {
		a.origin[reason] += n
	}
	for line := range o.asked {
		a.asked[line] = append(a.asked[line], o.asked[line]...)
		a.took[line] = append(a.took[line], o.took[line]...)
	}
}

// benched is the audience of `bench swarm --case live-12` in virtual time: twelve viewers that come within 30 s and stay for 75 s, at a
// stream that is signed as `leeway up` signs it.
func benched() crowd {
	const watch = 75 * time.Second
	return crowd{viewers: *liveViewers, segment: *liveSegment, window: 15, length: watch, within: 30 * time.Second, watch: watch, signed: true, audio: *liveAudio}
}

// spread is the mean of some values, and its standard error.
func spread(values []float64) (mean, off float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		off += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(off / float64(len(values)*max(1, len(values)-1)))
}

// traced has an audience play each trace, and reports the account of all: the share from viewers, and what is saved, also as the means
// of the traces, with their standard errors. after gets each trace's scene, and what was aired in it; it may be nil.
func (c crowd) traced(b *testing.B, after func(crowd, *scene, aired)) {
	for b.Loop() {
		var sum account
		var shares, saved []float64
		stalled := 0.0
		for n := range *mostTraces {
			c.seed = *firstTrace + n
			s, got := c.play(b)
			one := s.account()
			shares = append(shares, 100*float64(one.peer)/float64(one.all))
			saved = append(saved, 100*got.saved)
			stalled += 100 * got.stall / float64(*mostTraces)
			sum.add(one)
			if after != nil {
				after(c, s, got)
			}
		}
		sum.report(b)
		mean, off := spread(shares)
		b.ReportMetric(mean, "peers-mean-%")
		b.ReportMetric(off, "peers-error-%")
		mean, off = spread(saved)
		b.ReportMetric(mean, "saved-mean-%")
		b.ReportMetric(off, "saved-error-%")
		b.ReportMetric(stalled, "stalled-%")
	}
}

// thinner is homeLines with so many bits per second down in place of the 5 Mbit/s of the slowest.
func thinner(rate float64) []homes {
	lines := slices.Clone(homeLines)
	lines[0].name, lines[0].down = fmt.Sprintf("%g/1", rate/1e6), rate/8
	return lines
}

// BenchmarkLiveThin plays it where the slowest lines bring a segment in about half of the time that it plays, and less soon.
func BenchmarkLiveThin(b *testing.B) {
	for _, rate := range []float64{4e6, 3.5e6, 3e6, 2.5e6} {
		b.Run(fmt.Sprintf("Mbps=%g", rate/1e6), func(b *testing.B) {
			var with, alone aired
			c := benched()
			c.lines = thinner(rate)
			c.traced(b, func(c crowd, s *scene, got aired) {
				with.add(s, got)
				c.alone = true
				alone.add(c.play(b))
			})
			plays := float64(*mostTraces) * float64(b.N)
			b.ReportMetric((with.stall-alone.stall)/plays, "stall_added_ratio")
			b.ReportMetric((with.lag-alone.lag)/plays, "lag_added_seconds")
			b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
		})
	}
}

// BenchmarkLiveFar plays it with a seed that is far from all of them.
func BenchmarkLiveFar(b *testing.B) {
	for _, far := range []time.Duration{30 * time.Millisecond, 90 * time.Millisecond} {
		b.Run(fmt.Sprint("from=", far), func(b *testing.B) {
			c := benched()
			c.far = far
			c.traced(b, nil)
		})
	}
}

// BenchmarkLiveAccount says where the bytes of that audience came from, with the packager's lists and without.
func BenchmarkLiveAccount(b *testing.B) {
	for _, signed := range []bool{true, false} {
		b.Run(fmt.Sprintf("signed=%v", signed), func(b *testing.B) {
			c := benched()
			c.signed = signed
			c.traced(b, nil)
		})
	}
}
