package app

import (
	"fmt"
	"reflect"
	"strings"
)

// overlay sets the keys of config that the given flags name in their `key` tag. Nil flags leave their key alone.
func overlay(config *Config, flags any) error {
	v := reflect.Indirect(reflect.ValueOf(flags))
	for i := range v.NumField() {
		key, ok := v.Type().Field(i).Tag.Lookup("key")
		if !ok || v.Field(i).IsNil() {
			continue
		}
		field, err := fieldOf(reflect.ValueOf(config).Elem(), key)
		if err != nil {
			return fmt.Errorf("app: flag %s: %w", v.Type().Field(i).Name, err)
		}
		// Lists are no pointers: a flag that is repeated would keep its last value only.
		if given := v.Field(i); given.Kind() == reflect.Slice {
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
