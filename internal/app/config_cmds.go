package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"sort"

	"github.com/goccy/go-yaml"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/site"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Print what is wrong with a configuration file, one sentence for each problem."`
	Print configPrintCmd `cmd:"" help:"Print the configuration in force, without secrets."`
}

type configCheckCmd struct {
	File string `arg:"" help:"Configuration file, or one that up --site takes."`
}

// Help is shown below the usage.
func (configCheckCmd) Help() string {
	return "Exits with 0 when the file is fine, with 2 when it is not.\n\nExamples:\n  leeway config check leeway.yaml"
}

// Run checks the file alone: neither flags nor LEEWAY_ variables can mend it. What it refers to by ${NAME} has to be set.
func (c configCheckCmd) Run(r *run) error {
	config := defaults(r.env.Getenv)
	lines, err := loadFile(c.File, config, r.env)
	sites := len(config.Sites)
	switch {
	case err == nil:
		err = r.located(c.File, config, lines)
	case c.holdsOneSite(r.env):
		_, err = loadSite(c.File, r.env)
		sites = 1
	}
	var found problems
	if errors.As(err, &found) {
		for _, p := range found {
			fmt.Fprintln(r.env.Stdout, p.Error())
		}
		return cmdline.Usage(fmt.Errorf("config check: %s has %d %s", c.File, len(found), plural(len(found), "problem")))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.env.Stdout, "%s: ok, %d %s\n", c.File, sites, plural(sites, "site"))
	return err
}

// holdsOneSite tells a file for up --site from a configuration, which has no name at its top.
func (c configCheckCmd) holdsOneSite(env Env) bool {
	var one site.Config
	lines, _ := loadFile(c.File, &one, env)
	return lines["name"] != 0
}

// located turns what check found into problems with lines of the file.
func (r *run) located(file string, config *Config, lines map[string]int) error {
	var found problems
	for _, p := range check(config) {
		key := p.key
		for lines[key] == 0 && key != "" {
			key = parent(key)
		}
		found = append(found, problem{file, lines[key], p.key + ": " + p.text})
	}
	if found == nil {
		return nil
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].line < found[j].line })
	return found
}

// parent is the key of the section or list that key is in.
func parent(key string) string {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '.' || key[i] == '[' {
			return key[:i]
		}
	}
	return ""
}

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
	wrong := r.env.valid(config) // before its secrets are replaced by what is none
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
