package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// chart writes the Helm chart: the documents that kustomize makes of the production overlay, in which settings, namespace and what depends
// on them are filled in by Helm. Where a document depends on a component, Helm chooses between what kustomize makes with and without it.
func (r release) chart() (err error) {
	dir, err := os.MkdirTemp("", "leeway-chart")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	entries, err := r.chartFiles(dir)
	if err != nil {
		return err
	}
	return write(filepath.Join(r.out, "leeway-chart-"+r.version+".tgz"), func(w io.Writer) error { return tarred(w, entries, r.time) })
}

// setting is a line of settings.env.
var setting = regexp.MustCompile(`(?m)^(#|# )([A-Z_]+)=(.*)$`)

const (
	namespaceMark = "zz-namespace-zz"
	needed        = "#" // before a setting that has to be filled in
)

func (r release) chartFiles(dir string) ([]entry, error) {
	env, err := os.ReadFile(filepath.Join(r.tree, production, "settings.env"))
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(r.tree, production, "leeway.yaml"))
	if err != nil {
		return nil, err
	}
	marks := map[string]string{}
	var required []string
	for _, line := range setting.FindAllStringSubmatch(string(env), -1) {
		marks[line[2]] = "zz-" + line[2] + "-zz"
		if line[1] == needed {
			required = append(required, line[2])
		}
	}
	o, err := newOverlay(r.tree, dir, namespaceMark, marks)
	if err != nil {
		return nil, err
	}
	names, had, err := o.components()
	if err != nil {
		return nil, err
	}
	templates, err := o.templates(names, had)
	if err != nil {
		return nil, err
	}
	schema, err := valuesSchema(required, names)
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"Chart.yaml":            fmt.Sprintf(chartYAML, r.version),
		"values.yaml":           values(string(env), string(config), names, had),
		"values.schema.json":    schema,
		"templates/_leeway.tpl": helpers,
		"templates/NOTES.txt":   notes,
		"README.md":             chartReadme,
	}
	maps.Copy(files, templates)
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, entry{"leeway/" + name, 0o644, []byte(files[name])})
	}
	for from, to := range map[string]string{"LICENSE": "LICENSE", "deploy/k8s/secrets": "secrets", "deploy/k8s/base/namespace.yaml": "namespace.yaml"} {
		text, err := os.ReadFile(filepath.Join(r.tree, from))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{"leeway/" + to, 0o644, text})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// templates are the documents, a file each. A component matters to a document that is another one, or none, with the component's choice
// turned around.
func (o *overlay) templates(names []string, had map[string]bool) (map[string]string, error) {
	with := func(choice map[string]bool) ([]document, error) {
		return o.build(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !choice[name] }))
	}
	usual, err := with(had)
	if err != nil {
		return nil, err
	}
	matters := map[string][]string{}
	for _, d := range usual {
		matters[d.id()] = nil
	}
	for _, name := range names {
		turned := maps.Clone(had)
		turned[name] = !had[name]
		other, err := with(turned)
		if err != nil {
			return nil, err
		}
		for _, d := range slices.Concat(usual, other) {
			one, _ := find(usual, d.id())
			another, _ := find(other, d.id())
			if one != another && !slices.Contains(matters[d.id()], name) {
				matters[d.id()] = append(matters[d.id()], name)
			}
		}
	}
	var choose func(id string, choice map[string]bool, left []string) (string, error)
	choose = func(id string, choice map[string]bool, left []string) (string, error) {
		if len(left) == 0 {
			documents, err := with(choice)
			if err != nil {
				return "", err
			}
			d, _ := find(documents, id)
			return template(d), nil
		}
		on, off := maps.Clone(choice), maps.Clone(choice)
		on[left[0]], off[left[0]] = true, false
		there, err := choose(id, on, left[1:])
		if err != nil {
			return "", err
		}
		away, err := choose(id, off, left[1:])
		if err != nil {
			return "", err
		}
		condition := fmt.Sprintf("(index .Values.components %q)", left[0])
		switch {
		case there == away:
			return there, nil
		case away == "":
			return "{{- if " + condition + " }}\n" + there + "{{- end }}\n", nil
		case there == "":
			return "{{- if not " + condition + " }}\n" + away + "{{- end }}\n", nil
		}
		return "{{- if " + condition + " }}\n" + there + "{{- else }}\n" + away + "{{- end }}\n", nil
	}
	files := map[string]string{}
	for id, of := range matters {
		text, err := choose(id, had, of)
		if err != nil {
			return nil, err
		}
		files["templates/"+strings.ToLower(strings.ReplaceAll(id, " ", "-"))+".yaml"] = text
	}
	return files, nil
}

