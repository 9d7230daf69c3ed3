package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
)

// deeper counts brackets outside strings.
func deeper(b []byte) bool {
	depth, inside, escaped := 0, false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inside:
			escaped = c == '\\'
			inside = c != '"'
		case c == '"':
			inside = true
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// FuzzCheck: what is found to be right is what encoding/json finds to be right, where it is not too deep.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		``, ` `, `{}`, ` { "a" : 1 , "b":[1,{"c":"]}\""}] } `, `{"a":1,}`, `{"a"}`, `{,}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":}`, `{a:1}`, `{"a":1}}`,
		`"\u00e9\/\b"`, `"\u00g0"`, `"\u00"`, `"\x"`, `"\`, `"`, "\"\x1f\"", "\"\x7f\xff\"", `0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5e+3`, `1e`, `1E-0`,
		`true`, `tru`, `nulll`, `false `, `+1`, `[`, `]`, `{"a":[}`,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(b)
		taken := s.Skip() && (s.Peek() == 0 && s.at == len(b) || s.Fail("", "is not JSON"))
		switch problem := s.Problem(); {
		case problem == "is nested too deeply" && !deeper(b):
			t.Errorf("%q is not deep", b)
		case problem == "is not JSON" && json.Valid(b):
			t.Errorf("%q is JSON", b)
		case taken && (deeper(b) || !json.Valid(b)):
			t.Errorf("%q was taken", b)
		}
	})
}

// TestEachCharacterIsSeenAtEachPlaceOfAText: characters are looked at eight at once where eight are left.
func TestEachCharacterIsSeenAtEachPlaceOfAText(t *testing.T) {
	const longest = 20
	for length := 1; length <= longest; length++ {
		for at := range length {
			for c := range 256 {
				text := []byte(`"` + strings.Repeat("a", length) + `"`)
				text[1+at] = byte(c)
				if s := New(text); json.Valid(text) != (s.Skip() && s.at == len(text)) {
					t.Fatalf("%q", text)
				}
			}
		}
	}
}
