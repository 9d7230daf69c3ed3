package loadbench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// The experiments of Jattack: the tool and a forwarding server of the same parts share the machine, as theirs shared a host of eight.
var jattack = []load.Scenario{
	media("j1", "Ten publishers and 90 viewers, about 1,000 connections with video through a forwarding server.", load.Conference, 10, 90),
	media("j2", "One publisher and 1,000 viewers of its video through a forwarding server.", load.OneToMany, 1, 1000),
}

const (
	videoRate = 50_000 // bit/s
	mediaUp   = 100 * time.Second
	mediaHold = 30 * time.Second
	mediaDown = 5 * time.Second
)

// media is an experiment.
func media(name, about string, behavior load.Behavior, publishers, viewers int) load.Scenario {
	return load.Scenario{Name: name, About: about, Groups: []load.Group{{
		Name: "clients", Behavior: behavior, Clients: publishers + viewers, Publishers: publishers, Bitrate: videoRate,
		RampUp: mediaUp, Hold: mediaHold, RampDown: mediaDown,
	}}}
}

// mediaCase is the case of an experiment.
func mediaCase(s load.Scenario) bench.Case {
	return bench.Case{
		Name: strings.ToUpper(s.Name), Extra: true,
		About: fmt.Sprintf("%s Video of %d kbit/s; clients come for %s and stay for %s.", s.About, videoRate/1000, mediaUp, mediaHold),
		Figures: []bench.Figure{
			{Name: "clients", Goal: fmt.Sprintf(">= %d", s.Groups[0].Clients)},
			{Name: "arm_cpu_vs_tested", Goal: "<= 1"},
			{Name: "arm_processors"}, {Name: "tested_processors"},
			{Name: "arm_rss", Unit: "B"}, {Name: "tested_rss", Unit: "B"},
			{Name: "join_p99", Unit: "s"}, {Name: "packet_loss", Unit: "packets"}, {Name: "nacks"},
			{Name: "knee", Unit: "clients"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
			result, err := runMedia(ctx, r, s)
			if err != nil {
				return bench.Sample{}, err
			}
			return bench.Sample{Values: mediaFigures(result), Void: mediaVoid(result)}, nil
		},
	}
}

// runMedia runs an experiment once.
func runMedia(ctx context.Context, r *bench.Run, s load.Scenario) (*load.Result, error) {
	if bad := s.Check(); len(bad) > 0 {
		return nil, fmt.Errorf("scenario %s: %v", s.Name, bad)
	}
	c, err := load.Listen(load.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	seconds := 0
	runner := load.Runner{
		Scenario: s, Controller: c, Log: r.Log,
		Start: func(l load.Launch) (func() error, error) {
			role := theArm
			if l.Name == load.PeerName {
				role = theTested
			}
			p, err := r.Start(nil, benchName, role, l.Name)
			if err != nil {
				return nil, err
			}
			return p.Stop, p.Send(order{Controller: c.URL(), Name: l.Name, Sockets: l.Sockets, Processors: l.Processors})
		},
		Progress: func(one load.Sample) {
			if seconds++; seconds%10 == 0 {
				r.Logf("  %.0f s: %d up, %d failed; arm %.2f processors, server %.2f, %.1f Mbit/s, %d NACKs", one.Second, one.Up, one.Failed, one.ArmCPU, one.PeerCPU, one.Received/1e6, one.NACKs)
			}
		},
	}
	return runner.Run(ctx)
}

// mediaFigures are those of a run; processors and memory are of the time in which all clients were there.
func mediaFigures(r *load.Result) map[string]float64 {
	v := map[string]float64{"clients": r.Figures["peak_sessions"], "packet_loss": r.Figures["packet_loss"], "nacks": r.Figures["nacks"]}
	if join, measured := r.Figures["join_p99"]; measured {
		v["join_p99"] = join
	}
	if r.Knee != nil {
		v["knee"] = float64(r.Knee.Clients)
	}
	var held []load.Sample
	for _, s := range r.Samples {
		if s.Second < mediaUp.Seconds() || s.Second > (mediaUp+mediaHold).Seconds() {
			continue
		}
		held = append(held, s)
		v["arm_rss"], v["tested_rss"] = max(v["arm_rss"], float64(s.ArmRSS)), max(v["tested_rss"], float64(s.PeerRSS))
	}
	addProcessors(v, held)
	return v
}

// addProcessors adds the figures of processors over some seconds of a run.
func addProcessors(v map[string]float64, of []load.Sample) {
	var arm, tested float64
	for _, s := range of {
		arm, tested = arm+s.ArmCPU, tested+s.PeerCPU
	}
	if n := float64(len(of)); n > 0 && tested > 0 {
		v["arm_processors"], v["tested_processors"], v["arm_cpu_vs_tested"] = arm/n, tested/n, arm/tested
	}
}

// mediaVoid says why nothing is claimed.
func mediaVoid(r *load.Result) string {
	if r.Verdict == load.Refused && len(r.Reasons) > 0 {
		return r.Reasons[0]
	}
	return ""
}
