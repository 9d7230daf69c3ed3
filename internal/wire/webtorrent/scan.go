package webtorrent

import "unicode/utf8"

// scanner walks a JSON text. Its methods return false once something is wrong; the first problem stays.
type scanner struct {
	b       []byte
	at      int
	depth   int
	problem *MalformedError
}

func (s *scanner) fail(field, problem string) bool {
	if s.problem == nil {
		s.problem = &MalformedError{field, problem}
	}
	return false
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

// peek is the next byte that is no space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return s.fail("", "is not JSON")
	}
	s.at++
	return true
}

// object calls f with each name, f reads the value. Names with escapes are given as they stand: none that is known has any
// need of them, and a client that writes them so does not exist.
func (s *scanner) object(f func(name []byte) bool) bool {
	return s.list('{', '}', func() bool {
		name, ok := s.text()
		return ok && s.take(':') && f(name[1:len(name)-1])
	})
}

func (s *scanner) array(f func() bool) bool { return s.list('[', ']', f) }

func (s *scanner) list(open, end byte, f func() bool) bool {
	if !s.take(open) {
		return false
	}
	if s.depth++; s.depth > MaxDepth {
		return s.fail("", "is nested too deeply")
	}
	if s.peek() == end {
		s.at++
		s.depth--
		return true
	}
	for f() {
		if s.peek() == end {
			s.at++
			s.depth--
			return true
		}
		if !s.take(',') {
			return false
		}
	}
	return false
}

// text returns a string with its quotes, checked and not unescaped.
func (s *scanner) text() ([]byte, bool) {
	if s.peek() != '"' {
		return nil, s.fail("", "is not JSON")
	}
	began := s.at
	for s.at++; s.at < len(s.b); {
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return s.b[began:s.at], true
		case c == '\\':
			n := escape(s.b[s.at:])
			if n == 0 {
				return nil, s.fail("", "is not JSON")
			}
			s.at += n
		case c < ' ':
			return nil, s.fail("", "is not JSON")
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, n := utf8.DecodeRune(s.b[s.at:])
			if r == utf8.RuneError && n == 1 {
				return nil, s.fail("", "is not UTF-8")
			}
			s.at += n
		}
	}
	return nil, s.fail("", "is not JSON")
}

// escape is the length of the escape that b begins with, 0 for one that does not exist.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		if _, ok := hex4(b[2:6]); ok {
			return 6
		}
	}
	return 0
}

func hex4(b []byte) (v uint32, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	return v, true
}

// id reads 20 code points of one byte each.
func (s *scanner) id(field string, id *ID) bool {
	if s.peek() != '"' {
		return s.wrong(field, "is not a string")
	}
	raw, ok := s.text()
	if !ok {
		return false
	}
	return id.read(raw[1:len(raw)-1]) || s.fail(field, "is not 20 code points up to U+00FF")
}

// read takes what stands between the quotes of a string that text has checked.
func (id *ID) read(raw []byte) bool {
	n := 0
	for len(raw) > 0 {
		r, size := rune(raw[0]), 1
		switch {
		case r == '\\':
			r, size = unescape(raw)
		case r >= utf8.RuneSelf:
			r, size = utf8.DecodeRune(raw)
		}
		if n == len(id) || r > 0xff {
			return false
		}
		id[n] = byte(r)
		n++
		raw = raw[size:]
	}
	return n == len(id)
}

// unescape reads an escape that text has checked.
func unescape(b []byte) (rune, int) {
	switch b[1] {
	case 'u':
		v, _ := hex4(b[2:6])
		return rune(v), 6
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	return rune(b[1]), 2
}

// number returns a number as it stands.
func (s *scanner) number() ([]byte, bool) {
	s.space()
	began := s.at
	digits := func() bool {
		from := s.at
		for s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' {
			s.at++
		}
		return s.at > from
	}
	is := func(set string) bool {
		for i := range len(set) {
			if s.at < len(s.b) && s.b[s.at] == set[i] {
				s.at++
				return true
			}
		}
		return false
	}
	is("-")
	ok := is("0") || digits()
	if ok && is(".") {
		ok = digits()
	}
	if ok && is("eE") {
		is("+-")
		ok = digits()
	}
	if !ok {
		return nil, s.fail("", "is not JSON")
	}
	return s.b[began:s.at], true
}

// null takes null, and says whether it was there.
func (s *scanner) null() bool {
	if s.peek() == 'n' && len(s.b)-s.at >= 4 && string(s.b[s.at:s.at+4]) == "null" {
		s.at += 4
		return true
	}
	return false
}

// skip reads any value.
func (s *scanner) skip() bool {
	switch s.peek() {
	case '{':
		return s.object(func([]byte) bool { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	_, ok := s.number()
	return ok
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.at < len(w) || string(s.b[s.at:s.at+len(w)]) != w {
		return s.fail("", "is not JSON")
	}
	s.at += len(w)
	return true
}

// wrong reports a value of the wrong type, unless the text is broken there, which is then the problem.
func (s *scanner) wrong(field, problem string) bool {
	return s.skip() && s.fail(field, problem)
}

// whole says whether nothing follows.
func (s *scanner) whole() bool { return s.peek() == 0 && s.at == len(s.b) || s.fail("", "is not JSON") }

// count is a number as an int between 0 and most: what is no such integer is rounded down or cut. ok is false for no number.
func count(number []byte, most int) (n int) {
	if number[0] == '-' {
		return 0
	}
	for i, c := range number {
		if c < '0' || c > '9' {
			if c == '.' && !exponent(number[i:]) {
				return n
			}
			return most // 1e3 and the like: no client writes them, and many is the safe reading
		}
		if n = 10*n + int(c-'0'); n >= most {
			n = most
		}
	}
	return n
}

func exponent(b []byte) bool {
	for _, c := range b {
		if c == 'e' || c == 'E' {
			return true
		}
	}
	return false
}

// zero says whether a number is 0, in any spelling.
func zero(number []byte) bool {
	for _, c := range number {
		if '1' <= c && c <= '9' {
			return false
		}
		if c == 'e' || c == 'E' {
			break
		}
	}
	return true
}
