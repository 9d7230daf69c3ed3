// Package jsonscan checks a JSON text and walks it, copying nothing of it: for messages that come to a tracker by the ten thousand a
// second. encoding/json takes several times as long (internal/wire/webtorrent, BenchmarkDecode).
package jsonscan

import "unicode/utf8"

// MaxDepth is how many levels of nesting a text may have, itself being the first.
const MaxDepth = 16

// Problem says why a text was refused. Its words are safe to send back: they quote nothing of the text.
type Problem struct {
	Field   string // such as "offers.offer_id"; empty for the text as a whole
	Problem string // one phrase
}

// Error implements error.
func (e *Problem) Error() string {
	if e.Field == "" {
		return "message " + e.Problem
	}
	return "field " + e.Field + " " + e.Problem
}

// Scanner walks a text of UTF-8. Its methods return false once something is wrong; the first problem stays.
type Scanner struct {
	b       []byte
	at      int
	depth   int
	problem *Problem
}

// New makes a scanner of a text.
func New(b []byte) Scanner { return Scanner{b: b} }

// Err is the first problem, as a *Problem; nil: there is none.
func (s *Scanner) Err() error {
	if s.problem == nil {
		return nil
	}
	return s.problem
}

// Problem is the words of the first problem; empty: there is none.
func (s *Scanner) Problem() string {
	if s.problem == nil {
		return ""
	}
	return s.problem.Problem
}

// Fail notes a problem and returns false.
func (s *Scanner) Fail(field, problem string) bool {
	if s.problem == nil {
		s.problem = &Problem{field, problem}
	}
	return false
}

// Wrong notes a value of the wrong type, unless the text is broken there, which is then the problem.
func (s *Scanner) Wrong(field, problem string) bool { return s.Skip() && s.Fail(field, problem) }

// Document reads a text that is one object of UTF-8 and nothing behind it, as Object does; it is called first.
func (s *Scanner) Document(f func(name []byte) bool) bool {
	switch {
	case !utf8.Valid(s.b):
		return s.Fail("", "is not UTF-8")
	case s.Peek() != '{':
		return s.Wrong("", "is not an object")
	}
	return s.Object(f) && (s.Peek() == 0 && s.at == len(s.b) || s.Fail("", "is not JSON"))
}

// Peek is the next byte that is no space, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.at = space(s.b, s.at); s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

// Object calls f with each name, f reads the value. Names with escapes are given as they stand: none that is known has any
// need of them, and a client that writes them so does not exist.
func (s *Scanner) Object(f func(name []byte) bool) bool {
	return s.list('{', '}', func() bool {
		name, ok := s.Text()
		return ok && s.take(':') && f(name[1:len(name)-1])
	})
}

// Array calls f at each element, f reads it.
func (s *Scanner) Array(f func() bool) bool { return s.list('[', ']', f) }

func (s *Scanner) list(open, end byte, f func() bool) bool {
	if !s.take(open) {
		return false
	}
	if s.depth++; s.depth > MaxDepth {
		return s.Fail("", "is nested too deeply")
	}
	defer func() { s.depth-- }()
	if s.Peek() == end {
		s.at++
		return true
	}
	for f() {
		if s.Peek() == end {
			s.at++
			return true
		}
		if !s.take(',') {
			return false
		}
	}
	return false
}

func (s *Scanner) take(c byte) bool {
	if s.Peek() != c {
		return s.Fail("", "is not JSON")
	}
	s.at++
	return true
}

// Text returns a string with its quotes, checked and not unescaped.
func (s *Scanner) Text() ([]byte, bool) {
	if s.Peek() != '"' {
		return nil, s.Fail("", "is not JSON")
	}
	return s.value(wholeText(s.b, s.at))
}

// Number returns a number as it stands.
func (s *Scanner) Number() ([]byte, bool) {
	if s.Peek() == 0 {
		return nil, s.Fail("", "is not JSON")
	}
	return s.value(wholeNumber(s.b, s.at))
}

// Null takes null, and says whether it was there.
func (s *Scanner) Null() bool {
	if s.Peek() != 'n' {
		return false
	}
	end := wholeWord(s.b, s.at, "null")
	s.at = max(s.at, end)
	return end > 0
}

// Value returns any value as it stands.
func (s *Scanner) Value() ([]byte, bool) {
	s.Peek()
	return s.value(whole(s.b, s.at, MaxDepth-s.depth))
}

// Skip reads any value.
func (s *Scanner) Skip() bool {
	_, ok := s.Value()
	return ok
}

// value takes what ends there.
func (s *Scanner) value(end int) ([]byte, bool) {
	switch end {
	case tooDeep:
		return nil, s.Fail("", "is nested too deeply")
	case broken:
		return nil, s.Fail("", "is not JSON")
	}
	b := s.b[s.at:end:end]
	s.at = end
	return b, true
}
