package signal

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/leeway-video/leeway/internal/wire/jsonscan"
)

// FuzzSplit: what is taken apart here is what encoding/json makes of it.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[1,{"c":"]}\""}],"a":"\\"} `, `{"\u0061":"\ud83d\ude00\ud800x\/\b\f\n\r\t\"\\","":null,"d":-1.5e+3,"e":true}`,
		`[1, "two" ,[3],{"four":4},null]`, `[]`, `"x"`, `7`, `{"a":{"a":{"a":[]}}}`, "{\"k\":\"\x7f\u2028é\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if deep := jsonscan.New(b); !json.Valid(b) || !utf8.Valid(b) || !deep.Skip() {
			return
		}
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(b, &want) == nil && want != nil
		got, ok := split(b)
		if ok != isObject {
			t.Fatalf("%q: an object: %v", b, ok)
		}
		for name, v := range want {
			if mine, ok := got.get(name); !ok || string(mine) != string(v) {
				t.Errorf("%q: %q is %q, want %q", b, name, mine, v)
			}
		}
		for _, m := range got {
			if _, ok := want[m.name]; !ok {
				t.Errorf("%q has no %q, only %q", b, m.name, slices.Collect(maps.Keys(want)))
			}
		}
		values := slices.Collect(maps.Values(want))
		var list []json.RawMessage
		if raw := trimmed(b); json.Unmarshal(b, &list) == nil && list != nil {
			all, ok := elements(raw)
			if !ok || !slices.EqualFunc(all, list, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
				t.Errorf("%q: elements %q, want %q", b, all, list)
			}
			values = append(values, list...)
		}
		for _, v := range append(values, trimmed(b)) {
			var s string
			if v[0] == '"' && json.Unmarshal(v, &s) == nil && unquote(v) != s {
				t.Errorf("%q says %q, want %q", v, unquote(v), s)
			}
		}
	})
}

func trimmed(b []byte) json.RawMessage {
	var raw json.RawMessage
	_ = json.Unmarshal(b, &raw)
	return raw
}
