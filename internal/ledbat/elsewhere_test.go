package ledbat_test

import (
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
)

// otherRoads are paths on which no constant of the controller was chosen: docs/experiments/ablation-transport.md plays each rule on
// them, with the rule and without it.
var otherRoads = []otherRoad{
	{road: road{"3Mbit-60ms-100KB", 3, 60_000, 100_000}},
	{road: road{"25Mbit-24ms-120KB", 25, 24_000, 120_000}},
	{road: road{"8Mbit-50ms-128KB-spikes", 8, 50_000, 128_000}, spikes: true},
	{road: road{"5Mbit-60ms-20KB", 5, 60_000, 20_000}},
	{road: road{"1.5Mbit-140ms-60KB", 1.5, 140_000, 60_000}},
	{road: road{"60Mbit-30ms-300KB", 60, 30_000, 300_000}},
	{road: road{"12Mbit-34ms-150KB-lossy", 12, 34_000, 150_000}, loss: 0.02},
}

// uplinkRoads are what viewers upload over. The last two are short: their round trips are below the times of the controller.
var uplinkRoads = append(append(otherRoads[:3:3], otherRoads[4]),
	otherRoad{road: road{"0.6Mbit-50ms-60KB", 0.6, 50_000, 60_000}},
	otherRoad{road: road{"12Mbit-6ms-60KB", 12, 6_000, 60_000}},
	otherRoad{road: road{"3Mbit-8ms-30KB", 3, 8_000, 30_000}})

type otherRoad struct {
	road
	spikes bool    // as Wi-Fi has them: 15 to 60 ms, three a second
	loss   float64 // that no queue makes
}

func (r otherRoad) open(seed uint64) (*sim, *line) {
	s, l := r.road.open(seed)
	l.loss = r.loss
	if !r.spikes {
		return s, l
	}
	var until, added int64
	l.jitter = func(now int64) int64 {
		if now > until+300_000 {
			until, added = now+s.rng.Int64N(30_000), 15_000+s.rng.Int64N(45_000)
		}
		if now < until {
			return added
		}
		return s.rng.Int64N(2_000)
	}
	return s, l
}

// report gives the median of a figure over three seeds, and how far they lie apart.
func report(b *testing.B, unit string, figure func(seed uint64) float64) {
	var list []float64
	for seed := range uint64(3) {
		v := figure(seed + 11)
		list = append(list, v)
		b.ReportMetric(v, fmt.Sprintf("%s#%d", unit, seed))
	}
	b.ReportMetric(sortedMiddle(list), unit)
	b.ReportMetric(max(list[0], list[1], list[2])-min(list[0], list[1], list[2]), unit+"-spread")
}

// BenchmarkBackgroundElsewhere plays background alone, beside TCP that comes, and beside a host of its own kind that comes.
func BenchmarkBackgroundElsewhere(b *testing.B) {
	for _, r := range otherRoads {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				p95, drops := map[uint64]float64{}, map[uint64]float64{}
				report(b, "used", func(seed uint64) float64 {
					s, l := r.open(seed)
					s.sender(ledbat.Config{}).link(0, l, r.rtt/2)
					u, p := share(l, 10*second, 70*second, 0), l.probe(10*second)
					s.run(70 * second)
					p95[seed], drops[seed] = float64(p.percentile(95))/1000, 100*float64(l.drops)/float64(l.offered)
					return *u
				})
				report(b, "p95-ms", func(seed uint64) float64 { return p95[seed] })
				report(b, "drop-%", func(seed uint64) float64 { return drops[seed] })
				for _, reno := range []bool{false, true} {
					report(b, map[bool]string{false: "cubic", true: "reno"}[reno], func(seed uint64) float64 {
						var had [2]float64
						for n := range had {
							s, l := r.open(seed)
							if n > 0 {
								s.sender(ledbat.Config{}).link(1, l, r.rtt/2)
							}
							tcp := s.rival(0, l, r.rtt/2)
							tcp.reno = reno
							s.at(20*second, tcp.pump)
							u := share(l, 20*second, 40*second, 0)
							s.run(40 * second)
							had[n] = *u
						}
						return had[1] / had[0]
					})
				}
				report(b, "newcomer", func(seed uint64) float64 {
					s, l := r.open(seed)
					s.sender(ledbat.Config{}).link(0, l, r.rtt/2)
					s.at(20*second, func() { s.sender(ledbat.Config{}).link(1, l, r.rtt/2) })
					one, two := share(l, 22*second, 32*second, 0), share(l, 22*second, 32*second, 1)
					s.run(32 * second)
					return *two / (*one + *two)
				})
			}
		})
	}
}

// BenchmarkForegroundElsewhere plays foreground of a viewer: acks come late for a time of one to three seconds of two to six, and,
// in the second pair of figures, a download's acknowledgements have a third of the line for half a second to two.
func BenchmarkForegroundElsewhere(b *testing.B) {
	for _, r := range uplinkRoads {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				for _, down := range []bool{false, true} {
					p95 := map[uint64]float64{}
					prefix := map[bool]string{false: "", true: "down-"}[down]
					report(b, prefix+"used", func(seed uint64) float64 {
						u, p := foreground(r, down, seed)
						p95[seed] = p
						return u
					})
					report(b, prefix+"p95-ms", func(seed uint64) float64 { return p95[seed] })
				}
			}
		})
	}
}

