package lab

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/load"
)

func TestScenariosOfTheRepository(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		s, err := readScenario(f, map[string]string{"host": "127.0.0.1:8080", "whip": "http://127.0.0.1:8889/live/whip", "whep": "http://127.0.0.1:8889/live/whep"})
		if err != nil {
			t.Error(err)
		}
		if s.Name+".yaml" != filepath.Base(f) || s.About == "" || len(s.Thresholds) == 0 {
			t.Errorf("%s is called %q, and has %d thresholds", f, s.Name, len(s.Thresholds))
		}
	}
}

// TestTheClustersScenarioCanBeRun: that of deploy/k8s/overlays/load.
func TestTheClustersScenarioCanBeRun(t *testing.T) {
	s, err := readScenario("../../deploy/k8s/overlays/load/scenario.yaml", nil)
	if err != nil || s.Arms.Remote < 2 || s.Arms.Local > 0 {
		t.Errorf("%+v: %v", s.Arms, err)
	}
}

const scenarioText = `name: crowd
groups:
  - name: g
    behavior: active
    clients: 10
    rate: 8000
    ramp_up: 1s
    hold: 5s
thresholds: [ "join_p99<2s" ]
`

func TestScenarioErrorsNameTheLine(t *testing.T) {
	if _, err := parseScenario("f", []byte(scenarioText)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"clients: 10", "clients: 90000", "f:7: groups[0].ramp_up: 90000 clients in 1s are 90000 a second"},
		{"clients: 10", "client: 10", "f:5:"},
		{"clients: 10", "clients: many", "f:5:"},
		{"    rate: 8000\n", "", "groups[0].rate: 0; give 8"},
		{"hold: 5s", "hold: 5 parsecs", "f:8:"},
		{"join_p99<2s", "speed<2s", "f:9: thresholds[0]: \"speed\" is no figure"},
		{"name: crowd\n", "", "name: \"\"; give 1 to 32"},
		{"groups:", "groups: [", "f:"},
		{scenarioText, "", "f:"},
	} {
		_, err := parseScenario("f", []byte(strings.Replace(scenarioText, c.old, c.new, 1)))
		var typed *scenarioError
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %s", c.new, err, c.want)
		}
	}
}

// TestAResultTellsNoToken: its JSON has the scenario, and is shown around.
func TestAResultTellsNoToken(t *testing.T) {
	s, err := parseScenario("f", []byte(strings.Replace(scenarioText, "    rate: 8000\n", "    rate: 8000\n    token: hidden\n", 1)))
	if err != nil || s.Groups[0].Token != "hidden" {
		t.Fatalf("%+v, %v", s.Groups, err)
	}
	if text, err := json.Marshal(load.Result{Scenario: s}); err != nil || strings.Contains(string(text), "hidden") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPlaceholdersAreGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(scenarioText, "crowd", "${what}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readScenario(file, nil); err == nil || !strings.Contains(err.Error(), ":1: ${what} is not given (add --set what=…)") {
		t.Error(err)
	}
	if s, err := readScenario(file, map[string]string{"what": "crowd"}); err != nil || s.Name != "crowd" {
		t.Error(s.Name, err)
	}
}

func TestOddScenarioFiles(t *testing.T) {
	for _, text := range []string{"", "groups: [{life: -1s}]", "a: &a [*a]", "\x00", "- - -", "name: [", "? : ?", "groups:\n  - *missing"} {
		_, err := parseScenario("f", []byte(text))
		var typed *scenarioError
		if !errors.As(err, &typed) || len(typed.problems) == 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}
