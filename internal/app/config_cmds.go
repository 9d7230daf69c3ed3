package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/site"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Print what is wrong with a configuration file, one sentence for each problem."`
	Print configPrintCmd `cmd:"" help:"Print the configuration in force, without secrets."`

	Reference configReferenceCmd `cmd:"" help:"Print every key with its type, default and meaning."`
	Schema    configSchemaCmd    `cmd:"" help:"Print a JSON Schema of the file, for editors."`
}

type configCheckCmd struct {
	File string   `arg:"" help:"Configuration file, or one that up --site takes."`
	For  []string `help:"Services that are to start with it: ${enum}. By default what its sections are of." enum:"tracker,seed,turn,probe,origin,up" placeholder:"SERVICE"`
	JSON bool     `name:"json" help:"Print one JSON object."`
}

// Help is shown below the usage.
func (configCheckCmd) Help() string {
	return `Says all that is wrong at once, with file, line and key: what cannot be read, values that are none, and what the services would refuse at their
start, but for certificates and keys in files of their own. A file with a section up is taken for one of leeway up. Exits with 0 when the
file is fine, with 2 when it is not.

Examples:
  leeway config check leeway.yaml
  leeway config check --for tracker,seed leeway.yaml
  leeway config check --json leeway.yaml`
}

// Run checks the file alone: neither flags nor LEEWAY_ variables can mend it. What it refers to by ${NAME} has to be set.
func (c configCheckCmd) Run(r *run) error {
	config := defaults(r.env.Getenv)
	lines, err := loadFile(c.File, config, r.env)
	sites := len(config.Sites)
	if c.holdsOneSite(r.env) {
		_, err = loadSite(c.File, r.env)
		sites = 1
	} else {
		err = located(c.File, config, lines, err, c.For)
	}
	var found problems
	if err != nil && !errors.As(err, &found) {
		return err
	}
	if c.JSON {
		if err := printProblems(r, c.File, sites, found); err != nil {
			return err
		}
	}
	if found != nil {
		for _, p := range found {
			if !c.JSON {
				fmt.Fprintln(r.env.Stdout, p.Error())
			}
		}
		return cmdline.Usage(fmt.Errorf("config check: %s has %d %s", c.File, len(found), plural(len(found), "problem")))
	}
	if c.JSON {
		return nil
	}
	_, err = fmt.Fprintf(r.env.Stdout, "%s: ok, %d %s\n", c.File, sites, plural(sites, "site"))
	return err
}

// printProblems prints what was found for programs.
func printProblems(r *run, file string, sites int, found problems) error {
	type one struct {
		Line int    `json:"line"` // 0: the file as a whole
		Text string `json:"text"`
	}
	list := []one{}
	for _, p := range found {
		list = append(list, one{p.line, p.text})
	}
	return printJSON(r, map[string]any{"file": file, "ok": len(found) == 0, "sites": sites, "problems": list})
}

// holdsOneSite tells a file for up --site from a configuration, which has no name at its top.
func (c configCheckCmd) holdsOneSite(env Env) bool {
	var one site.Config
	lines, _ := loadFile(c.File, &one, env)
	return lines["name"] != 0
}

// located is what is wrong with the form of a file (err), and with its values, as problems with lines; nil: nothing.
func located(file string, config *Config, lines map[string]int, err error, services []string) error {
	var form, values problems
	if err != nil && (lines == nil || !errors.As(err, &form)) {
		return err
	}
	if services == nil {
		services = servicesOf(lines)
	}
	for _, p := range check(config, services) {
		values = append(values, problem{file, lineOfKey(lines, p.key), p.key + ": " + p.text})
	}
	if form = merged(form, values); form == nil {
		return nil
	}
	return form
}

// parent is the key of the section or list that key is in.
func parent(key string) string { return key[:max(0, strings.LastIndexAny(key, ".["))] }

type configPrintCmd struct{}

// Help is shown below the usage.
func (configPrintCmd) Help() string {
	return "Flags win over LEEWAY_<SERVICE>_<KEY> variables, these over the file, this over defaults.\n\nExamples:\n  leeway config print\n  leeway --config leeway.yaml config print\n  LEEWAY_UP_LISTEN=127.0.0.1:9000 leeway config print"
}

// Run prints what a service would start with.
func (c configPrintCmd) Run(_ context.Context, r *run) error {
	config, _, err := r.load(&struct{}{})
	if err != nil {
		return err
	}
	wrong := r.valid(config) // before its secrets are replaced by what is none
	redact(reflect.ValueOf(config).Elem())
	text, err := yaml.MarshalWithOptions(config, yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("config print: %w", err)
	}
	if _, err := r.env.Stdout.Write(text); err != nil {
		return err
	}
	return wrong
}

const redacted = "(secret)"

// redact replaces the values of fields tagged as secret, and passwords inside URLs.
func redact(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			inner := v.FieldByIndex(f.index)
			if f.secret {
				conceal(inner)
				continue
			}
			redact(inner)
		}
	case reflect.Slice:
		for i := range v.Len() {
			redact(v.Index(i))
		}
	case reflect.String:
		if u, err := url.Parse(v.String()); err == nil && u.User != nil {
			v.SetString(u.Redacted())
		}
	}
}

// conceal replaces a secret, or each of a list of them, that is there.
func conceal(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String && v.String() != "":
		v.SetString(redacted)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			conceal(v.Index(i))
		}
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