func foreground(r otherRoad, down bool, seed uint64) (used, p95 float64) {
	s, l := r.open(seed)
	h := s.sender(ledbat.Config{})
	h.c.Eager(true)
	link := h.link(0, l, r.rtt/2)
	var flip func()
	flip = func() {
		if link.back == r.rtt/2 {
			link.back += 80_000
		} else {
			link.back = r.rtt / 2
		}
		s.at(s.now+second+s.rng.Int64N(2*second), flip)
	}
	s.at(second, flip)
	until := int64(0)
	const size = 150
	every := int64(size * 3e6 / float64(l.rate))
	s.every(every, func() {
		if s.now > until+3*second {
			until = s.now + second/2 + s.rng.Int64N(3*second/2)
		}
		if down && s.now < until {
			l.send(packet{wire: size, flow: 1, arrived: func() {}, dropped: func() {}})
			h.c.Beside(s.now, size)
		}
	})
	u, p := share(l, 20*second, 80*second, 0, 1), l.probe(20*second)
	s.run(80 * second)
	return *u, float64(p.percentile(95)) / 1000
}

// BenchmarkPiecesElsewhere plays a viewer that is asked for one piece every two to eight seconds, while other traffic fills the line now
// and then: how long a piece takes.
func BenchmarkPiecesElsewhere(b *testing.B) {
	for _, r := range uplinkRoads {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				p95 := map[uint64]float64{}
				report(b, "median-ms", func(seed uint64) float64 {
					middle, most := pieces(r, seed)
					p95[seed] = most
					return middle
				})
				report(b, "p95-ms", func(seed uint64) float64 { return p95[seed] })
			}
		})
	}
}

// pieces gives how long pieces take, ms.
func pieces(r otherRoad, seed uint64) (middle, p95 float64) {
	s, l := r.open(seed)
	h := s.sender(ledbat.Config{})
	h.c.Eager(true)
	link := h.link(0, l, r.rtt/2)
	tcp := s.rival(1, l, r.rtt/2)
	s.run(10 * second) // the ceiling is found
	h.on = false
	var took []int64
	var turn func()
	turn = func() {
		began, before := s.now, link.got
		h.on = true
		h.pump()
		var look func()
		look = func() {
			if link.got < before+16_384 {
				s.at(s.now+2_000, look)
				return
			}
			h.on = false
			took = append(took, s.now-began)
			s.at(s.now+2*second+s.rng.Int64N(6*second), turn)
		}
		look()
	}
	s.at(12*second, turn)
	tcp.on = false
	var other func()
	other = func() {
		if tcp.on = !tcp.on; tcp.on {
			tcp.pump()
		}
		s.at(s.now+second+s.rng.Int64N(4*second), other)
	}
	s.at(20*second, other)
	s.run(400 * second)
	p := probe{list: took}
	return float64(p.percentile(50)) / 1000, float64(p.percentile(95)) / 1000
}

// BenchmarkTCPsStartElsewhere is TestTCPsStart on other roads with a queue about as long as the path.
func BenchmarkTCPsStartElsewhere(b *testing.B) {
	for _, r := range []road{{"6Mbit-50ms-60KB", 6, 50_000, 60_000}, {"15Mbit-35ms-150KB", 15, 35_000, 150_000}, {"40Mbit-35ms-200KB", 40, 35_000, 200_000}, {"80Mbit-50ms-500KB", 80, 50_000, 500_000}} {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				kept := map[uint64]float64{}
				report(b, "yields-s", func(seed uint64) float64 {
					y, had := come(r, true, false, seed)
					_, lone := come(r, false, false, seed)
					kept[seed] = had / lone
					return y
				})
				report(b, "cubic", func(seed uint64) float64 { return kept[seed] })
			}
		})
	}
}

// BenchmarkReturnElsewhere plays TCP that leaves after a minute, at five moments for each seed: how long until the host has 80 % of the
// line, and what part of it it has in the ten seconds after TCP.
func BenchmarkReturnElsewhere(b *testing.B) {
	for _, r := range otherRoads {
		b.Run(r.name, func(b *testing.B) {
			for b.Loop() {
				after := map[uint64]float64{}
				report(b, "back-s", func(seed uint64) (mean float64) {
					for n := range int64(5) {
						back, part := returns(r, seed, 90*second+n*1_370_000)
						mean += back / 5
						after[seed] += part / 5
					}
					return mean
				})
				report(b, "after", func(seed uint64) float64 { return after[seed] })
			}
		})
	}
}

// returns gives the time until a tenth of a second in which the host has 80 % of the line again, s, at most ten, and what part it has in ten.
func returns(r otherRoad, seed uint64, stop int64) (back, part float64) {
	s, l := r.open(seed)
	s.sender(ledbat.Config{}).link(1, l, r.rtt/2)
	tcp := s.rival(0, l, r.rtt/2)
	s.at(30*second, tcp.pump)
	s.at(stop, func() { tcp.on = false })
	u := share(l, stop, stop+10*second, 1)
	back = 10
	last := int64(0)
	s.every(100_000, func() {
		had := float64(l.sent[1]-last) / 0.1 / float64(l.rate)
		last = l.sent[1]
		if at := float64(s.now-stop) / 1e6; at > 0 && had > 0.8 {
			back = min(back, at)
		}
	})
	s.run(stop + 10*second)
	return back, *u
}
