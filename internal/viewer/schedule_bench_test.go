package viewer

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// narrowLines are access lines that carry the film's best rendition hardly or not at all.
var narrowLines = []homes{
	{"1.2/0.3", 0.3, access{up: 37_500, down: 150_000, delay: 30 * time.Millisecond}},
	{"2.4/0.6", 0.4, access{up: 75_000, down: 300_000, delay: 20 * time.Millisecond}},
	{"8/1.5", 0.3, access{up: 187_500, down: 1_000_000, delay: 10 * time.Millisecond}},
}

// BenchmarkScheduleElsewhere plays traces on which nothing of the schedule was chosen, three of each kind. tools/ablation runs it with and
// without each rule (docs/experiments/ablation-schedule.md).
func BenchmarkScheduleElsewhere(b *testing.B) {
	for _, c := range []struct {
		name string
		audience
	}{
		{"eight", audience{viewers: 8, film: time.Minute, within: 25 * time.Second, lines: otherLines}},
		{"thin", audience{viewers: 6, film: time.Minute, within: 15 * time.Second, lines: otherLines, thin: 750_000}},
		{"narrow", audience{viewers: 7, film: time.Minute, within: 25 * time.Second, lines: narrowLines}},
		{"rough", audience{viewers: 6, film: time.Minute, within: 25 * time.Second, lines: otherLines, short: true, trouble: (*scene).roughen}},
		{"hanging", audience{viewers: 6, film: time.Minute, within: 25 * time.Second, lines: otherLines, trouble: hangs(6 * time.Second)}},
		{"silent", audience{viewers: 6, film: time.Minute, within: 25 * time.Second, lines: otherLines, trouble: hangs(18 * time.Second)}},
		{"fading", audience{viewers: 7, film: time.Minute, within: 25 * time.Second, lines: narrowLines, each: (*scene).fade}},
		{"dying", audience{viewers: 6, film: time.Minute, within: 25 * time.Second, lines: otherLines, trouble: (*scene).loseSeed}},
		{"dumb", audience{viewers: 6, film: time.Minute, within: 25 * time.Second, lines: otherLines, trouble: (*scene).withhold}},
		{"crowd", audience{viewers: 10, film: time.Minute, within: 3 * time.Second, lines: otherLines, thin: 750_000}},
		{"uneven", audience{viewers: 6, film: time.Minute, within: 15 * time.Second, lines: otherLines, thin: 2e6, trouble: (*scene).unsettleSeed}},
		{"falling", audience{viewers: 7, film: time.Minute, within: 25 * time.Second, lines: otherLines, each: (*scene).fall}},
		{"ladder", audience{viewers: 7, film: time.Minute, within: 25 * time.Second, lines: otherLines, each: (*scene).fade, ladder: true}},
		{"steps", audience{viewers: 7, film: time.Minute, within: 25 * time.Second, lines: narrowLines, ladder: true}},
		{"twins", audience{viewers: 6, film: time.Minute, within: 15 * time.Second, lines: otherLines, thin: 750_000, trouble: (*scene).addSeed}},
		{"turns", audience{viewers: 6, film: time.Minute, within: 15 * time.Second, lines: otherLines, thin: 2e6, trouble: (*scene).unsettleSeeds}},
		{"pausing", audience{viewers: 8, film: time.Minute, within: 25 * time.Second, lines: otherLines, trouble: (*scene).signAtPackaging, each: pauses(5*time.Second, 15*time.Second)}},
		{"halting", audience{viewers: 8, film: time.Minute, within: 25 * time.Second, lines: otherLines, trouble: (*scene).signAtPackaging, each: pauses(2500*time.Millisecond, 8*time.Second)}},
		{"ahead", audience{viewers: 6, film: 100 * time.Second, within: 40 * time.Second, lines: otherLines, ahead: true}},
		{"ahead-narrow", audience{viewers: 6, film: 100 * time.Second, within: 40 * time.Second, lines: narrowLines, ahead: true}},
	} {
		for seed := range uint64(3) {
			b.Run(fmt.Sprintf("%s/%d", c.name, seed), func(b *testing.B) {
				a := c.audience
				a.seed = seed + 41
				for b.Loop() {
					s, got := a.run(b)
					got.report(b, s.unfinished())
				}
			})
		}
	}
}

