package jsonscan

import "encoding/binary"

// What is wrong with a text, instead of where its value ends.
const (
	broken  = -1 // it is not JSON
	tooDeep = -2
)

// space is where the next byte is that is no space, from at on.
func space(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\t' || b[at] == '\r') {
		at++
	}
	return at
}

// whole is where the value ends that begins at at or behind it. As many levels may be below it as are left.
func whole(b []byte, at, left int) int {
	if at = space(b, at); at == len(b) {
		return broken
	}
	switch c := b[at]; c {
	case '"':
		return wholeText(b, at)
	case '{', '[':
		if left == 0 {
			return tooDeep
		}
		return wholeList(b, at, left-1)
	case 't':
		return wholeWord(b, at, "true")
	case 'f':
		return wholeWord(b, at, "false")
	case 'n':
		return wholeWord(b, at, "null")
	}
	return wholeNumber(b, at)
}

// wholeList is of an object or an array.
func wholeList(b []byte, at, left int) int {
	object := b[at] == '{'
	end := byte(']')
	if object {
		end = '}'
	}
	if at = space(b, at+1); at < len(b) && b[at] == end {
		return at + 1
	}
	for {
		if object {
			if at = space(b, at); at == len(b) || b[at] != '"' {
				return broken
			}
			if at = wholeText(b, at); at < 0 {
				return at
			}
			if at = space(b, at); at == len(b) || b[at] != ':' {
				return broken
			}
			at++
		}
		if at = whole(b, at, left); at < 0 {
			return at
		}
		switch at = space(b, at); {
		case at < len(b) && b[at] == ',':
			at++
		case at < len(b) && b[at] == end:
			return at + 1
		default:
			return broken
		}
	}
}

// within are the characters that say nothing about where a string ends.
var within = func() (within [256]bool) {
	for c := range within {
		within[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return within
}()

func wholeText(b []byte, at int) int {
	for at++; ; at++ {
		for at+8 <= len(b) && eightWithin(binary.LittleEndian.Uint64(b[at:])) {
			at += 8
		}
		for at < len(b) && within[b[at]] {
			at++
		}
		switch {
		case at == len(b):
			return broken
		case b[at] == '"':
			return at + 1
		case b[at] != '\\' || at+1 == len(b):
			return broken
		}
		if at++; b[at] == 'u' {
			if at += 4; at >= len(b) || !hexadecimal(b[at-3:at+1]) {
				return broken
			}
		} else if Escapes[b[at]] == 0 {
			return broken
		}
	}
}

// eightWithin says within of eight characters at once. Descriptions of links are most of what a tracker reads.
func eightWithin(eight uint64) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	quote, escape := eight^each*'"', eight^each*'\\'
	return ((eight-each*' ')&^eight|(quote-each)&^quote|(escape-each)&^escape)&top == 0
}

func hexadecimal(b []byte) bool {
	for _, c := range b {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}

func wholeWord(b []byte, at int, word string) int {
	if end := at + len(word); end <= len(b) && string(b[at:end]) == word {
		return end
	}
	return broken
}

func wholeNumber(b []byte, at int) int {
	if b[at] == '-' {
		at++
	}
	from := at
	if at = digits(b, at); at == from || b[from] == '0' && at > from+1 {
		return broken
	}
	if at < len(b) && b[at] == '.' {
		from = at + 1
		if at = digits(b, from); at == from {
			return broken
		}
	}
	if at < len(b) && b[at]|0x20 == 'e' {
		if at++; at < len(b) && (b[at] == '+' || b[at] == '-') {
			at++
		}
		from = at
		if at = digits(b, from); at == from {
			return broken
		}
	}
	return at
}

func digits(b []byte, at int) int {
	for at < len(b) && '0' <= b[at] && b[at] <= '9' {
		at++
	}
	return at
}

// Escapes is what stands for itself after a backslash, and what the letters stand for; 0 for what is none, and for u.
var Escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
