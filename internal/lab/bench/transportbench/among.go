package transportbench

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// crowd is background hosts among themselves on one line.
type crowd struct {
	suffix string // of the figures
	line   netlab.Link
	hosts  int
	length time.Duration
}

// together is case 5: background hosts among themselves, in the last third of their time.
func together(name string, crowds ...crowd) bench.Case {
	c := bench.Case{Name: name, Extra: len(crowds) > 1, About: "Background hosts together, in the last third of their time:"}
	for _, m := range crowds {
		goal := ">= 0.98"
		if m.hosts > 2 {
			goal = ">= 0.95"
		}
		c.About += fmt.Sprintf(" %d on %.0f Mbit/s, %.0f s.", m.hosts, float64(m.line.Rate)/1e6, m.length.Seconds())
		c.Figures = append(c.Figures, bench.Figure{Name: "jain_index" + m.suffix, Goal: goal}, bench.Figure{Name: "link_utilization_alone" + m.suffix},
			bench.Figure{Name: "added_delay_p95" + m.suffix, Unit: "ms"}, bench.Figure{Name: "added_delay_p95_vs_target" + m.suffix})
	}
	c.Run = measured(func(s *session) error {
		var scenes []scene
		for _, m := range crowds {
			sc := scene{name: "together" + m.suffix, line: m.line, length: m.length}
			for i := range m.hosts {
				sc.flows = append(sc.flows, flow{kind: ledbatLane, from: time.Duration(i) * time.Second})
			}
			scenes = append(scenes, sc)
		}
		all, err := s.play(scenes...)
		if err != nil {
			return err
		}
		for k, m := range crowds {
			rec, from, hosts := all[k], m.length*2/3, make([]int, m.hosts)
			for i := range hosts {
				hosts[i] = i
			}
			s.values["jain_index"+m.suffix] = rec.jain(from, m.length, hosts...)
			s.values["link_utilization_alone"+m.suffix] = rec.used(from, m.length, hosts...)
			s.values["added_delay_p95"+m.suffix] = rec.addedP(0.95, from, m.length)
			s.values["added_delay_p95_vs_target"+m.suffix] = rec.addedP(0.95, from, m.length) / rec.target(0, from, m.length)
		}
		return nil
	})
	return c
}

// late is case 6: a second background host that finds the queue of the first.
func late(name string, after time.Duration) bench.Case {
	const settled, length = 20 * time.Second, 20 * time.Second
	return bench.Case{
		Name: name, About: fmt.Sprintf("A latecomer after %.1f s, 10 Mbit/s and 40 ms: its share 20 to 40 s after it came.", after.Seconds()),
		Figures: []bench.Figure{{Name: "latecomer_share", Goal: ">= 0.4"}, {Name: "latecomer_share_most", Goal: "<= 0.6"}, {Name: "jain_index"}},
		Run: measured(func(s *session) error {
			end := after + settled + length
			rec, err := s.one(scene{name: "latecomer", line: ten, length: end, flows: []flow{
				{kind: ledbatLane}, {kind: ledbatLane, from: after},
			}})
			if err != nil {
				return err
			}
			share := rec.rate(after+settled, end, 1) / rec.rate(after+settled, end, 0, 1)
			s.values["latecomer_share"], s.values["latecomer_share_most"] = share, share
			s.values["jain_index"] = rec.jain(after+settled, end, 0, 1)
			return nil
		}),
	}
}

// uplink is case 12: many links of one host, TCP of another behind the same line, and foreground of its own.
func uplink(name string, peers int, short bool, p *pages) bench.Case {
	before, length, count := 10*time.Second, 30*time.Second, segmentCount
	if short {
		before, length, count = 8*time.Second, 15*time.Second, 3
	}
	return bench.Case{
		Name: name, Extra: short, Needs: p.needs(), About: fmt.Sprintf("%d background peers on one uplink of 10 Mbit/s, 40 ms, beside CUBIC; then foreground segments of 2 MB of the same host%s.", peers, p.about()),
		Figures: []bench.Figure{
			{Name: "tcp_kept_ratio", Goal: ">= 0.9"}, {Name: "background_share_beside_tcp"}, {Name: "link_utilization_alone"},
			{Name: "added_delay_p95", Unit: "ms"}, {Name: "foreground_slowdown", Goal: "<= 1.05"},
		},
		Run: measuredIn(p, func(s *session) error {
			all, err := s.play(append(segmentScenes(ten, peers, count), solo(ten, cubic, length), scene{
				name: "uplink", line: ten, length: before + length, flows: []flow{{kind: ledbatLane, peers: peers}, {kind: cubic, from: before}},
			})...)
			if err != nil {
				return err
			}
			rec := all[3]
			s.values["tcp_kept_ratio"] = rec.kept(all[2].rate(0, length, 0))
			s.values["background_share_beside_tcp"] = rec.used(before, before+length, 0)
			s.values["link_utilization_alone"] = rec.used(warm, before, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, warm, before)
			s.values["foreground_slowdown"], err = s.slowdown(all[0], all[1], count)
			return err
		}),
	}
}

