package webtorrent

import (
	"strconv"
	"unicode/utf8"

	"github.com/leeway-video/leeway/internal/wire/jsonscan"
)

// Scan reads 20 code points of one byte each; field is what a problem names.
func (id *ID) Scan(s *jsonscan.Scanner, field string) bool {
	if s.Peek() != '"' {
		return s.Wrong(field, "is not a string")
	}
	raw, ok := s.Text()
	if !ok {
		return false
	}
	return id.Read(raw[1:len(raw)-1]) || s.Fail(field, "is not 20 code points up to U+00FF")
}

// Read takes what stands between the quotes of a string that a scanner has checked, and says whether it was an ID.
func (id *ID) Read(raw []byte) bool {
	n := 0
	for len(raw) > 0 {
		r, size := rune(raw[0]), 1
		switch {
		case r == '\\':
			if r, size = rune(jsonscan.Escapes[raw[1]]), 2; r == 0 { // \u
				v, _ := strconv.ParseUint(string(raw[2:6]), 16, 16)
				r, size = rune(v), 6
			}
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

// Count is a number of a message as an int between 0 and most: what is no such integer is rounded down or cut.
func Count(number []byte, most int) (n int) {
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
