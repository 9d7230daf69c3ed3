package signal

import (
	"bytes"
	"encoding/json"

	"github.com/leeway-video/leeway/internal/wire/jsonscan"
)

// What follows takes apart what jsonscan has found to be JSON, so that nothing is looked at for being right twice, and no
// value is copied before it is read. encoding/json would go over each value once for every level that it is inside of.

// members are those of one object, in the order of the text. Of a name that comes twice the last counts.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

func (m members) get(name string) (json.RawMessage, bool) {
	for i := len(m) - 1; i >= 0; i-- {
		if m[i].name == name {
			return m[i].value, true
		}
	}
	return nil, false
}

// split opens an object, or says that b is none.
func split(b []byte) (members, bool) {
	at := jsonscan.Space(b, 0)
	if at == len(b) || b[at] != '{' {
		return nil, false
	}
	all := make(members, 0, 8)
	for at = jsonscan.Space(b, at+1); b[at] != '}'; {
		end := value(b, at)
		name := unquote(b[at:end])
		from := jsonscan.Space(b, jsonscan.Space(b, end)+1) // past the colon
		end = value(b, from)
		all = append(all, member{name, b[from:end:end]})
		if at = jsonscan.Space(b, end); b[at] == ',' {
			at = jsonscan.Space(b, at+1)
		}
	}
	return all, true
}

// elements opens an array, or says that b is none.
func elements(b []byte) ([]json.RawMessage, bool) {
	if len(b) == 0 || b[0] != '[' {
		return nil, false
	}
	var all []json.RawMessage
	for at := jsonscan.Space(b, 1); b[at] != ']'; {
		end := value(b, at)
		all = append(all, b[at:end:end])
		if at = jsonscan.Space(b, end); b[at] == ',' {
			at = jsonscan.Space(b, at+1)
		}
	}
	return all, true
}

// value is where the value ends that begins at at.
func value(b []byte, at int) int {
	switch b[at] {
	case '"':
		return text(b, at)
	case '{', '[':
		for depth := 0; ; at++ {
			switch b[at] {
			case '"':
				at = text(b, at) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
	}
	for at < len(b) && b[at] != ',' && b[at] != '}' && b[at] != ']' && b[at] > ' ' {
		at++
	}
	return at
}

// text is where the string ends that begins at at.
func text(b []byte, at int) int {
	for at++; ; {
		end := at + bytes.IndexByte(b[at:], '"')
		escapes := 0
		for b[end-1-escapes] == '\\' {
			escapes++
		}
		if at = end + 1; escapes%2 == 0 {
			return at
		}
	}
}

// unquote is what a string says.
func unquote(raw []byte) string {
	inside := raw[1 : len(raw)-1]
	at := bytes.IndexByte(inside, '\\')
	if at < 0 {
		return string(inside)
	}
	out := make([]byte, 0, len(inside))
	for ; at >= 0; at = bytes.IndexByte(inside, '\\') {
		c := jsonscan.Escapes[inside[at+1]]
		if c == 0 { // \u, with its surrogates
			var s string
			_ = json.Unmarshal(raw, &s)
			return s
		}
		out = append(append(out, inside[:at]...), c)
		inside = inside[at+2:]
	}
	return string(append(out, inside...))
}
