package transportbench

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// alone is case 7: what becomes of the base delay while the background has the line to itself.
func alone(name string, length time.Duration, extra bool) bench.Case {
	return bench.Case{
		Name: name, Extra: extra, About: fmt.Sprintf("%.0f minutes alone on 10 Mbit/s, 40 ms.", length.Minutes()),
		Figures: []bench.Figure{
			{Name: "base_drift_ms", Unit: "ms", Goal: "< 5"}, {Name: "link_utilization_alone"}, {Name: "added_delay_p95", Unit: "ms"}, {Name: "added_delay_p95_vs_target"},
		},
		Run: measured(func(s *session) error {
			rec, err := s.one(scene{name: "alone", line: ten, length: length, flows: []flow{{kind: ledbatLane}}})
			if err != nil {
				return err
			}
			// The truth is the line's own delay; the sender's first guess may be above it, too.
			drift := 0.0
			for _, st := range rec.told(0, warm, length) {
				drift = max(drift, st.Base-rec.base().Seconds()*1000)
			}
			s.values["base_drift_ms"] = drift
			s.values["link_utilization_alone"] = rec.used(warm, length, 0)
			s.values["added_delay_p95"] = rec.addedP(0.95, warm, length)
			s.values["added_delay_p95_vs_target"] = rec.addedP(0.95, warm, length) / rec.target(0, warm, length)
			return nil
		}),
	}
}

// solitary is a case of one background flow on a line that is difficult, and a bare data channel there.
func solitary(name, about string, figures []bench.Figure, length time.Duration, sc func() scene) bench.Case {
	return bench.Case{Name: name, About: about, Figures: figures, Run: measured(func(s *session) error {
		var scenes []scene
		for _, k := range []kind{ledbatLane, plain} {
			in := sc()
			in.length, in.flows[0].kind, in.name = length, k, string(k)
			if k == ledbatLane || s.yardsticks() {
				scenes = append(scenes, in)
			}
		}
		all, err := s.play(scenes...)
		if err != nil {
			return err
		}
		if len(all) > 1 {
			s.values["goodput_mbps_sctp"] = all[1].rate(warm, length, 0) * plainPayload / 1e6
		}
		rec := all[0]
		s.values["goodput_mbps"] = rec.goodput(0, warm, length)
		for _, f := range figures {
			switch f.Name {
			case "retransmitted_ratio":
				s.values[f.Name] = rec.dropped(warm, length)
			case "link_utilization_alone":
				s.values[f.Name] = rec.used(warm, length, 0)
			case "added_delay_p95":
				s.values[f.Name] = rec.addedP(0.95, warm, length)
			}
		}
		return nil
	})}
}

// plainPayload is what a bare data channel's full packets carry, of their size as IP packets: 1156 of 1253 bytes.
const plainPayload = 1156.0 / 1253

// shallow is case 8: a queue that is far below the target.
func shallow() bench.Case {
	line := ten
	line.Queue = 16_000
	return solitary("8", "A queue of 16 KB on 10 Mbit/s, 40 ms.", []bench.Figure{
		{Name: "goodput_mbps", Unit: "Mbit/s", Goal: ">= 5", Reference: &bench.Reference{Value: 4.56, Source: "utp-go, libutp's controller"}},
		{Name: "retransmitted_ratio", Goal: "< 0.005", Reference: &bench.Reference{Value: 0.0535, Source: "utp-go, LEDBAT++"}},
		{Name: "goodput_mbps_sctp", Unit: "Mbit/s"},
	}, 30*time.Second, func() scene { return scene{line: line, flows: []flow{{}}} })
}

// lossy is case 9: losses that no queue makes.
func lossy(name string, loss, goal, least float64) bench.Case {
	line := ten
	line.Loss = loss
	return solitary(name, fmt.Sprintf("%.0f %% of random loss on 10 Mbit/s, 40 ms (%.1f Mbit/s where SCTP's window is the limit).", 100*loss, least), []bench.Figure{
		{Name: "goodput_mbps", Unit: "Mbit/s", Goal: fmt.Sprintf(">= %g", goal)}, {Name: "goodput_mbps_sctp", Unit: "Mbit/s"},
	}, 30*time.Second, func() scene { return scene{line: line, flows: []flow{{}}} })
}

// used is the share of the line that a difficult path is to be filled to.
var filled = []bench.Figure{
	{Name: "link_utilization_alone", Goal: ">= 0.7"}, {Name: "added_delay_p95", Unit: "ms"}, {Name: "goodput_mbps", Unit: "Mbit/s"}, {Name: "goodput_mbps_sctp", Unit: "Mbit/s"},
}

// jitters, slowPeer and loadedBack are case 11.
func jitters() bench.Case {
	line := ten
	line.Jitter, line.SpikeEvery, line.Spike = 5*time.Millisecond, time.Second, 60*time.Millisecond
	return solitary("11-wifi", "Jitter of 5 ms and everything held for 60 ms once a second, on 10 Mbit/s, 40 ms.", filled, 30*time.Second,
		func() scene { return scene{line: line, flows: []flow{{}}} })
}

func slowPeer() bench.Case {
	slow := netlab.Link{Rate: 500_000, Delay: 100 * time.Millisecond, Queue: 30_000}
	c := solitary("11-slow-peer", "Four peers on 10 Mbit/s, 40 ms; one of them is behind 0.5 Mbit/s and 200 ms more.", filled[:3], 30*time.Second,
		func() scene { return scene{line: ten, flows: []flow{{peers: 4, slow: slow}}} })
	c.Figures = filled
	return c
}

func loadedBack() bench.Case {
	return solitary("11-loaded-back", "CUBIC fills the way back of 10 Mbit/s, 40 ms.", filled, 30*time.Second,
		func() scene { return scene{line: ten, flows: []flow{{}, {kind: cubic, reverse: true}}} })
}
