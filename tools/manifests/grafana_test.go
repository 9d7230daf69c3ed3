package manifests

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"
)

// datasources and providers are what Grafana's documentation says that files below /etc/grafana/provisioning may have, as far as we
// would ever use it: a field that is none of these is a mistake.
type datasources struct {
	APIVersion  int `json:"apiVersion"`
	Datasources []struct {
		Name      string         `json:"name"`
		UID       string         `json:"uid"`
		Type      string         `json:"type"`
		Access    string         `json:"access"`
		URL       string         `json:"url"`
		IsDefault bool           `json:"isDefault"`
		Editable  bool           `json:"editable"`
		JSONData  map[string]any `json:"jsonData"`
	} `json:"datasources"`
}

type providers struct {
	APIVersion int `json:"apiVersion"`
	Providers  []struct {
		Name    string            `json:"name"`
		Folder  string            `json:"folder"`
		Type    string            `json:"type"`
		Options map[string]string `json:"options"`
	} `json:"providers"`
}

// TestGrafanaFindsItsFiles: every file that Grafana is provisioned with lies where Grafana or another file looks for it, decodes
// strictly, and names what the overlay has. Grafana itself does not run here.
func TestGrafanaFindsItsFiles(t *testing.T) {
	built, err := build(overlay(t, "dev", prepared))
	if err != nil {
		t.Fatal(err)
	}
	files := mounted(t, built, "grafana")
	var sources datasources
	strict(t, files, "/etc/grafana/provisioning/datasources/datasources.yaml", &sources)
	if d := sources.Datasources; sources.APIVersion != 1 || len(d) != 1 || d[0].Type != "prometheus" || d[0].Access != "proxy" || d[0].URL != "http://"+service(t, built, "prometheus") {
		t.Errorf("data sources: %+v, the Service is %s", sources, service(t, built, "prometheus"))
	}
	var from providers
	strict(t, files, "/etc/grafana/provisioning/dashboards/dashboards.yaml", &from)
	if from.APIVersion != 1 || len(from.Providers) != 1 || from.Providers[0].Type != "file" {
		t.Fatalf("providers: %+v", from)
	}
	boards := 0
	for path, text := range files {
		if filepath.Dir(path) != from.Providers[0].Options["path"] {
			continue
		}
		boards++
		var raw json.RawMessage
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		var b dashboard.Dashboard
		if err := b.UnmarshalJSONStrict(raw); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if boards < 3 {
		t.Errorf("%d dashboards lie in %s, where Grafana looks for them", boards, from.Providers[0].Options["path"])
	}
}

// TestAProvisioningFileWithAnotherFieldIsFound: without this the check above could take anything.
func TestAProvisioningFileWithAnotherFieldIsFound(t *testing.T) {
	for _, text := range []string{"datasources: [{name: a, kind: prometheus}]", "apiVersion: one", "providers: []"} {
		if err := yaml.UnmarshalStrict([]byte(text), &datasources{}); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func strict(t *testing.T, files map[string]string, path string, into any) {
	t.Helper()
	text, ok := files[path]
	if !ok {
		t.Fatalf("nothing is mounted at %s", path)
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// decoded is a resource of a build by its kind and name; a name that a generator made ends in a hash.
func decoded(t *testing.T, built resmap.ResMap, kind, name string, into any) {
	t.Helper()
	for _, r := range built.Resources() {
		if r.GetKind() == kind && r.GetName() == name {
			text, err := r.AsYAML()
			if err == nil {
				err = yaml.UnmarshalStrict(text, into)
			}
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
}

// mounted lists the files that a Deployment's first container has from ConfigMaps, by their paths.
func mounted(t *testing.T, built resmap.ResMap, name string) map[string]string {
	t.Helper()
	var d apps.Deployment
	decoded(t, built, "Deployment", name, &d)
	pod, out := d.Spec.Template.Spec, map[string]string{}
	for _, v := range pod.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		var m core.ConfigMap
		decoded(t, built, "ConfigMap", v.ConfigMap.Name, &m)
		for _, at := range pod.Containers[0].VolumeMounts {
			for file, text := range m.Data {
				switch {
				case at.Name != v.Name:
				case at.SubPath == "":
					out[filepath.Join(at.MountPath, file)] = text
				case at.SubPath == file:
					out[at.MountPath] = text
				}
			}
		}
	}
	return out
}

// service is where a Service is reached within its namespace.
func service(t *testing.T, built resmap.ResMap, name string) string {
	t.Helper()
	var s core.Service
	decoded(t, built, "Service", name, &s)
	if len(s.Spec.Ports) != 1 {
		t.Fatalf("Service %s has %d ports", name, len(s.Spec.Ports))
	}
	return fmt.Sprintf("%s:%d", name, s.Spec.Ports[0].Port)
}
