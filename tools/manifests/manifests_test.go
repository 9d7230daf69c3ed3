// Package manifests holds deploy/k8s to what it promises, as kubectl apply -k reads it.
package manifests

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const root = "../.."

// overlay is a copy of deploy/k8s and what it refers to, in which files of an overlay may be written.
func overlay(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"deploy/k8s", "dashboards", "alerts", "test/kube/two-nodes"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(dir, "deploy/k8s/overlays", name)
	for _, own := range []string{"settings.env", "private", "tls.crt", "tls.key"} { // what an operator has here is not tested
		if _, wanted := files[own]; !wanted && !(name == "production" && own == "settings.env") {
			_ = os.RemoveAll(filepath.Join(at, own))
		}
	}
	for file, text := range files {
		_ = os.MkdirAll(filepath.Dir(filepath.Join(at, file)), 0o700)
		if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

func build(dir string) (resmap.ResMap, error) {
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
}

// secretValues are what the files of private are filled with: no ConfigMap may hold one.
var secretValues = []string{"tracker-secret", "relay-secret", "tracker-password", "seed-password", "fleet-secret", "routes-password", "grafana-password", "bus-key"}

// private is what deploy/k8s/secrets writes, as far as a build asks for it.
var private = map[string]string{
	"private/tracker.env": "LEEWAY_TRACKER_SECRET=tracker-secret\nLEEWAY_TURN_SECRETS=relay-secret\nLEEWAY_NATS_PASSWORD=tracker-password\n",
	"private/seed.env":    "LEEWAY_NATS_PASSWORD=seed-password\nLEEWAY_SEED_FLEET_SECRET=fleet-secret\n",
	"private/turn.env":    "LEEWAY_TURN_SECRETS=relay-secret\n",
	"private/nats.env":    "TRACKER_PASSWORD=tracker-password\nSEED_PASSWORD=seed-password\nROUTES_PASSWORD=routes-password\n",
	"private/grafana.env": "GRAFANA_PASSWORD=grafana-password\n",
	"private/bus.crt":     "bus-certificate", "private/bus.key": "bus-key", "private/bus-ca.crt": "bus-authority",
}

// with is private and further files.
func with(files map[string]string) map[string]string {
	all := maps.Clone(private)
	maps.Copy(all, files)
	return all
}

// prepared is what overlays/dev/prepare writes.
var prepared = with(map[string]string{
	"settings.env": "PUBLIC_HOST=192.0.2.1\nNODE_ADDRESS=192.0.2.1\nTRACKER_PORT=30443\nORIGIN_PORT=30444\n", "tls.crt": "x", "tls.key": "x",
})

func TestDevBuildsOncePrepared(t *testing.T) {
	if _, err := build(overlay(t, "dev", nil)); err == nil || !strings.Contains(err.Error(), "settings.env") {
		t.Errorf("without prepare: %v", err)
	}
	at := overlay(t, "dev", prepared)
	for _, dir := range []string{at, filepath.Join(at, "../../../../test/kube/two-nodes")} {
		built, err := build(dir)
		if err != nil {
			t.Fatal(err)
		}
		restricted(t, built)
		wellFormed(t, built)
	}
}

var commented = regexp.MustCompile(`(?m)^#([A-Z_]+)=`)

// registry is where settings.env has the image, once all is said.
const registry = "registry.example.com/leeway"

// filled is a settings.env in which everything that has to be said is said.
func filled(settings string) string { return commented.ReplaceAllString(settings, "$1=") }

// TestProductionRefusesWhatIsNotSaid takes one setting away at a time: the build fails and names it.
func TestProductionRefusesWhatIsNotSaid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/k8s/overlays/production/settings.env"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build(overlay(t, "production", map[string]string{"settings.env": string(text)})); err == nil || !strings.Contains(err.Error(), "private/tracker.env") {
		t.Errorf("without secrets: %v", err)
	}
	all := commented.FindAllStringSubmatch(string(text), -1)
	if len(all) == 0 {
		t.Fatal("settings.env has no placeholder")
	}
	whole := filled(string(text))
	for _, one := range all {
		without := strings.Replace(whole, "\n"+one[1]+"=", "\n#"+one[1]+"=", 1)
		if _, err := build(overlay(t, "production", with(map[string]string{"settings.env": without}))); err == nil || !strings.Contains(err.Error(), one[1]) {
			t.Errorf("without %s: %v", one[1], err)
		}
	}
	built, err := build(overlay(t, "production", with(map[string]string{"settings.env": whole})))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range restricted(t, built) {
		if name != registry {
			t.Errorf("an image is had from %s, not from where the settings say", name)
		}
	}
	wellFormed(t, built)
	for _, w := range workloads(t, built) {
		for _, c := range slices.Concat(w.Spec.Template.Spec.InitContainers, w.Spec.Template.Spec.Containers) {
			if !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(c.Image) {
				t.Errorf("%s runs %s, which has no digest", w.Metadata.Name, c.Image)
			}
		}
	}
}

// TestEveryComponentCanBeLeftOut: production builds without any one of them.
func TestEveryComponentCanBeLeftOut(t *testing.T) {
	at := overlay(t, "production", private)
	edit(t, filepath.Join(at, "settings.env"), filled)
	file := filepath.Join(at, "kustomization.yaml")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^  - \.\./\.\./components/.*\n`).FindAllString(string(whole), -1)
	if len(lines) < 5 {
		t.Fatalf("only %q", lines)
	}
	for _, line := range lines {
		edit(t, file, func(string) string { return strings.Replace(string(whole), line, "", 1) })
		if _, err := build(at); err != nil {
			t.Errorf("without%s: %v", strings.TrimSpace(line), err)
		}
	}
}

func edit(t *testing.T, file string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// restricted checks every pod: an unprivileged user, nothing writable, no privilege, an image with a version, bounded memory.
// It lists our images' names.
func restricted(t *testing.T, built resmap.ResMap) []string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, "internal/app/app.go"))
	if err != nil {
		t.Fatal(err)
	}
	own := string(regexp.MustCompile(`(?m)^const Version = "(.*)"`).FindSubmatch(source)[1])
	pods := 0
	var ours []string
	for _, r := range built.Resources() {
		if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, r.GetKind()) {
			continue
		}
		pods++
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"runAsNonRoot: true", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "- ALL", "type: RuntimeDefault",
			"livenessProbe:", "readinessProbe:", "memory:",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s %s has no %q", r.GetKind(), r.GetName(), want)
			}
		}
		for _, image := range regexp.MustCompile(`image: (\S+)`).FindAllStringSubmatch(string(text), -1) {
			tagged, _, _ := strings.Cut(image[1], "@")
			name, tag, ok := strings.Cut(tagged, ":")
			if !ok || tag == "latest" || name == "" {
				t.Errorf("%s %s: image %s has no version", r.GetKind(), r.GetName(), image[1])
			}
			if strings.HasPrefix(name, "leewayvideo/") || name == registry {
				ours = append(ours, name)
				if tag != own {
					t.Errorf("%s %s: image %s, and the binary is %s", r.GetKind(), r.GetName(), image[1], own)
				}
			}
		}
	}
	if pods < 4 || len(ours) < 3 {
		t.Errorf("only %d workloads, of which ours are %v", pods, ours)
	}
	return ours
}
