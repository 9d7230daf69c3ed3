package transportbench

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// competitors is case 2: Reno and CUBIC come to a line that the background has.
func competitors(name string, before, length time.Duration, extra bool, p *pages) bench.Case {
	return bench.Case{
		Name: name, Extra: extra, Needs: p.needs(), About: fmt.Sprintf("Against Reno and CUBIC: 10 Mbit/s, 40 ms, 256 KB of queue%s.", p.about()),
		Figures: []bench.Figure{
			{Name: "link_utilization_alone"}, {Name: "added_delay_p95_vs_target"}, {Name: "added_delay_p95", Unit: "ms"},
			{Name: "tcp_kept_ratio", Goal: ">= 0.95", Reference: &bench.Reference{Value: 0.84, Source: "utp-go, LEDBAT++ against a Reno-like flow"}},
			{Name: "tcp_kept_ratio_reno", Goal: ">= 0.95"},
			{Name: "tcp_kept_ratio_rfc6817"}, {Name: "tcp_kept_ratio_sctp"}, {Name: "background_share_beside_tcp"},
		},
		Run: measuredIn(p, func(s *session) error {
			scenes := []scene{
				solo(ten, cubic, length), beside(ten, ledbatLane, cubic, before, length),
				solo(ten, reno, length), beside(ten, ledbatLane, reno, before, length),
			}
			if s.yardsticks() {
				scenes = append(scenes, beside(ten, rfcLane, cubic, before, length), beside(ten, plain, cubic, before, length))
			}
			all, err := s.play(scenes...)
			if err != nil {
				return err
			}
			alone, rec := all[0].rate(0, length, 0), all[1]
			s.values["tcp_kept_ratio"] = rec.kept(alone)
			s.values["link_utilization_alone"] = rec.used(warm, before, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, warm, before)
			s.values["added_delay_p95_vs_target"] = rec.addedP(0.95, warm, before) / rec.target(0, warm, before)
			s.values["background_share_beside_tcp"] = rec.used(before, before+length, 0)
			s.values["tcp_kept_ratio_reno"] = all[3].kept(all[2].rate(0, length, 0))
			if len(all) > 4 {
				s.values["tcp_kept_ratio_rfc6817"], s.values["tcp_kept_ratio_sctp"] = all[4].kept(alone), all[5].kept(alone)
			}
			return nil
		}),
	}
}

// bbrs is case 3: BBR, on a short, a middling and a long path.
func bbrs() bench.Case {
	trips := []int{20, 60, 120}
	c := bench.Case{Name: "3", About: "Against BBR: 10 Mbit/s, 256 KB of queue, base round trips of 20, 60 and 120 ms."}
	for _, ms := range trips {
		c.Figures = append(c.Figures, bench.Figure{Name: fmt.Sprintf("tcp_kept_ratio_%dms", ms), Goal: ">= 0.92"},
			bench.Figure{Name: fmt.Sprintf("tcp_kept_ratio_sctp_%dms", ms)})
	}
	const before, length = 8 * time.Second, 20 * time.Second
	c.Run = measured(func(s *session) error {
		var scenes []scene
		for _, ms := range trips {
			line := ten
			line.Delay = time.Duration(ms) * time.Millisecond / 2
			scenes = append(scenes, solo(line, bbr, length), beside(line, ledbatLane, bbr, before, length))
			if s.yardsticks() {
				scenes = append(scenes, beside(line, plain, bbr, before, length))
			}
		}
		all, err := s.play(scenes...)
		if err != nil {
			return err
		}
		each := len(all) / len(trips)
		for i, ms := range trips {
			alone := all[i*each].rate(0, length, 0)
			for k, figure := range []string{"tcp_kept_ratio_%dms", "tcp_kept_ratio_sctp_%dms"}[:each-1] {
				s.values[fmt.Sprintf(figure, ms)] = all[i*each+1+k].kept(alone)
			}
		}
		return nil
	})
	return c
}

