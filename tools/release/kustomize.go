package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// production is the overlay that the chart says the same as.
const production = "deploy/k8s/overlays/production"

// overlay is a copy of the production overlay, without its Secrets: a chart's values are kept by the cluster in clear, so Secrets are
// made beside it, under the names without a digest.
type overlay struct {
	at         string // its folder
	kustomized map[string]any
	built      map[string][]document // by what it was built with
}

// document is a resource as kustomize writes it.
type document struct{ kind, name, text string }

// id is the same whatever a ConfigMap holds.
func (d document) id() string { return d.kind + " " + digested.ReplaceAllString(d.name, "") }

// digested is what kustomize puts behind the name of a ConfigMap that it makes.
var digested = regexp.MustCompile(`-[bcdfghkmt2456789]{10}$`)

// newOverlay copies the overlay below dir, with the given settings and namespace.
func newOverlay(tree, dir, namespace string, settings map[string]string) (*overlay, error) {
	for _, part := range []string{"deploy/k8s", "dashboards", "alerts"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(tree, part))); err != nil {
			return nil, err
		}
	}
	o := &overlay{at: filepath.Join(dir, production), built: map[string][]document{}}
	text, err := os.ReadFile(filepath.Join(o.at, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &o.kustomized); err != nil {
		return nil, err
	}
	delete(o.kustomized, "secretGenerator")
	o.kustomized["namespace"] = namespace
	var lines strings.Builder
	for key, value := range settings {
		fmt.Fprintf(&lines, "%s=%s\n", key, value)
	}
	return o, os.WriteFile(filepath.Join(o.at, "settings.env"), []byte(lines.String()), 0o600)
}

// components are those that there are, and which of them the overlay has, in the order that they are applied in.
func (o *overlay) components() (names []string, had map[string]bool, err error) {
	had = map[string]bool{}
	list, ok := o.kustomized["components"].([]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s has no components", production)
	}
	for _, path := range list {
		name := filepath.Base(fmt.Sprint(path))
		names, had[name] = append(names, name), true
	}
	more, err := fs.ReadDir(os.DirFS(filepath.Join(o.at, "../../components")), ".")
	for _, folder := range more {
		if !had[folder.Name()] && folder.Name() != "origin" { // a film to try it with, whose image is not in a release
			names = append(names, folder.Name())
		}
	}
	return names, had, err
}

// build is what kustomize makes of the overlay with these components.
func (o *overlay) build(components []string) ([]document, error) {
	key := strings.Join(components, " ")
	if found, ok := o.built[key]; ok {
		return found, nil
	}
	paths := make([]string, 0, len(components))
	for _, name := range components {
		paths = append(paths, "../../components/"+name)
	}
	o.kustomized["components"] = paths
	text, err := yaml.Marshal(o.kustomized)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(o.at, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), o.at)
	if err != nil {
		return nil, fmt.Errorf("build %s with %s: %w", production, key, err)
	}
	var documents []document
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		if r.GetKind() == "Namespace" { // is there before the release is, with its Secrets
			continue
		}
		documents = append(documents, document{r.GetKind(), r.GetName(), string(text)})
	}
	o.built[key] = documents
	return documents, nil
}

// find returns the document of an id.
func find(documents []document, id string) (document, bool) {
	i := slices.IndexFunc(documents, func(d document) bool { return d.id() == id })
	if i < 0 {
		return document{}, false
	}
	return documents[i], true
}