// report hands the tally to the benchmark.
func (t tally) report(b *testing.B, unfinished int) {
	b.ReportMetric(100*t.offload, "offload-%")
	b.ReportMetric(t.requests, "requests/segment")
	b.ReportMetric(100*t.duplicates, "twice-%")
	b.ReportMetric(100*t.wasted, "wasted-%")
	b.ReportMetric(100*t.stall, "stalled-%")
	b.ReportMetric(t.queue, "uplink-ms-p95")
	b.ReportMetric(1000*t.startup, "startup-ms")
	b.ReportMetric(t.bitrate, "Mbit/s")
	b.ReportMetric(float64(unfinished), "unfinished")
}

// unfinished counts the viewers that have not ended well, with every byte as the origin has it.
func (s *scene) unfinished() (n int) {
	for _, a := range s.viewers {
		if !a.isDone() || a.Err() != nil || a.wrong > 0 {
			n++
		}
	}
	return n
}

// roughen has viewers meet peers that send nothing, one piece or next to nothing, and an origin that fails for a while.
func (s *scene) roughen(film time.Duration) {
	s.tracker.home = nil // strangers are introduced to all
	all := &strangers{}
	s.hostile(0, all)
	s.hostile(0, all).piece = true
	s.hostile(5600, all).piece = true
	s.w.After(film/2, func() { s.film.outage = true })
	s.w.After(film/2+12*time.Second, func() { s.film.outage = false })
}

// loseSeed has the seed send next to nothing after a third of the film.
func (s *scene) loseSeed(film time.Duration) {
	s.w.After(film/3, func() { s.seed.node.up.Rate = 1000 })
}

// unsettleSeed has the seed send a twentieth for four seconds of every ten, so that its rate is known and then not true.
func (s *scene) unsettleSeed(film time.Duration) { s.unsettle(s.seed, 10*time.Second, film) }

// unsettle has a seed do so from a moment on.
func (s *scene) unsettle(seed *simSeed, from, film time.Duration) {
	full := seed.node.up.Rate
	for at := from; at < 2*film; at += 10 * time.Second {
		s.w.After(at, func() { seed.node.up.Rate = full / 20 })
		s.w.After(at+4*time.Second, func() { seed.node.up.Rate = full })
	}
}

// addSeed has a second seed that sends as much.
func (s *scene) addSeed(time.Duration) {
	s.tracker.other = newSeed(s.w, s.film, s.seed.node.up.Rate)
	s.tracker.other.id, s.tracker.other.node.delay = signal.ID{0xff, 2}, 0
}

// unsettleSeeds has two seeds, of which one is slow and then the other.
func (s *scene) unsettleSeeds(film time.Duration) {
	s.addSeed(film)
	s.unsettle(s.seed, 10*time.Second, film)
	s.unsettle(s.tracker.other, 15*time.Second, film)
}

// signAtPackaging has certificates and no seed.
func (s *scene) signAtPackaging(time.Duration) {
	s.film.certify(worldBegin.Add(-time.Hour))
	s.tracker.seed, s.tracker.keys = nil, []signal.VerifyKey{packagerVerifyKey()}
}

// withhold has viewers meet peers that announce everything and show no certificate.
func (s *scene) withhold(time.Duration) {
	s.tracker.home = nil // strangers are introduced to all
	all := &strangers{}
	for range 3 {
		s.hostile(12_500, all).dumb = true
	}
}

// hangs has the origin send nothing for a part of every twenty seconds.
func hangs(silence time.Duration) func(*scene, time.Duration) {
	return func(s *scene, film time.Duration) {
		for at := 15 * time.Second; at < 2*film; at += 20 * time.Second {
			s.w.After(at, func() { s.film.hangs = s.w.now.Add(silence) })
		}
	}
}

// fade has a line carry a third for ten seconds of every twenty-five.
func (s *scene) fade(n *node) {
	full := n.down.Rate
	var on, off func()
	on = func() { n.down.Rate = full; s.w.After(15*time.Second, off) }
	off = func() { n.down.Rate = full / 3; s.w.After(10*time.Second, on) }
	on()
}

// fall has a line carry a fifth from the twentieth second of its viewer on.
func (s *scene) fall(n *node) {
	s.w.After(20*time.Second, func() { n.down.Rate /= 5 })
}

// pauses has something else fill a viewer's uplink for a part of the time.
func pauses(pause, every time.Duration) func(*scene, *node) {
	return func(s *scene, n *node) {
		var fill func()
		fill = func() {
			n.up.Pass(s.w.now, int(n.up.Rate*pause.Seconds()))
			s.w.After(every, fill)
		}
		s.w.After(every, fill)
	}
}
