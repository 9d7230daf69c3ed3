package app

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
)

// meanings are the comments of the configuration's structs and fields, by "package.Type.Field" and "package.Type". A test writes the
// file from the source and fails where it is old.
//
//go:embed meanings.json
var meaningsText []byte

// sinceText has the keys by the version that they came with. A test adds those that are new, with the version that is being made.
//
//go:embed since.json
var sinceText []byte

// keyDoc is one key of the configuration, as the reference has it.
type keyDoc struct {
	Key     string `json:"key"` // dotted; [] behind a list of sections
	Type    string `json:"type"`
	Unit    string `json:"unit,omitempty"`
	Default string `json:"default,omitempty"`
	Meaning string `json:"meaning"`
	Since   string `json:"since"`                 // version that the key came with
	Environ string `json:"environment,omitempty"` // variable that sets it
	Secret  bool   `json:"secret,omitempty"`
}

// reference lists every key, in the order of the structs.
func reference() ([]keyDoc, error) {
	var meanings map[string]string
	if err := json.Unmarshal(meaningsText, &meanings); err != nil {
		return nil, fmt.Errorf("config reference: %w", err)
	}
	since, err := keyVersions(sinceText)
	if err != nil {
		return nil, fmt.Errorf("config reference: %w", err)
	}
	config := defaults(func(name string) string { return map[string]string{"HOME": "~"}[name] })
	keys := described("", reflect.ValueOf(config).Elem(), meanings)
	for i, k := range keys {
		keys[i].Since = since[k.Key]
	}
	return keys, nil
}

// keyVersions reads what since.json says, by keys.
func keyVersions(text []byte) (map[string]string, error) {
	var keys map[string][]string
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	by := map[string]string{}
	for version, those := range keys {
		for _, key := range those {
			if other, twice := by[key]; twice {
				return nil, fmt.Errorf("%s came with %s and with %s", key, other, version)
			}
			by[key] = version
		}
	}
	return by, nil
}

// keyDefault says of a flag what its key is by default.
func keyDefault() func(*kong.Value) string {
	keys := sync.OnceValue(func() map[string]string {
		byKey := map[string]string{}
		found, _ := reference() // meanings.json is held to its form by a test
		for _, key := range found {
			byKey[key.Key] = key.Default
		}
		return byKey
	})
	return func(v *kong.Value) string {
		key := v.Tag.Get("key")
		if key == "" {
			return ""
		}
		return keys()[join(v.Tag.Vars["section"], key)]
	}
}

// described lists the keys of a section, those of sections in it behind its own.
func described(prefix string, v reflect.Value, meanings map[string]string) (own []keyDoc) {
	t := v.Type()
	var below []keyDoc
	for _, f := range fields(t) {
		key, inner := join(prefix, f.name), v.FieldByIndex(f.index)
		switch {
		case f.kind.Kind() == reflect.Struct:
			below = append(below, described(key, inner, meanings)...)
		case f.kind.Kind() == reflect.Slice && f.kind.Elem().Kind() == reflect.Struct:
			item := reflect.New(f.kind.Elem()).Elem()
			preset(item)
			below = append(below, described(key+"[]", item, meanings)...)
		default:
			own = append(own, keyDoc{
				Key: key, Type: typeName(f.kind), Unit: unitOf(key, f.kind), Default: defaultOf(inner), Secret: f.secret, Environ: variableOf(key),
				Meaning: meanings[f.owner.String()+"."+t.FieldByIndex(f.index).Name],
			})
		}
	}
	return append(own, below...)
}

// variableOf is the variable of the environment that sets a key; empty: none does.
func variableOf(key string) string {
	section, rest, below := strings.Cut(key, ".")
	if !below || strings.Contains(key, "[]") {
		return ""
	}
	return "LEEWAY_" + strings.ToUpper(section+"_"+strings.ReplaceAll(rest, ".", "_"))
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "time"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "whole number"
}

// unitOf is the unit of a number, which its name says.
func unitOf(key string, t reflect.Type) string {
	name := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "with a unit: 250ms, 10s, 5m, 24h"
	case t.Kind() != reflect.Int && t.Kind() != reflect.Int64 && t.Kind() != reflect.Float64:
		return ""
	case name == "daily_bytes":
		return "bytes a day"
	case strings.HasSuffix(name, "_bytes"), name == "warm_up":
		return "bytes"
	case strings.HasSuffix(name, "rate"):
		return "bytes per second"
	case strings.HasSuffix(name, "_permille"):
		return "of a thousand"
	case strings.HasSuffix(name, "_kbps"):
		return "kbit/s"
	case strings.HasPrefix(name, "port_"):
		return "port"
	case strings.HasSuffix(name, "_per_second"):
		return strings.TrimSuffix(name, "_per_second") + " per second"
	case strings.HasSuffix(name, "_per_hour"):
		return strings.TrimSuffix(name, "_per_hour") + " per hour"
	case strings.HasSuffix(name, "_factor"):
		return "times"
	}
	named := map[string]string{
		"max_per_address": "of one address", "max_per_subject": "sessions", "max_per_user": "allocations", "look_ahead": "segments", "certify_from": "viewers", "min_viewers": "viewers", "drop": "path elements",
	}
	if unit, is := named[name]; is {
		return unit
	}
	return strings.TrimPrefix(name, "max_")
}

func defaultOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice:
		return ""
	case v.Type() == reflect.TypeFor[time.Duration]():
		return shortTime(v.Interface().(time.Duration))
	}
	return fmt.Sprint(v.Interface())
}

// shortTime leaves out what is zero: 10m and not 10m0s.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