// Foreground segments that are timed.
const (
	segmentCount = 5
	segmentBytes = 2_000_000
	segmentLeast = 4 * time.Second // between two
)

// segments is a foreground segment on the link that background has, at one rate and round trip.
func segments(mbit, trip int) bench.Case {
	rate := int64(mbit) * 1_000_000
	delay := time.Duration(trip) * time.Millisecond / 2
	line := netlab.Link{Rate: rate, Delay: delay, Queue: max(64_000, netlab.BDP(rate, 2*delay))}
	return bench.Case{
		Name: fmt.Sprintf("foreground-%d-%d", mbit, trip), About: fmt.Sprintf("A foreground segment of 2 MB with background on the same link, %d Mbit/s, %d ms.", mbit, trip),
		Figures: []bench.Figure{{Name: "foreground_slowdown", Goal: "<= 1.05"}},
		Run: measured(func(s *session) error {
			all, err := s.play(segmentScenes(line, 1, segmentCount)...)
			if err != nil {
				return err
			}
			s.values["foreground_slowdown"], err = s.slowdown(all[0], all[1], segmentCount)
			return err
		}),
	}
}

// segmentScenes have foreground segments on a host's first link, once with nothing beside and once with background on all links.
func segmentScenes(line netlab.Link, peers, count int) []scene {
	alone := time.Duration(segmentBytes * 8 * float64(time.Second) / float64(line.Rate))
	every := max(segmentLeast, 5*alone/2+10*line.Delay)
	var bursts []burst
	for i := range count {
		bursts = append(bursts, burst{at: time.Duration(i+1) * every, bytes: segmentBytes})
	}
	var scenes []scene
	for _, k := range []kind{idle, ledbatLane} {
		scenes = append(scenes, scene{
			name: fmt.Sprintf("foreground beside %s", k), line: line, length: time.Duration(count+1) * every,
			flows: []flow{{kind: k, peers: peers, bursts: bursts}},
		})
	}
	return scenes
}

// slowdown is how much longer foreground segments took with background beside than without, the median of each.
func (s *session) slowdown(without, with *record, count int) (float64, error) {
	var times [2]float64
	for i, rec := range []*record{without, with} {
		took := rec.took(0)
		if len(took) < count {
			return 0, fmt.Errorf("%d of %d foreground segments arrived", len(took), count)
		}
		times[i] = took[len(took)/2]
		s.run.Logf("    %s: %.3f s", rec.scene.name, took)
	}
	return times[1] / times[0], nil
}

// downlink is case 13: many senders to one viewer, which asks within a window of its own and has TCP come as well.
func downlink(name string, senders int, short bool, p *pages) bench.Case {
	before, length := 10*time.Second, 30*time.Second
	if short {
		before, length = 8*time.Second, 15*time.Second
	}
	return bench.Case{
		Name: name, Extra: short, Needs: p.needs(), About: fmt.Sprintf("%d background hosts send to one viewer's downlink of 10 Mbit/s, 40 ms, beside CUBIC%s.", senders, p.about()),
		Figures: []bench.Figure{
			{Name: "tcp_kept_ratio", Goal: ">= 0.9"}, {Name: "background_share_beside_tcp"}, {Name: "link_utilization_alone"},
			{Name: "added_delay_p95", Unit: "ms"}, {Name: "tcp_kept_ratio_senders_alone"},
		},
		Run: measuredIn(p, func(s *session) error {
			scenes := []scene{solo(ten, cubic, length)}
			for _, k := range []kind{asked, ledbatLane} { // the latter without the viewer's own controller
				if k == asked || s.yardsticks() {
					scenes = append(scenes, scene{name: fmt.Sprintf("%d senders, %s", senders, k), line: ten, length: before + length, flows: []flow{
						{kind: k, senders: senders}, {kind: cubic, from: before},
					}})
				}
			}
			all, err := s.play(scenes...)
			if err != nil {
				return err
			}
			alone, rec := all[0].rate(0, length, 0), all[1]
			s.values["tcp_kept_ratio"] = rec.kept(alone)
			s.values["background_share_beside_tcp"] = rec.used(before, before+length, 0)
			s.values["link_utilization_alone"] = rec.used(warm, before, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, warm, before)
			if len(all) > 2 {
				s.values["tcp_kept_ratio_senders_alone"] = all[2].kept(alone)
			}
			return nil
		}),
	}
}
