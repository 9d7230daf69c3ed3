package bus

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/experiment"
)

func someExperiment() *Experiment {
	p := ExperimentPart{Tracker: one}
	p.Windows[0].Number = 20_000
	p.Windows[1].Counts[experiment.Stall][experiment.Control][3] = 7
	return &Experiment{Site: "demo", SinceMs: 4, Permille: 30, Parts: []ExperimentPart{p}}
}

func TestExperimentSurvivesTheBus(t *testing.T) {
	b, err := Encode(someExperiment())
	if err != nil {
		t.Fatal(err)
	}
	var back Experiment
	if err := Decode(b, &back); err != nil || !reflect.DeepEqual(&back, someExperiment()) {
		t.Errorf("%v\n came %+v", err, back)
	}
	if kind := Kind(SubjectExperiment); kind != "trial" {
		t.Errorf("kind %s", kind)
	}
}

// TestTheLargestExperimentFits: as many trackers as are remembered, each with more viewers than there are people.
func TestTheLargestExperimentFits(t *testing.T) {
	m := someExperiment()
	m.Parts = nil
	for i := range MaxExperimentParts {
		p := ExperimentPart{Tracker: one}
		p.Tracker[1] = byte(i)
		for w := range p.Windows {
			p.Windows[w].Number = 1e6
			for test := range experiment.Tests {
				for l := range experiment.Levels {
					p.Windows[w].Counts[test][experiment.Peer][l], p.Windows[w].Counts[test][experiment.Control][l] = 99_999_999, 9_999_999
				}
			}
		}
		m.Parts = append(m.Parts, p)
	}
	if b, err := Encode(m); err != nil {
		t.Error(err)
	} else {
		t.Logf("%d bytes", len(b))
	}
}

func TestExperimentsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*Experiment){
		"no site":                func(m *Experiment) { m.Site = "" },
		"before all":             func(m *Experiment) { m.SinceMs = -1 },
		"no control group":       func(m *Experiment) { m.Permille = 0 },
		"no viewer with peers":   func(m *Experiment) { m.Permille = 1000 },
		"part without a tracker": func(m *Experiment) { m.Parts[0].Tracker = [16]byte{} },
		"negative count":         func(m *Experiment) { m.Parts[0].Windows[1].Counts[2][1][10] = -1 },
		"beyond belief":          func(m *Experiment) { m.Parts[0].Windows[0].Counts[0][0][0] = 1 << 50 },
		"window before all":      func(m *Experiment) { m.Parts[0].Windows[0].Number = -5 },
		"too many parts":         func(m *Experiment) { m.Parts = make([]ExperimentPart, MaxExperimentParts+1) },
	} {
		m := someExperiment()
		change(m)
		if err := m.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeExperiment(f *testing.F) {
	b, err := Encode(someExperiment())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, back Experiment
		if Decode(b, &m) != nil {
			return
		}
		again, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) <= MaxMessage && (Decode(again, &back) != nil || !reflect.DeepEqual(m, back)) {
			t.Fatalf("%+v is another one after encoding: %+v", m, back)
		}
		for i := range m.Parts {
			for _, w := range m.Parts[i].Windows {
				for _, e := range w.Counts.Evidence(m.Permille) {
					if e != e {
						t.Fatalf("evidence of %+v is no number", w.Counts)
					}
				}
			}
		}
	})
}
