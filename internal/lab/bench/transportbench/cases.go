package transportbench

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// The lines of the cases.
var (
	// reale is the line of Reale et al.: 100 ms of base round trip.
	reale = netlab.Link{Rate: 1_000_000, Delay: 50 * time.Millisecond, Queue: 60_000}
	// ten is the line of most published comparisons.
	ten = netlab.Link{Rate: 10_000_000, Delay: 20 * time.Millisecond, Queue: 256_000}
	// hundred has one bandwidth-delay product of queue.
	hundred = netlab.Link{Rate: 100_000_000, Delay: 20 * time.Millisecond, Queue: 500_000}
)

// warm is how much of a flow's beginning is left out where its steady state is asked for.
const warm = 5 * time.Second

// The crowds of case 5.
var (
	slowCrowd = crowd{line: reale, hosts: 2, length: time.Minute}
	twoCrowd  = crowd{line: ten, hosts: 2, length: 30 * time.Second}
	fiveCrowd = crowd{line: ten, hosts: 5, length: 90 * time.Second}
)

// everyCrowd is all of case 5 at once, in half the time.
func everyCrowd() bench.Case {
	all := []crowd{fiveCrowd, twoCrowd, slowCrowd}
	for i, suffix := range []string{"_five", "_two", "_slow"} {
		all[i].suffix = suffix
	}
	return together("5", all...)
}

// sets are what is measured together; table is what has to hold whatever else does, in less than an hour for five runs.
var sets = map[string][]string{
	"table":      {"1", "2", "5", "8", "12-1", "12-20"},
	"foreground": {"foreground-5-20", "foreground-5-100", "foreground-20-20", "foreground-20-100", "foreground-100-20", "foreground-100-100"},
}

func cases() []bench.Case {
	all := []bench.Case{
		paper("1", time.Minute, false, nil), paper("1-short", 20*time.Second, true, nil), smoke("smoke", nil), smoke("smoke-chromium", bothKinds),
		figure2("R2", time.Minute, false), figure2("R2-short", 20*time.Second, true),
		competitors("2", 20*time.Second, 40*time.Second, false, nil), competitors("2-short", 10*time.Second, 20*time.Second, true, nil),
		bbrs(),
		reaction("4", ten, false, nil), reaction("4-fast", hundred, false, nil),
		together("5-slow", slowCrowd), together("5-two", twoCrowd), together("5-five", fiveCrowd), everyCrowd(),
		late("6", 1500*time.Millisecond), late("6-minute", time.Minute),
		alone("7", 30*time.Minute, true), alone("7-short", 4*time.Minute, false),
		shallow(), lossy("9-one", 0.01, 5, 2.4), lossy("9-five", 0.05, 3, 1.6),
		queues(), jitters(), slowPeer(), loadedBack(),
		uplink("12-1", 1, false, nil), uplink("12-5", 5, false, nil), uplink("12-20", 20, false, nil),
		uplink("12-1-short", 1, true, nil), uplink("12-20-short", 20, true, nil),
		downlink("13-1", 1, false, nil), downlink("13-5", 5, false, nil), downlink("13-20", 20, false, nil),
		downlink("13-5-short", 5, true, nil),
		paper("1-chromium", time.Minute, false, bothKinds), paper("1-short-chromium", 20*time.Second, true, bothKinds),
		competitors("2-chromium", 20*time.Second, 40*time.Second, false, senders), competitors("2-short-chromium", 10*time.Second, 20*time.Second, true, senders),
		reaction("4-chromium", ten, true, senders), reaction("4-fast-chromium", hundred, true, senders),
		uplink("12-1-chromium", 1, false, senders), uplink("12-5-chromium", 5, false, senders), uplink("12-20-chromium", 20, false, senders),
		uplink("12-5-short-chromium", 5, true, senders),
		downlink("13-1-chromium", 1, false, viewers), downlink("13-5-chromium", 5, false, viewers), downlink("13-20-chromium", 20, false, viewers),
		downlink("13-5-short-chromium", 5, true, viewers),
		competitors("2-short-firefox", 10*time.Second, 20*time.Second, true, firefoxSenders), uplink("12-5-short-firefox", 5, true, firefoxSenders),
		segments(5, 20), segments(5, 100), segments(20, 20), segments(20, 100), segments(100, 20), segments(100, 100),
	}
	for i, c := range all {
		all[i] = planned(c)
	}
	return all
}

// paper is R1: two background flows of two processes and TCP, a step apart.
func paper(name string, d time.Duration, extra bool, p *pages) bench.Case {
	return bench.Case{
		Name: name, Extra: extra, Needs: p.needs(),
		About: fmt.Sprintf("Reale's first experiment: 1 Mbit/s, 100 ms, 60 KB; two background hosts and TCP, %.0f s apart%s.", d.Seconds(), p.about()),
		Figures: []bench.Figure{
			{Name: "link_utilization_alone", Goal: ">= 0.95"},
			{Name: "added_delay_p95_vs_target", Goal: "<= 1.5"},
			{Name: "added_delay_p95_vs_target_two", Goal: "<= 2"},
			{Name: "added_delay_p95", Unit: "ms", Reference: &bench.Reference{Value: 100, Source: "Reale 2014"}},
			{Name: "tcp_kept_ratio", Goal: ">= 0.93"},
			{Name: "tcp_kept_ratio_one", Goal: ">= 0.95"},
			{Name: "tcp_kept_ratio_rfc6817"}, {Name: "tcp_kept_ratio_sctp"},
			{Name: "background_share_beside_tcp"}, {Name: "jain_index"}, {Name: "latecomer_share"},
			{Name: "signal_follows", Goal: followsGoal},
		},
		Run: measuredIn(p, func(s *session) error { return s.paper(d) }),
	}
}

