package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rules is a file of Prometheus rules, as far as we write one.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// cases are promtool's, as far as we look at them: promtool itself runs them (make test-alerts).
type cases struct {
	Tests []struct {
		Name   string `yaml:"name"`
		Alerts []struct {
			Name string `yaml:"alertname"`
			Want []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAlertsAreWhole: each asks for what is exported, says what is the matter and how bad it is, has a line in observing.md, fires
// in a case of its own and is silent in the healthy one.
func TestAlertsAreWhole(t *testing.T) {
	var all rules
	read(t, "alerts/leeway.yml", &all)
	var tried cases
	read(t, "alerts/tests.yml", &tried)
	page, err := os.ReadFile(filepath.Join(root, "docs", "operations", "observing.md"))
	if err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, c := range tried.Tests {
		for _, a := range c.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Want) > 0
			silent[a.Name] = silent[a.Name] || len(a.Want) == 0 && strings.HasPrefix(c.Name, "healthy")
		}
	}
	known, severity := metrics(t), regexp.MustCompile(`^(critical|warning|info)$`)
	known["up"] = map[string]bool{"service": true}
	seen := map[string]bool{}
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			seen[r.Alert] = true
			asks(t, "alerts: "+r.Alert, known, r.Expr, inSummary(r.Annotations["summary"]))
			if !severity.MatchString(r.Labels["severity"]) || len(r.Annotations["summary"]) < 30 {
				t.Errorf("%s says not how bad it is, or what", r.Alert)
			}
			if at := r.Annotations["runbook_url"]; at != "docs/operations/observing.md#alerts" {
				t.Errorf("%s: its runbook is %q", r.Alert, at)
			}
			if !strings.Contains(string(page), "\n| "+r.Alert+" | ") {
				t.Errorf("docs/operations/observing.md does not say what to do about %s", r.Alert)
			}
			if !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s: fires in a case: %v, is silent in the healthy one: %v", r.Alert, fires[r.Alert], silent[r.Alert])
			}
		}
	}
	for _, m := range regexp.MustCompile(`\n\| (Leeway[A-Z]\w+) \| `).FindAllStringSubmatch(string(page), -1) {
		if !seen[m[1]] {
			t.Errorf("docs/operations/observing.md speaks of %s, which is no alert", m[1])
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d alerts: has the file changed its form?", len(seen))
	}
}

// inSummary turns {{ $labels.site }} into what legends have.
func inSummary(s string) string {
	return regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`).ReplaceAllString(s, "{{$1}}")
}