var (
	mark       = regexp.MustCompile(`zz-([A-Z_]+)-zz`)
	ownConfigs = regexp.MustCompile(`\bleeway-(settings|config)-[bcdfghkmt2456789]{10}\b`)
	dataOf     = regexp.MustCompile(`(?s)(\ndata:\n).*?(\nkind: )`)
)

// template is a document with what Helm fills in.
func template(d document) string {
	if d.text == "" {
		return ""
	}
	text := strings.ReplaceAll(d.text, "{{", `{{ "{{" }}`)
	switch d.id() {
	case "ConfigMap leeway-settings":
		text = dataOf.ReplaceAllString(text, "${1}{{ .Values.settings | toYaml | indent 2 }}${2}")
	case "ConfigMap leeway-config":
		text = dataOf.ReplaceAllString(text, `${1}{{ dict "leeway.yaml" .Values.config | toYaml | indent 2 }}${2}`)
	}
	text = ownConfigs.ReplaceAllString(text, `{{ include "leeway.$1" . }}`)
	text = mark.ReplaceAllString(text, `{{ required "settings.$1 is missing" .Values.settings.$1 | toYaml }}`)
	return strings.ReplaceAll(text, namespaceMark, "{{ .Release.Namespace }}")
}

// values are the settings with their comments, the components and leeway.yaml.
func values(env, config string, names []string, had map[string]bool) string {
	var out strings.Builder
	out.WriteString("# What settings.env of the production overlay holds. A setting that is empty has to be filled in.\nsettings:\n")
	_, body, _ := strings.Cut(env, "\n")
	for line := range strings.Lines(strings.TrimSpace(body) + "\n") {
		line = strings.TrimSuffix(line, "\n")
		found := setting.FindStringSubmatch(line)
		switch {
		case line == "":
			out.WriteString("\n")
		case found == nil:
			out.WriteString("  " + line + "\n")
		case found[1] == needed:
			fmt.Fprintf(&out, "  %s: \"\" # such as %s\n", found[2], found[3])
		default:
			fmt.Fprintf(&out, "  # %s: %s\n", found[2], found[3])
		}
	}
	out.WriteString("\n# What is installed; docs/operations/kubernetes.md says what each brings.\ncomponents:\n")
	for _, name := range names {
		fmt.Fprintf(&out, "  %s: %t\n", name, had[name])
	}
	out.WriteString("\n# leeway.yaml\nconfig: |\n")
	for line := range strings.Lines(config) {
		out.WriteString("  " + line)
	}
	return out.String()
}

// valuesSchema has Helm refuse values that would install something else.
func valuesSchema(required, names []string) (string, error) {
	components := map[string]any{}
	for _, name := range names {
		components[name] = map[string]any{"type": "boolean"}
	}
	filled := map[string]any{}
	for _, name := range required {
		filled[name] = map[string]any{"type": "string", "minLength": 1}
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"required": []string{"settings", "components", "config"},
		"properties": map[string]any{
			"settings":   map[string]any{"type": "object", "required": required, "properties": filled, "additionalProperties": map[string]any{"type": "string"}},
			"components": map[string]any{"type": "object", "properties": components, "additionalProperties": false},
			"config":     map[string]any{"type": "string", "minLength": 1},
			"global":     map[string]any{"type": "object"},
		},
		"additionalProperties": false,
	}, "", "  ")
	return string(text) + "\n", err
}
