package transportbench

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
)

// together is case 5: background hosts among themselves, in the second half of their time.
func together(name string, line netlab.Link, n int, length time.Duration) bench.Case {
	goal := ">= 0.98"
	if n > 2 {
		goal = ">= 0.95"
	}
	return bench.Case{
		Name: name, About: fmt.Sprintf("%d background hosts together on %.0f Mbit/s, in the last third of %.0f s.", n, float64(line.Rate)/1e6, length.Seconds()),
		Figures: []bench.Figure{
			{Name: "jain_index", Goal: goal}, {Name: "link_utilization_alone"}, {Name: "added_delay_p95", Unit: "ms"}, {Name: "added_delay_p95_vs_target"},
		},
		Run: measured(func(s *session) error {
			sc := scene{name: "together", line: line, length: length}
			all := make([]int, n)
			for i := range n {
				all[i] = i
				sc.flows = append(sc.flows, flow{kind: ledbatLane, from: time.Duration(i) * time.Second})
			}
			rec, err := s.play(sc)
			if err != nil {
				return err
			}
			from := length * 2 / 3
			s.values["jain_index"] = rec.jain(from, length, all...)
			s.values["link_utilization_alone"] = rec.used(from, length, all...)
			s.values["added_delay_p95"] = rec.addedP(0.95, from, length)
			s.values["added_delay_p95_vs_target"] = rec.addedP(0.95, from, length) / rec.target(0, from, length)
			return nil
		}),
	}
}

// late is case 6: a second background host that finds the queue of the first.
func late(name string, after time.Duration) bench.Case {
	const settled, length = 20 * time.Second, 20 * time.Second
	return bench.Case{
		Name: name, About: fmt.Sprintf("A latecomer after %.1f s, 10 Mbit/s and 40 ms: its share 20 to 40 s after it came.", after.Seconds()),
		Figures: []bench.Figure{{Name: "latecomer_share", Goal: ">= 0.4"}, {Name: "latecomer_share_most", Goal: "<= 0.6"}, {Name: "jain_index"}},
		Run: measured(func(s *session) error {
			end := after + settled + length
			rec, err := s.play(scene{name: "latecomer", line: ten, length: end, flows: []flow{
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
func uplink(name string, peers int, p pages) bench.Case {
	const before, length = 10 * time.Second, 30 * time.Second
	return bench.Case{
		Name: name, Needs: p.needs(), About: fmt.Sprintf("%d background peers on one uplink of 10 Mbit/s, 40 ms, beside CUBIC; then foreground segments of 2 MB of the same host%s.", peers, p.about()),
		Figures: []bench.Figure{
			{Name: "tcp_kept_ratio", Goal: ">= 0.9"}, {Name: "background_share_beside_tcp"}, {Name: "link_utilization_alone"},
			{Name: "added_delay_p95", Unit: "ms"}, {Name: "foreground_slowdown", Goal: "<= 1.05"},
		},
		Run: measuredIn(p, func(s *session) error {
			solo, err := s.solo(ten, cubic, length)
			if err != nil {
				return err
			}
			rec, err := s.play(scene{name: "uplink", line: ten, length: before + length, flows: []flow{
				{kind: ledbatLane, peers: peers}, {kind: cubic, from: before},
			}})
			if err != nil {
				return err
			}
			s.values["tcp_kept_ratio"] = rec.rate(before, before+length, 1) / solo
			s.values["background_share_beside_tcp"] = rec.used(before, before+length, 0)
			s.values["link_utilization_alone"] = rec.used(warm, before, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, warm, before)
			slowdown, err := s.foreground(ten, peers)
			s.values["foreground_slowdown"] = slowdown
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
			slowdown, err := s.foreground(line, 1)
			s.values["foreground_slowdown"] = slowdown
			return err
		}),
	}
}

// foreground is how much longer foreground segments take with background on the same host's links than without, the
// median of each.
func (s *session) foreground(line netlab.Link, peers int) (float64, error) {
	alone := time.Duration(segmentBytes * 8 * float64(time.Second) / float64(line.Rate))
	every := max(segmentLeast, 5*alone/2+10*line.Delay)
	var bursts []burst
	for i := range segmentCount {
		bursts = append(bursts, burst{at: time.Duration(i+1) * every, bytes: segmentBytes})
	}
	var times [2]float64
	for i, k := range []kind{idle, ledbatLane} {
		rec, err := s.play(scene{name: fmt.Sprintf("foreground beside %s", k), line: line, length: (segmentCount + 1) * every, flows: []flow{
			{kind: k, peers: peers, bursts: bursts},
		}})
		if err != nil {
			return 0, err
		}
		took := rec.took(0)
		if len(took) < segmentCount {
			return 0, fmt.Errorf("%d of %d foreground segments arrived", len(took), segmentCount)
		}
		times[i] = took[len(took)/2]
		s.run.Logf("    foreground beside %s: %.3f s", k, took)
	}
	return times[1] / times[0], nil
}

// downlink is case 13: many senders to one viewer, which asks within a window of its own and has TCP come as well.
func downlink(name string, senders int, p pages) bench.Case {
	const before, length = 10 * time.Second, 30 * time.Second
	return bench.Case{
		Name: name, Needs: p.needs(), About: fmt.Sprintf("%d background hosts send to one viewer's downlink of 10 Mbit/s, 40 ms, beside CUBIC%s.", senders, p.about()),
		Figures: []bench.Figure{
			{Name: "tcp_kept_ratio", Goal: ">= 0.9"}, {Name: "background_share_beside_tcp"}, {Name: "link_utilization_alone"},
			{Name: "added_delay_p95", Unit: "ms"}, {Name: "tcp_kept_ratio_senders_alone"},
		},
		Run: measuredIn(p, func(s *session) error {
			solo, err := s.solo(ten, cubic, length)
			if err != nil {
				return err
			}
			for _, k := range []kind{asked, ledbatLane} {
				rec, err := s.play(scene{name: fmt.Sprintf("%d senders, %s", senders, k), line: ten, length: before + length, flows: []flow{
					{kind: k, senders: senders}, {kind: cubic, from: before},
				}})
				if err != nil {
					return err
				}
				kept := rec.rate(before, before+length, 1) / solo
				if k == ledbatLane { // without the viewer's own law
					s.values["tcp_kept_ratio_senders_alone"] = kept
					continue
				}
				s.values["tcp_kept_ratio"] = kept
				s.values["background_share_beside_tcp"] = rec.used(before, before+length, 0)
				s.values["link_utilization_alone"] = rec.used(warm, before, 0)
				s.values["added_delay_p95"] = rec.addedP(0.95, warm, before)
			}
			return nil
		}),
	}
}
