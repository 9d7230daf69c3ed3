package signal

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/jsonscan"
)

// fields reads the members of one JSON object by exact name. The first problem sticks; readers after it return zero
// values, so that a decoder is a plain list of fields.
type fields struct {
	path    string // of this object, with a trailing dot unless it is the message
	members members
	problem *MalformedError // shared between an object and those inside it
}

func (f fields) fail(name, problem string) {
	if f.problem.Problem == "" {
		f.problem.Field, f.problem.Problem = f.path+name, problem
	}
}

func (f fields) raw(name string, required bool) (json.RawMessage, bool) {
	m, ok := f.members.get(name)
	if !ok && required {
		f.fail(name, "is missing")
	}
	return m, ok
}

// text reads a string of min to max bytes. Absent is "" when min is 0 or optional.
func (f fields) text(name string, required bool, min, max int) string {
	m, ok := f.raw(name, required)
	if !ok {
		return ""
	}
	if m[0] != '"' {
		f.fail(name, "is not a string")
		return ""
	}
	s := unquote(m)
	if len(s) < min || len(s) > max {
		f.fail(name, "has "+strconv.Itoa(len(s))+" bytes; allowed are "+strconv.Itoa(min)+" to "+strconv.Itoa(max))
		return ""
	}
	return s
}

func (f fields) oneOf(name string, required bool, set []string) string {
	s := f.text(name, required, 1, MaxType)
	if s != "" && !slices.Contains(set, s) {
		f.fail(name, "is none of the known values")
		return ""
	}
	return s
}

func (f fields) id(name string, required bool) ID {
	s := f.text(name, required, 22, 22)
	if s == "" {
		return ID{}
	}
	id, err := swarm.ParseID(s)
	if err != nil {
		f.fail(name, "is not 128 bit of base64url")
	}
	return id
}

// binary reads base64url of exactly size bytes.
func (f fields) binary(name string, required bool, size int) Bytes {
	s := f.text(name, required, 1, 4*size)
	if s == "" {
		return nil
	}
	var b Bytes
	if b.UnmarshalText([]byte(s)) != nil || len(b) != size {
		f.fail(name, "is not "+strconv.Itoa(size)+" bytes of base64url without padding")
		return nil
	}
	return b
}

// integer reads a number; absent is 0.
func (f fields) integer(name string, required bool, min, max int64) int64 {
	m, ok := f.raw(name, required)
	if !ok {
		return 0
	}
	v, ok := parseInteger(m)
	if !ok {
		f.fail(name, "is not an integer")
		return 0
	}
	if v < min || v > max {
		f.fail(name, "is out of its limits; allowed are "+strconv.FormatInt(min, 10)+" to "+strconv.FormatInt(max, 10))
		return 0
	}
	return v
}

func parseInteger(m json.RawMessage) (int64, bool) {
	if len(m) == 0 || m[0] != '-' && (m[0] < '0' || m[0] > '9') {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(m), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > MaxInteger {
		return 0, false
	}
	return int64(v), true
}

// flag is false where it is absent.
func (f fields) flag(name string) bool {
	m, ok := f.raw(name, false)
	if ok && string(m) != "true" && string(m) != "false" {
		f.fail(name, "is neither true nor false")
	}
	return string(m) == "true"
}

// object opens the object called name; ok is false when it is absent or none.
func (f fields) object(name string, required bool) (inner fields, ok bool) {
	m, ok := f.raw(name, required)
	if !ok {
		return fields{}, false
	}
	return f.open(name, m)
}

func (f fields) open(name string, m json.RawMessage) (fields, bool) {
	members, ok := split(m)
	if !ok {
		f.fail(name, "is not an object")
		return fields{}, false
	}
	return fields{path: f.path + name + ".", members: members, problem: f.problem}, true
}

// list calls each for the elements of an array of at most max; it returns false when the array is absent.
func (f fields) list(name string, required bool, max int, each func(i int, m json.RawMessage)) bool {
	m, ok := f.raw(name, required)
	if !ok {
		return false
	}
	all, ok := elements(m)
	if !ok {
		f.fail(name, "is not an array")
		return false
	}
	if len(all) > max {
		f.fail(name, "has "+strconv.Itoa(len(all))+" elements; at most "+strconv.Itoa(max)+" are allowed")
		return false
	}
	for i, e := range all {
		each(i, e)
	}
	return true
}

// objects is list for arrays of objects.
func (f fields) objects(name string, required bool, max int, each func(fields)) bool {
	return f.list(name, required, max, func(i int, m json.RawMessage) {
		if inner, ok := f.open(name+"["+strconv.Itoa(i)+"]", m); ok {
			each(inner)
		}
	})
}

// each opens the elements of an array of at most max one by one, as fields of the names that problems have.
func (f fields) each(list string, max int, read func(one fields, name string)) {
	f.list(list, false, max, func(i int, raw json.RawMessage) {
		name := list + "[" + strconv.Itoa(i) + "]"
		read(fields{path: f.path, members: members{{name, raw}}, problem: f.problem}, name)
	})
}

// table opens an object whose members' names are not known before; ok is false when it is absent, empty or of more than max members.
func (f fields) table(name string, max int) (all fields, ok bool) {
	all, ok = f.object(name, false)
	if n := len(all.members); n > max {
		f.fail(name, "has "+strconv.Itoa(n)+" members; at most "+strconv.Itoa(max)+" are allowed")
		return fields{}, false
	}
	return all, ok && len(all.members) > 0
}

// counts reads an object of integers; members outside the closed set are skipped.
func (f fields) counts(name string, set []string) map[string]int64 {
	inner, ok := f.object(name, false)
	if !ok {
		return nil
	}
	var out map[string]int64
	for _, k := range set {
		if _, ok := inner.members.get(k); !ok {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[k] = inner.integer(k, true, 0, MaxInteger)
	}
	return out
}

// parseMessage checks size, encoding and depth, and opens the message's object.
func parseMessage(b []byte) (fields, error) {
	f := fields{problem: &MalformedError{}}
	if len(b) > MaxMessage {
		f.fail("", "is larger than "+strconv.Itoa(MaxMessage)+" bytes")
		return f, f.problem
	}
	s := jsonscan.New(b)
	f.members = make(members, 0, 8)
	if !s.Document(func(name []byte) bool { return f.members.add(&s, name) }) {
		f.fail("", s.Problem())
		return f, f.problem
	}
	return f, nil
}
