package manifests

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"
)

// TestPrometheusScrapesPodsThatRun, or are to run, by Prometheus' own rules. One that has ended stays in Kubernetes' list until thousands
// have, and LeewayReplicaDown would speak of it for as long.
func TestPrometheusScrapesPodsThatRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/k8s/components/prometheus/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Scrapes []struct {
			Rules []*relabel.Config `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	rules := config.Scrapes[0].Rules
	for _, r := range rules {
		if err := r.Validate(model.UTF8Validation); err != nil {
			t.Fatal(err)
		}
	}
	for phase, want := range map[string]bool{"Pending": true, "Running": true, "Failed": false, "Succeeded": false} {
		pod := labels.NewBuilder(labels.FromMap(map[string]string{
			"__meta_kubernetes_namespace": "leeway", "__meta_kubernetes_pod_name": "tracker-0", "__meta_kubernetes_pod_ip": "10.0.0.7",
			"__meta_kubernetes_pod_annotation_prometheus_io_scrape": "true", "__meta_kubernetes_pod_annotation_prometheus_io_port": "9464",
			"__meta_kubernetes_pod_container_port_name": "admin", "__meta_kubernetes_pod_label_app_kubernetes_io_name": "tracker",
			"__meta_kubernetes_pod_phase": phase,
		}))
		if kept := relabel.ProcessBuilder(pod, rules...); kept != want || kept && pod.Get("__address__") != "10.0.0.7:9464" {
			t.Errorf("a pod that is %s is scraped: %v, at %q", phase, kept, pod.Get("__address__"))
		}
	}
}
