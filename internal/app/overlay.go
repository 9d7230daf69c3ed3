package app

import (
	"fmt"
	"reflect"
	"strings"
)

// overlay sets the keys of config that the given flags name in their `key` tag. Nil flags leave their key alone. Flags that several
// commands have are in a struct that each embeds with `set:"section=NAME"`: the keys are of that section.
func overlay(config *Config, flags any) error {
	return overlaySection(reflect.ValueOf(config).Elem(), reflect.Indirect(reflect.ValueOf(flags)), "")
}

func overlaySection(config, flags reflect.Value, section string) error {
	for i := range flags.NumField() {
		f, given := flags.Type().Field(i), flags.Field(i)
		if name, ok := strings.CutPrefix(f.Tag.Get("set"), "section="); ok {
			if err := overlaySection(config, given, name); err != nil {
				return err
			}
			continue
		}
		key, ok := f.Tag.Lookup("key")
		if !ok || given.IsNil() {
			continue
		}
		field, err := fieldOf(config, join(section, key))
		if err != nil {
			return fmt.Errorf("app: flag %s: %w", f.Name, err)
		}
		// Lists are no pointers: a flag that is repeated would keep its last value only.
		if given.Kind() == reflect.Slice {
			field.Set(given)
		} else {
			field.Set(given.Elem())
		}
	}
	return nil
}

// fieldOf follows a dotted key through the yaml names of v's fields.
func fieldOf(v reflect.Value, key string) (reflect.Value, error) {
	for name := range strings.SplitSeq(key, ".") {
		found := reflect.Value{}
		for _, f := range fields(v.Type()) {
			if f.name == name {
				found = v.FieldByIndex(f.index)
			}
		}
		if !found.IsValid() {
			return reflect.Value{}, fmt.Errorf("no key %q in %q", name, key)
		}
		v = found
	}
	return v, nil
}

// field is one key of a section.
type field struct {
	name   string
	index  []int
	kind   reflect.Type
	owner  reflect.Type // the struct that declares it
	secret bool
}

// fields lists a struct's keys in order, those of inlined structs in place.
func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if options == "inline" {
			for _, inner := range fields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		all = append(all, field{name: name, index: []int{i}, kind: f.Type, owner: t, secret: f.Tag.Get("secret") == "true"})
	}
	return all
}
