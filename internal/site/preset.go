package site

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// presets are schemes by which CDNs sign URLs: what of a URL is theirs and selects no content (spec/site.md, "Presets").
var presets = map[string]KeyRule{
	"akamai": {
		IgnoreQuery: []string{"hdnts", "hdnea", "hdntl", "__token__"},
		IgnorePath:  []string{"hdnts=*", "hdnea=*", "hdntl=*"},
	},
	"bunny": {
		IgnoreQuery: []string{"token", "expires", "token_path", "token_countries", "token_countries_blocked", "token_ignore_params", "limit"},
		IgnorePath:  []string{"bcdn_token=*"},
	},
	"cloudflare": {IgnoreQuery: []string{"verify"}},
	"cloudfront": {IgnoreQuery: []string{"Expires", "Signature", "Key-Pair-Id", "Policy", "Hash-Algorithm"}},
	"fastly":     {IgnoreQuery: []string{"token"}},
	"gcs":        {IgnoreQuery: []string{"X-Goog-*"}},
	"nginx":      {IgnoreQuery: []string{"md5", "expires"}},
	"s3":         {IgnoreQuery: []string{"X-Amz-*"}},
}

// expand appends what the presets stand for. Names that it does not know stay for checkPresets.
func (k *KeyRule) expand() {
	for _, name := range k.Presets {
		p := presets[name]
		k.IgnoreQuery = join(k.IgnoreQuery, p.IgnoreQuery)
		k.IgnorePath = join(k.IgnorePath, p.IgnorePath)
	}
}

// join appends what a list does not have yet.
func join(list, more []string) []string {
	for _, name := range more {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func (c *Config) checkPresets() *FieldError {
	for i, name := range c.Key.Presets {
		path := fmt.Sprintf("key.presets[%d]", i)
		if _, known := presets[name]; !known {
			return wrong(path, "one of "+strings.Join(slices.Sorted(maps.Keys(presets)), ", ")+"; for another scheme list its parameters in key.ignore_query", "%q is no preset", name)
		}
		if slices.Contains(c.Key.Presets[:i], name) {
			return wrong(path, "leave one of them out", "%q is listed twice", name)
		}
	}
	return nil
}

// PresetsOf names the presets that ignore every one of these query parameters, for advice to operators.
func PresetsOf(parameters []string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(presets)) {
		ignored := namesOf(presets[name].IgnoreQuery)
		if len(parameters) > 0 && !slices.ContainsFunc(parameters, func(p string) bool { return !ignored.has(p) }) {
			list = append(list, name)
		}
	}
	return list
}
