package bus

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/trial"
)

func someTrial() *Trial {
	p := TrialPart{Tracker: one}
	p.Windows[0].Number = 20_000
	p.Windows[1].Counts[trial.Stall][trial.Control][3] = 7
	return &Trial{Site: "demo", SinceMs: 4, Permille: 30, Parts: []TrialPart{p}}
}

func TestTrialSurvivesTheBus(t *testing.T) {
	b, err := Encode(someTrial())
	if err != nil {
		t.Fatal(err)
	}
	var back Trial
	if err := Decode(b, &back); err != nil || !reflect.DeepEqual(&back, someTrial()) {
		t.Errorf("%v\n came %+v", err, back)
	}
	if kind := Kind(SubjectTrial); kind != "trial" {
		t.Errorf("kind %s", kind)
	}
}

// TestTheLargestTrialFits: as many trackers as are remembered, each with more viewers than there are people.
func TestTheLargestTrialFits(t *testing.T) {
	m := someTrial()
	m.Parts = nil
	for i := range MaxTrialParts {
		p := TrialPart{Tracker: one}
		p.Tracker[1] = byte(i)
		for w := range p.Windows {
			p.Windows[w].Number = 1e6
			for test := range trial.Tests {
				for l := range trial.Levels {
					p.Windows[w].Counts[test][trial.Peer][l], p.Windows[w].Counts[test][trial.Control][l] = 99_999_999, 9_999_999
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

func TestTrialsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*Trial){
		"no site":           func(m *Trial) { m.Site = "" },
		"before all":        func(m *Trial) { m.SinceMs = -1 },
		"no control group":  func(m *Trial) { m.Permille = 0 },
		"nobody with peers": func(m *Trial) { m.Permille = 1000 },
		"part of nobody":    func(m *Trial) { m.Parts[0].Tracker = [16]byte{} },
		"negative count":    func(m *Trial) { m.Parts[0].Windows[1].Counts[2][1][10] = -1 },
		"beyond belief":     func(m *Trial) { m.Parts[0].Windows[0].Counts[0][0][0] = 1 << 50 },
		"window before all": func(m *Trial) { m.Parts[0].Windows[0].Number = -5 },
		"too many parts":    func(m *Trial) { m.Parts = make([]TrialPart, MaxTrialParts+1) },
	} {
		m := someTrial()
		change(m)
		if err := m.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeTrial(f *testing.F) {
	b, err := Encode(someTrial())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, back Trial
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
