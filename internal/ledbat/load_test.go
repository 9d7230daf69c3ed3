package ledbat_test

import (
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// The load of the network check that gives way (spec/probe.md, Load that gives way), on lines and beside CUBIC in virtual time.
const (
	loadTime   = 10_000_000 // µs
	loadWindow = 20         // looks of 100 ms, of which the fastest counts
)

// checked is a line with a rate of so many Mbit/s, a round trip and a queue of so many products of both, of 64 KiB at least.
type checked struct {
	mbit   float64
	rtt    int64 // µs
	queues int64
	waits  float64 // µs for which both programs wait for a processor in the mean, some twenty times a second; 0: they do not
}

// stallEach is the time between two waits for a processor, µs.
const stallEach = 50_000

func (c checked) open(seed uint64) (*sim, *line) {
	s := newSim(seed)
	return s, s.line(c.mbit, c.queues*max(int64(c.mbit*125_000)*c.rtt/1_000_000, 64<<10), c.rtt/2)
}

// load begins one, of a host of its own.
func (c checked) load(s *sim, l *line, cfg ledbat.Config) {
	h := s.sender(cfg)
	if c.waits > 0 {
		h.runs = s.processor(stallEach, c.waits)
	}
	b := h.link(1, l, c.rtt/2)
	if c.waits > 0 {
		b.runs = s.processor(stallEach, c.waits)
	}
}

// free is what a load finds on an empty line, by what the line has.
func (c checked) free(cfg ledbat.Config) (best float64) {
	s, l := c.open(1)
	c.load(s, l, cfg)
	var looks []int64
	for range loadTime / 100_000 {
		looks = append(looks, l.sent[1])
		s.run(s.now + 100_000)
		if n := len(looks); n >= loadWindow {
			best = max(best, float64(l.sent[1]-looks[n-loadWindow])/float64(l.rate*loadWindow/10))
		}
	}
	return best
}

// kept is what a flow keeps beside a load that begins at some moment of its, of what it has had just before; the mean and the least of so
// many moments.
func (c checked) kept(cfg ledbat.Config, moments int64) (mean, least float64) {
	least = 1
	for n := range moments {
		s, l := c.open(uint64(n))
		r := s.rival(0, l, c.rtt/2)
		r.pump()
		s.run(20_000_000 + n*957_000)
		before := r.got
		s.run(s.now + loadTime)
		alone := r.got - before
		c.load(s, l, cfg)
		before = r.got
		s.run(s.now + loadTime)
		k := float64(r.got-before) / float64(alone)
		mean, least = mean+k/float64(moments), min(least, k)
	}
	return mean, least
}

// TestALoadFindsALineAndLeavesIt: within a tenth of its rate, and 97 % of a flow's.
func TestALoadFindsALineAndLeavesIt(t *testing.T) {
	cfg := ledbat.Config{Controller: ledbat.HostWithin(quality.LeastTarget, quality.MostTarget)}
	for _, c := range []checked{{5, 10_000, 1, 0}, {5, 50_000, 1, 0}, {20, 50_000, 1, 0}, {50, 10_000, 1, 0}, {50, 10_000, 1, 2_000}, {100, 10_000, 1, 0}} {
		if free := c.free(cfg); free < 0.9 || free > 1.01 {
			t.Errorf("%v: %.3f of the line is free", c, free)
		}
		if mean, least := c.kept(cfg, 2); mean < 0.97 || least < 0.95 {
			t.Errorf("%v: a flow keeps %.3f, at the least %.3f", c, mean, least)
		}
	}
}

// BenchmarkLoadGivesWay says both for many lines, with the target of a load and with the plain one.
func BenchmarkLoadGivesWay(b *testing.B) {
	for _, mbit := range []float64{5, 20, 50, 100} {
		for _, rtt := range []int64{10_000, 50_000, 100_000} {
			for _, queues := range []int64{1, 4} {
				for _, waits := range []float64{0, 2_000} {
					c := checked{mbit, rtt, queues, waits}
					b.Run(fmt.Sprintf("%gMbit-%dms-%dq-%gms", mbit, rtt/1000, queues, waits/1000), c.report)
				}
			}
		}
	}
}

func (c checked) report(b *testing.B) {
	targets := map[string]ledbat.Config{"": {Controller: ledbat.HostWithin(quality.LeastTarget, quality.MostTarget)}}
	if c.waits == 0 {
		targets["plain-"] = ledbat.Config{}
	}
	for b.Loop() {
		for name, cfg := range targets {
			mean, least := c.kept(cfg, 10)
			b.ReportMetric(c.free(cfg), name+"free")
			b.ReportMetric(mean, name+"kept")
			b.ReportMetric(least, name+"least")
		}
	}
}
