package app

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/site"
)

type configReferenceCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
}

// Help is shown below the usage.
func (configReferenceCmd) Help() string {
	return "Examples:\n  leeway config reference | less\n  leeway config reference --json | jq -r '.[].key'"
}

// Run prints the reference.
func (c configReferenceCmd) Run(r *run) error {
	keys, err := reference()
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(r, keys)
	}
	_, err = fmt.Fprint(r.env.Stdout, referencePage(keys))
	return err
}

// referencePage is docs/operations/config.md.
func referencePage(keys []keyDoc) string {
	var b strings.Builder
	b.WriteString(`# Every key of the configuration

[Operations](../operations.md)

<!-- Written by go test ./internal/app -run Reference -update, from the structs and their comments. -->

One YAML file serves all services ([start](start.md#configuration)). A key with a variable can be set by it too; lists have commas there. The column *since* has the version of Leeway that a key came with. Keys of sites are explained in [spec/site.md](../../spec/site.md). An editor that knows JSON Schema checks and completes the file by ` + "`leeway config schema > leeway.schema.json`" + `; with yaml-language-server, the file begins with ` + "`# yaml-language-server: $schema=leeway.schema.json`" + `. This page is what ` + "`leeway config reference`" + ` prints.
`)
	section := ""
	for _, k := range keys {
		parts := strings.Split(k.Key, ".")
		if head := strings.Join(parts[:len(parts)-1], "."); head != section {
			section = head
			fmt.Fprintf(&b, "\n## `%s`\n\n| key | type | default | since | meaning |\n|---|---|---|---|---|\n", head)
		}
		kind := k.Type
		if k.Unit != "" && k.Type != "time" {
			kind += ", " + k.Unit
		}
		if k.Secret {
			kind += ", secret"
		}
		given := ""
		if k.Default != "" {
			given = "`" + k.Default + "`"
		}
		meaning := strings.ReplaceAll(k.Meaning, "|", `\|`)
		if k.Environ != "" {
			meaning += " · `" + k.Environ + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", parts[len(parts)-1], kind, given, k.Since, meaning)
	}
	return b.String()
}

type configSchemaCmd struct{}

// Help is shown below the usage.
func (configSchemaCmd) Help() string {
	return "Examples:\n  leeway config schema > leeway.schema.json     # then begin leeway.yaml with: # yaml-language-server: $schema=leeway.schema.json"
}

// Run prints the schema.
func (configSchemaCmd) Run(r *run) error {
	schema, err := configSchema()
	if err != nil {
		return err
	}
	return printJSON(r, schema)
}

// configSchema is a JSON Schema (draft 2020-12) of the configuration.
func configSchema() (map[string]any, error) {
	keys, err := reference()
	if err != nil {
		return nil, err
	}
	s := schemaWriter{docs: map[string]keyDoc{}, choices: map[string][]string{}}
	for _, k := range keys {
		s.docs[k.Key] = k
	}
	for _, c := range choices(&Config{}) {
		s.choices[c.key] = c.of
	}
	for _, c := range new(site.Config).Choices() {
		s.choices["sites[]."+c.Key] = c.Of
	}
	schema := s.object("", reflect.TypeFor[Config]())
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Configuration of Leeway"
	return schema, nil
}

type schemaWriter struct {
	docs    map[string]keyDoc
	choices map[string][]string
}

func (s schemaWriter) object(key string, t reflect.Type) map[string]any {
	properties := map[string]any{}
	for _, f := range fields(t) {
		properties[f.name] = s.value(join(key, f.name), f.kind)
	}
	return map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

func (s schemaWriter) value(key string, t reflect.Type) map[string]any {
	if t.Kind() == reflect.Struct {
		return s.object(key, t)
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return map[string]any{"type": []string{"array", "null"}, "items": s.object(key+"[]", t.Elem())}
	}
	one := s.plain(t)
	d := s.docs[key]
	if one["description"] = d.Meaning; d.Unit != "" {
		one["description"] = d.Meaning + " (" + d.Unit + ")"
	}
	if of := s.choices[key]; of != nil {
		one["anyOf"] = []any{map[string]any{"enum": of}, map[string]any{"pattern": `^$|\$\{`}} // a text may be the environment's
	}
	return one
}

func (s schemaWriter) plain(t reflect.Type) map[string]any {
	kinds := map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Float64: "number", reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer"}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": []string{"string", "null"}, "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": s.plain(t.Elem())}
	}
	return map[string]any{"type": []string{kinds[t.Kind()], "null"}}
}
