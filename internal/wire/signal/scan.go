package signal

import (
	"bytes"
	"encoding/json"

	"github.com/leeway-video/leeway/internal/wire/jsonscan"
)

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

// add reads the value of a member.
func (m *members) add(s *jsonscan.Scanner, name []byte) bool {
	value, ok := s.Value()
	*m = append(*m, member{unescape(name), value})
	return ok
}

// split opens an object, or says that b is none.
func split(b []byte) (all members, ok bool) {
	s := jsonscan.New(b)
	if s.Peek() != '{' {
		return nil, false
	}
	all = make(members, 0, 8)
	ok = s.Object(func(name []byte) bool { return all.add(&s, name) })
	return all, ok
}

// elements opens an array, or says that b is none.
func elements(b []byte) (all []json.RawMessage, ok bool) {
	s := jsonscan.New(b)
	if s.Peek() != '[' {
		return nil, false
	}
	ok = s.Array(func() bool {
		value, ok := s.Value()
		all = append(all, value)
		return ok
	})
	return all, ok
}

// unquote is what a string says.
func unquote(raw []byte) string { return unescape(raw[1 : len(raw)-1]) }

// unescape is what stands between the quotes of a string.
func unescape(inside []byte) string {
	at := bytes.IndexByte(inside, '\\')
	if at < 0 {
		return string(inside)
	}
	whole := inside
	out := make([]byte, 0, len(inside))
	for ; at >= 0; at = bytes.IndexByte(inside, '\\') {
		c := jsonscan.Escapes[inside[at+1]]
		if c == 0 { // \u, with its surrogates
			var s string
			_ = json.Unmarshal(append(append([]byte{'"'}, whole...), '"'), &s)
			return s
		}
		out = append(append(out, inside[:at]...), c)
		inside = inside[at+2:]
	}
	return string(append(out, inside...))
}
