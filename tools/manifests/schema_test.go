package manifests

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"
)

// known decodes what we use of Kubernetes and of the Prometheus operator by their own types: a field that they do not have, or of
// another type, is an error. What only a server knows (is the port in its range?) is asked of one in test/kube.
func known(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, autoscaling.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, rbac.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// wellFormed checks every resource of a build.
func wellFormed(t *testing.T, built resmap.ResMap) {
	t.Helper()
	decoder := known(t)
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := decoder.Decode(text, nil, nil); err != nil {
			t.Errorf("%s %s: %v", r.GetKind(), r.GetName(), err)
		}
	}
}

// TestAWrongFieldIsFound: without this the check above could take anything.
func TestAWrongFieldIsFound(t *testing.T) {
	for _, text := range []string{
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selectors: {}}}",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: many}]}}",
		"{apiVersion: monitoring.coreos.com/v1, kind: PodMonitor, metadata: {name: a}, spec: {podMetricsEndpoint: []}}",
		"{apiVersion: v2, kind: Service, metadata: {name: a}}",
	} {
		if got, _, err := known(t).Decode([]byte(text), nil, nil); err == nil {
			t.Errorf("%s is taken for %+v", text, got)
		}
	}
}

// TestTheOperatorsRulesAreTheAlerts: one set of alerts, for the operator and for Prometheus itself. LEEWAY_WRITE=yes writes the operator's anew.
func TestTheOperatorsRulesAreTheAlerts(t *testing.T) {
	read := func(path string) map[string]any {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := yaml.Unmarshal(text, &out); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return out
	}
	const rules = "deploy/k8s/components/prometheus-operator/rules.yaml"
	alerts := read("alerts/leeway.yml")
	if os.Getenv("LEEWAY_WRITE") == "yes" {
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": map[string]any{"name": "leeway"}, "spec": alerts,
		})
		if err != nil {
			t.Fatal(err)
		}
		head := "# Made of alerts/leeway.yml: LEEWAY_WRITE=yes go -C tools test ./manifests\n"
		if err := os.WriteFile(filepath.Join(root, rules), append([]byte(head), text...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(rules)["spec"]; !reflect.DeepEqual(got, map[string]any(alerts)) {
		t.Errorf("%s does not say what alerts/leeway.yml does: LEEWAY_WRITE=yes go -C tools test ./manifests", rules)
	}
}

// TestTheOperatorTakesPrometheusPlace: production with components/prometheus-operator asks for one more setting.
func TestTheOperatorTakesPrometheusPlace(t *testing.T) {
	at := overlay(t, "production", private)
	edit(t, filepath.Join(at, "kustomization.yaml"), func(s string) string {
		return strings.Replace(s, "- ../../components/prometheus #", "- ../../components/prometheus-operator #", 1)
	})
	edit(t, filepath.Join(at, "settings.env"), filled)
	if _, err := build(at); err == nil || !strings.Contains(err.Error(), "MONITORING_NAMESPACE") {
		t.Errorf("without the setting: %v", err)
	}
	edit(t, filepath.Join(at, "settings.env"), func(s string) string {
		return strings.Replace(s, "# MONITORING_NAMESPACE=", "MONITORING_NAMESPACE=", 1)
	})
	built, err := build(at)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, built)
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: PodMonitor", "kind: PrometheusRule", "kubernetes.io/metadata.name: monitoring"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(string(text), "image: prom/prometheus") {
		t.Error("and a Prometheus of its own")
	}
}
