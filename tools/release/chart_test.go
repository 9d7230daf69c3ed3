package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// charted is the chart, unpacked and packed.
func charted(t *testing.T) (files map[string]string, archive string) {
	t.Helper()
	r := release{tree: root, out: t.TempDir(), version: "1.2.3", time: time.Unix(1_700_000_000, 0).UTC()}
	entries, err := r.chartFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, e := range entries {
		files[strings.TrimPrefix(e.name, "leeway/")] = string(e.text)
	}
	archive = filepath.Join(r.out, "leeway-chart-1.2.3.tgz")
	var out bytes.Buffer
	if err := tarred(&out, entries, r.time); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return files, archive
}

// settings are the examples that settings.env gives.
func settings(t *testing.T) map[string]string {
	t.Helper()
	env, err := os.ReadFile(filepath.Join(root, production, "settings.env"))
	if err != nil {
		t.Fatal(err)
	}
	filled := map[string]string{}
	for _, line := range setting.FindAllStringSubmatch(string(env), -1) {
		if line[1] == needed {
			filled[line[2]] = line[3]
		}
	}
	return filled
}

// TestTheChartIsWhole without Helm: templates are templates, no mark is left in them, and no value that has to be said may be missing.
func TestTheChartIsWhole(t *testing.T) {
	files, _ := charted(t)
	known := texttemplate.FuncMap{}
	for _, name := range []string{"include", "required", "toYaml", "indent", "dict", "toJson", "sha256sum", "trunc", "replace"} {
		known[name] = func(...any) string { return "" }
	}
	count := 0
	for name, text := range files {
		if !strings.HasPrefix(name, "templates/") {
			continue
		}
		count++
		if _, err := texttemplate.New(name).Funcs(known).Parse(text); err != nil {
			t.Error(err)
		}
		if strings.Contains(text, "zz-") || strings.Contains(text, "-zz") {
			t.Errorf("%s has a mark left", name)
		}
		if name != "templates/_leeway.tpl" && ownConfigs.MatchString(text) {
			t.Errorf("%s names a ConfigMap of other values", name)
		}
	}
	if count < 40 {
		t.Errorf("only %d templates", count)
	}
	var schemaValue, found map[string]any
	if err := json.Unmarshal([]byte(files["values.schema.json"]), &schemaValue); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values.json", schemaValue); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("values.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(files["values.yaml"]), &found); err != nil {
		t.Fatal(err)
	}
	said, ok := found["settings"].(map[string]any)
	if !ok {
		t.Fatalf("values.yaml has no settings: %v", found)
	}
	filled := settings(t)
	for key := range filled {
		if _, ok := said[key]; !ok {
			t.Errorf("values.yaml has no %s", key)
		}
	}
	for key, value := range filled {
		said[key] = value
	}
	if err := schema.Validate(found); err != nil {
		t.Error(err)
	}
	for key := range filled {
		value := said[key]
		said[key] = ""
		if schema.Validate(found) == nil {
			t.Errorf("%s may be empty", key)
		}
		said[key] = value
	}
	found["setting"] = map[string]any{}
	if schema.Validate(found) == nil {
		t.Error("a misspelt key is taken")
	}
}

// TestHelmRendersWhatKustomizeBuilds, byte for byte, with the same settings, components, namespace and leeway.yaml. LEEWAY_HELM is a
// helm; scripts/release-check builds one.
func TestHelmRendersWhatKustomizeBuilds(t *testing.T) {
	helm := os.Getenv("LEEWAY_HELM")
	if helm == "" {
		t.Skip("LEEWAY_HELM is not set: make release runs this")
	}
	files, archive := charted(t)
	if of := os.Getenv("LEEWAY_CHART"); of != "" {
		archive = of
	}
	lint := exec.Command(helm, "lint", "--strict", "--values", "-", archive)
	lint.Stdin = valuesFile(t, settings(t), nil, "")
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v: %s", err, out)
	}
	odd := settings(t)
	maps.Copy(odd, map[string]string{"ACCESS": "true", "FETCH_BASE": `https://video.example.com/a b?x={{y}}&z=<"1">'`, "LEEWAY_TURN_ANNOUNCE": "203.0.113.9", "IMAGE": "r.example.com:5000/leeway:1"})
	operator := settings(t)
	operator["MONITORING_NAMESPACE"] = "monitoring"
	for name, c := range map[string]struct {
		settings  map[string]string
		turned    []string // components whose choice is turned around
		namespace string
		config    string
	}{
		"as it is":            {settings: settings(t), namespace: "leeway"},
		"odd settings":        {settings: odd, namespace: "leeway"},
		"another namespace":   {settings: settings(t), namespace: "video"},
		"another leeway.yaml": {settings: settings(t), namespace: "leeway", config: "sites: []\n# {{ braces }} & <signs>\n"},
		"a bus of its own":    {settings: settings(t), turned: []string{"nats", "grafana"}, namespace: "leeway"},
		"the operator":        {settings: operator, turned: []string{"prometheus", "prometheus-operator"}, namespace: "leeway"},
		"relay's metrics":     {settings: settings(t), turned: []string{"turn-metrics", "probe", "node-address", "autoscaler"}, namespace: "leeway"},
		"little":              {settings: settings(t), turned: []string{"turn", "prometheus", "grafana", "ingress", "autoscaler", "node-address"}, namespace: "leeway"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := newOverlay(root, t.TempDir(), c.namespace, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(o.at, "leeway.yaml"), []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			names, had, err := o.components()
			if err != nil {
				t.Fatal(err)
			}
			for _, component := range c.turned {
				had[component] = !had[component]
			}
			want, err := o.build(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !had[name] }))
			if err != nil {
				t.Fatal(err)
			}
			render := exec.Command(helm, "template", "leeway", archive, "--namespace", c.namespace, "--values", "-", "--api-versions", "monitoring.coreos.com/v1")
			render.Stdin = valuesFile(t, c.settings, had, c.config)
			var said bytes.Buffer
			render.Stderr = &said
			text, err := render.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			got := rendered(string(text))
			for _, d := range want {
				if !slices.Contains(got, strings.TrimSpace(d.text)) {
					t.Errorf("%s %s is not what kustomize builds", d.kind, d.name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d documents of Helm, %d of kustomize", len(got), len(want))
			}
		})
	}
	if len(files) == 0 {
		t.Error("the chart is empty")
	}
}

// rendered are the documents without the line that says where Helm has each from.
func rendered(text string) []string {
	var documents []string
	for _, part := range strings.Split("\n"+text, "\n---\n# Source: ")[1:] {
		_, body, _ := strings.Cut(part, "\n")
		documents = append(documents, strings.TrimSpace(body))
	}
	return documents
}

func valuesFile(t *testing.T, settings map[string]string, components map[string]bool, config string) *bytes.Reader {
	t.Helper()
	values := map[string]any{"settings": settings}
	if components != nil {
		values["components"] = components
	}
	if config != "" {
		values["config"] = config
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(text)
}