// leastReaction is the round trip below which the time to yield is told in units of it: 10 of yield_rtts are then within
// 1 s, or within 10 round trips as they are at that moment, whichever is longer.
const leastReaction = 100 * time.Millisecond

// reaction is case 4: how soon TCP has the line, and how soon it is used again after.
func reaction(name string, line netlab.Link, extra bool, p *pages) bench.Case {
	const before, beside, after = 15 * time.Second, 20 * time.Second, 15 * time.Second
	figures := []bench.Figure{
		{Name: "yield_rtts", Goal: "<= 10"}, {Name: "yield_seconds", Unit: "s"}, {Name: "recover_seconds", Unit: "s", Goal: "< 5"},
		{Name: "link_utilization_alone"}, {Name: "link_utilization_vs_foreground", Goal: ">= 0.9"}, {Name: "tcp_share"},
	}
	if p == nil { // a browser does much beside
		costGoal := "" // what a byte costs is asked for where there are many
		if line.Rate >= hundred.Rate {
			costGoal = "<= 1.1"
		}
		figures = append(figures, bench.Figure{Name: "cpu", Unit: "s/GB"}, bench.Figure{Name: "cpu_vs_foreground", Goal: costGoal})
	}
	return bench.Case{
		Name: name, Extra: extra, Needs: p.needs(),
		About:   fmt.Sprintf("Time to yield and to recover: %d Mbit/s, 40 ms%s.", line.Rate/1e6, p.about()),
		Figures: figures,
		Run: measuredIn(p, func(s *session) error {
			all, err := s.play(
				scene{name: "foreground alone", line: line, length: before, flows: []flow{{kind: foreground}}},
				scene{name: "come and go", line: line, length: before + beside + after, flows: []flow{
					{kind: ledbatLane}, {kind: cubic, from: before, to: before + beside},
				}},
			)
			if err != nil {
				return err
			}
			fore, rec := all[0], all[1]
			const window = 3 * step
			yield := rec.until(before, beside, window, 0, func(share float64) bool { return share < 0.1 })
			trip := rec.base() + time.Duration(rec.addedP(0.5, before, before+yield)*float64(time.Millisecond))
			s.values["yield_seconds"] = yield.Seconds()
			s.values["yield_rtts"] = yield.Seconds() / max(trip, leastReaction).Seconds()
			s.values["recover_seconds"] = rec.until(before+beside, after, window, 0, func(share float64) bool { return share >= 0.8 }).Seconds()
			s.values["link_utilization_alone"] = rec.used(warm, before, 0)
			s.values["link_utilization_vs_foreground"] = rec.used(warm, before, 0) / fore.used(warm, before, 0)
			s.values["tcp_share"] = rec.used(before, before+beside, 1)
			if p == nil {
				s.values["cpu"], s.values["cpu_vs_foreground"] = rec.cost(0, before), rec.cost(0, before)/fore.cost(0, before)
			}
			return nil
		}),
	}
}

// queues is case 10: a queue for each flow at the bottleneck, where no delay tells of others.
func queues() bench.Case {
	line := ten
	line.Fair = true
	const before, length = 10 * time.Second, 30 * time.Second
	return bench.Case{
		Name: "10", About: "A queue a flow at the bottleneck (10 Mbit/s, 40 ms): one background host with four links beside CUBIC.",
		Figures: []bench.Figure{
			{Name: "background_share_beside_tcp", Goal: "<= 0.5"}, {Name: "tcp_kept_ratio"}, {Name: "link_utilization_alone"},
		},
		Run: measured(func(s *session) error {
			all, err := s.play(solo(line, cubic, length), scene{name: "fair queues", line: line, length: before + length, flows: []flow{
				{kind: ledbatLane, peers: 4}, {kind: cubic, from: before},
			}})
			if err != nil {
				return err
			}
			rec := all[1]
			s.values["background_share_beside_tcp"] = rec.used(before, before+length, 0)
			s.values["tcp_kept_ratio"] = rec.kept(all[0].rate(0, length, 0))
			s.values["link_utilization_alone"] = rec.used(warm, before, 0)
			return nil
		}),
	}
}
