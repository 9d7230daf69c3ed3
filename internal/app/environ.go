package app

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/leeway-video/leeway/internal/cmdline"
)

// loadEnviron sets in config what LEEWAY_<SERVICE>_<KEY> variables say, lists separated by commas. A variable that begins like
// a section's and names no key of it is returned as a warning, not an error: Kubernetes puts variables of that form into
// every pod that lives beside a service called leeway-tracker.
func loadEnviron(environ []string, config *Config) (warnings []string, err error) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		rest, ok := strings.CutPrefix(name, "LEEWAY_")
		if !ok {
			continue
		}
		section, key, ok := strings.Cut(rest, "_")
		if !ok {
			continue
		}
		section, key = strings.ToLower(section), strings.ToLower(key)
		target, err := fieldOf(reflect.ValueOf(config).Elem(), section)
		if err != nil || target.Kind() != reflect.Struct {
			continue // LEEWAY_CHROMIUM_… and the like are not ours
		}
		known := environKeys(target, "")
		field, ok := known[key]
		if !ok {
			names := make([]string, 0, len(known))
			for n := range known {
				names = append(names, n)
			}
			if s := suggestion(key, names); strings.HasPrefix(s, "; did") {
				warnings = append(warnings, fmt.Sprintf("%s sets nothing%s", name, s))
			}
			continue
		}
		if err := setText(field, value); err != nil {
			return warnings, fmt.Errorf("%s=%q: not %s", name, value, kindName(field.Type()))
		}
	}
	return warnings, nil
}

// environKeys maps a section's keys, those of nested sections joined by "_", to their fields.
func environKeys(v reflect.Value, prefix string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for _, f := range fields(v.Type()) {
		inner := v.FieldByIndex(f.index)
		if inner.Kind() == reflect.Struct {
			for k, nested := range environKeys(inner, prefix+f.name+"_") {
				all[k] = nested
			}
			continue
		}
		all[prefix+f.name] = inner
	}
	return all
}

// setText sets v from a text without YAML's own ideas of what a string is: "on" stays "on".
func setText(v reflect.Value, text string) error {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
		return nil
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		list := reflect.MakeSlice(v.Type(), 0, 4)
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = reflect.Append(list, reflect.ValueOf(part).Convert(v.Type().Elem()))
			}
		}
		v.Set(list)
		return nil
	}
	return yaml.Unmarshal([]byte(text), v.Addr().Interface())
}

// file is the configuration's; empty: there is none.
func (r *run) file() string {
	if r.flags.Config != "" {
		return r.flags.Config
	}
	return r.env.Getenv("LEEWAY_CONFIG")
}

// load returns the configuration in force, and a log as it says.
func (r *run) load(flags any) (*Config, *slog.Logger, error) {
	config, warnings, err := r.inForce(flags)
	if err != nil {
		return nil, nil, err
	}
	log, err := newLogger(r.env.Stderr, r.env.Terminal, config.Log)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings {
		log.Warn("environment: " + w)
	}
	return config, log, nil
}

// inForce is the configuration in force: flags over environment over file over defaults. Of a file with mistakes in its form the
// error has those of its values too, so that all are told at once.
func (r *run) inForce(flags any) (config *Config, warnings []string, err error) {
	config = defaults(r.env.Getenv)
	var form problems
	if file := r.file(); file != "" {
		if r.lines, err = loadFile(file, config, r.env); err != nil && (r.lines == nil || !errors.As(err, &form)) {
			return nil, nil, cmdline.Usage(err)
		}
		filed := *config
		r.filed = &filed
	}
	if warnings, err = loadEnviron(r.env.Environ, config); err != nil {
		return nil, nil, cmdline.Usage(err)
	}
	for _, f := range []any{r.flags, flags} {
		if err := overlay(config, f); err != nil {
			return nil, nil, err
		}
	}
	if form != nil {
		return nil, nil, cmdline.Usage(merged(form, r.complaints(config, nil)))
	}
	return config, warnings, nil
}

// merged are problems of form and of values, in the order of the file. A line that cannot be read has no value to complain of.
func merged(form, values problems) problems {
	all := slices.Clone(form)
	for _, v := range values {
		if !slices.ContainsFunc(form, func(f problem) bool { return v.line != 0 && f.line == v.line }) {
			all = append(all, v)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].line < all[j].line })
	return all
}

// service is load for a command that starts one: values that are wrong are an error, too. name is its section of the configuration;
// empty: it reads all of them.
func (r *run) service(name string, flags any) (*Config, *slog.Logger, error) {
	r.env.service, r.serves = name, true
	config, log, err := r.load(flags)
	if err == nil {
		err = r.valid(config)
	}
	return config, log, err
}