func (s *session) paper(d time.Duration) error {
	scenes := []scene{
		solo(reale, cubic, d),
		{name: "R1", line: reale, length: 3 * d, flows: []flow{
			{kind: ledbatLane}, {kind: ledbatLane, from: d}, {kind: cubic, from: 2 * d},
		}},
		beside(reale, ledbatLane, cubic, d/2, d),
	}
	if s.yardsticks() {
		scenes = append(scenes, beside(reale, rfcLane, cubic, d/2, d), beside(reale, plain, cubic, d/2, d))
	}
	all, err := s.play(scenes...)
	if err != nil {
		return err
	}
	v, alone, rec := s.values, all[0].rate(0, d, 0), all[1]
	v["link_utilization_alone"] = rec.used(warm, d, 0)
	v["added_delay_p95"] = rec.addedP(0.95, warm, d)
	v["added_delay_p95_vs_target"] = rec.addedP(0.95, warm, d) / rec.target(0, warm, d)
	v["added_delay_p95_vs_target_two"] = rec.addedP(0.95, d+warm, 2*d) / rec.target(0, d+warm, 2*d)
	v["tcp_kept_ratio"] = rec.rate(2*d, 3*d, 2) / alone
	v["background_share_beside_tcp"] = rec.used(2*d, 3*d, 0, 1)
	v["signal_follows"] = rec.follows(0, warm, 3*d)
	settled := d + d/3 // 20 s after the second one came, in the paper's steps
	v["jain_index"] = rec.jain(settled, 2*d, 0, 1)
	v["latecomer_share"] = rec.rate(settled, 2*d, 1) / rec.rate(settled, 2*d, 0, 1)
	for i, figure := range []string{"tcp_kept_ratio_one", "tcp_kept_ratio_rfc6817", "tcp_kept_ratio_sctp"} {
		if i+2 < len(all) {
			v[figure] = all[i+2].kept(alone)
		}
	}
	return s.picture(rec, "Two background flows and TCP")
}

// picture draws what the paper draws, where it is asked for.
func (s *session) picture(rec *record, title string) error {
	if s.run.Plot == "" {
		return nil
	}
	return rec.plotTo(s.run.Plot, title)
}

// smoke is the paper's first experiment in less than a minute: whether all of it works.
func smoke(name string, p *pages) bench.Case {
	const d = 15 * time.Second
	return bench.Case{
		Name: name, Extra: true, Needs: p.needs(), About: fmt.Sprintf("Three quarters of a minute of the paper's first experiment, for make test%s.", p.about()),
		Figures: []bench.Figure{
			{Name: "link_utilization_alone", Goal: ">= 0.8"}, {Name: "added_delay_p95", Unit: "ms", Goal: "<= 250"},
			{Name: "background_share_beside_tcp", Goal: "<= 0.35"}, {Name: "signal_follows", Goal: ">= 0.6"},
		},
		Run: measuredIn(p, func(s *session) error {
			rec, err := s.one(scene{name: "R1", line: reale, length: 3 * d, flows: []flow{
				{kind: ledbatLane}, {kind: ledbatLane, from: d}, {kind: cubic, from: 2 * d},
			}})
			if err != nil {
				return err
			}
			s.values["link_utilization_alone"] = rec.used(warm, d, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, warm, 2*d)
			s.values["background_share_beside_tcp"] = rec.used(2*d+warm, 3*d, 0, 1)
			s.values["signal_follows"] = rec.follows(0, warm, 3*d)
			return nil
		}),
	}
}

// figure2 is R2: data channels without a controller beside TCP.
func figure2(name string, d time.Duration, extra bool) bench.Case {
	return bench.Case{
		Name: name, Extra: extra,
		About: fmt.Sprintf("Reale's second experiment: the same line with the foreground lane, which knows no yielding; %.0f s apart.", d.Seconds()),
		Figures: []bench.Figure{
			{Name: "link_utilization_alone"}, {Name: "added_delay_p95", Unit: "ms"}, {Name: "tcp_kept_ratio"}, {Name: "tcp_kept_ratio_sctp"},
		},
		Run: measured(func(s *session) error {
			scenes := []scene{solo(reale, cubic, d), {name: "R2", line: reale, length: 3 * d, flows: []flow{
				{kind: foreground}, {kind: foreground, from: d}, {kind: cubic, from: 2 * d},
			}}}
			if s.yardsticks() {
				scenes = append(scenes, beside(reale, plain, cubic, d/2, d))
			}
			all, err := s.play(scenes...)
			if err != nil {
				return err
			}
			alone, rec := all[0].rate(0, d, 0), all[1]
			s.values["link_utilization_alone"] = rec.used(warm, d, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, 2*d, 3*d)
			s.values["tcp_kept_ratio"] = rec.rate(2*d, 3*d, 2) / alone
			if len(all) > 2 {
				s.values["tcp_kept_ratio_sctp"] = all[2].kept(alone)
			}
			return s.picture(rec, "Two foreground flows and TCP")
		}),
	}
}
