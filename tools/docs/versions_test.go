package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVersionsTestedAreThose: what docs/operations/upgrades.md says was tested is what the files name that test it or are given to a cluster.
func TestVersionsTestedAreThose(t *testing.T) {
	_, table, ok := strings.Cut(page(t, "operations/upgrades.md"), "\n## Versions tested\n")
	if !ok {
		t.Fatal("docs/operations/upgrades.md does not say which versions were tested")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for _, of := range []struct{ part, file, version string }{
		{"Kubernetes", "test/kube/build", `(?m)^kubernetes=(\S+)`},
		{"Kubernetes", "test/kube/build", `(?m)^coredns=(\S+)`},
		{"Prometheus", "test/kube/build", `(?m)^prometheus=0\.3(15\.\S+)`}, // 0.315.0 is 3.15.0
		{"Prometheus", "deploy/k8s/components/prometheus/kustomization.yaml", `newTag: v([^}]+)`},
		{"prometheus-adapter", "test/kube/build", `(?m)^adapter=(\S+)`},
		{"ingress controller", "test/kube/build", `(?m)^skipper=(\S+)`},
		{"NATS", "deploy/k8s/components/nats/kustomization.yaml", `newTag: ([\d.]+)`},
		{"NATS", "go.mod", `nats-server/v2 v(\S+)`},
		{"Grafana", "deploy/k8s/components/grafana/kustomization.yaml", `newTag: ([^}]+)`},
		{"Grafana", "tools/go.mod", `grafana-foundation-sdk/go v(\S+)`},
		{"Grafana", "tools/grafana/go.mod", `pkg/promlib v(\S+)`},
		{"browsers, players", "web/package.json", `"hls\.js": "([^"]+)"`},
		{"browsers, players", "web/package.json", `"shaka-player": "([^"]+)"`},
		{"browsers, players", "web/package.json", `"video\.js": "([^"]+)"`},
		{"browsers, players", "web/package.json", `"dashjs": "([^"]+)"`},
	} {
		text, err := os.ReadFile(filepath.Join(root, of.file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(of.version).FindSubmatch(text)
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(of.part) + ` \|.*$`).FindString(table)
		if found == nil || row == "" {
			t.Errorf("%s: %s has %q, docs/operations/upgrades.md %q", of.part, of.file, found, row)
			continue
		}
		if !regexp.MustCompile(`(^|[^\d.]|3\.)` + regexp.QuoteMeta(string(found[1])) + `($|[^\d])`).MatchString(row) {
			t.Errorf("%s: %s has %s, docs/operations/upgrades.md says %s", of.part, of.file, found[1], row)
		}
	}
}
