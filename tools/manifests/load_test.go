package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheLoadTestHasAsManyArmsAsItsScenario: a controller that waits for an arm that does not come tests nothing.
func TestTheLoadTestHasAsManyArmsAsItsScenario(t *testing.T) {
	at := overlay(t, "load", nil)
	built, err := build(at)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, built)
	scenario, err := os.ReadFile(filepath.Join(at, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`remote: (\d+)`).FindSubmatch(scenario)
	if said == nil {
		t.Fatal("the scenario has no remote arms")
	}
	jobs := 0
	for _, r := range built.Resources() {
		if r.GetKind() != "Job" {
			continue
		}
		jobs++
		text := r.MustYaml()
		for _, want := range []string{"runAsNonRoot: true", "readOnlyRootFilesystem: true", "- ALL", "type: RuntimeDefault", "memory:", "image: leewayvideo/leeway-lab:"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", r.GetName(), want)
			}
		}
		if r.GetName() != "arms" {
			continue
		}
		for _, key := range []string{"parallelism", "completions"} {
			if want := fmt.Sprintf("%s: %s\n", key, said[1]); !strings.Contains(text, want) {
				t.Errorf("the arms have no %q", want)
			}
		}
	}
	if jobs != 2 {
		t.Errorf("%d jobs", jobs)
	}
}
