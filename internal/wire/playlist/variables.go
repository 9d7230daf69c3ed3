package playlist

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/leeway-video/leeway/internal/site"
)

// Bounds of variables. The values that stand in one playlist in place of their names have MaxBytes in all.
const (
	maxVariables = 128
	maxVariable  = 8192 // bytes, of name and value
)

// ErrVariables is a playlist whose variables cannot be filled in: a player does not play it either.
var ErrVariables = errors.New("its variables cannot be filled in")

// Variables are what a playlist defines by EXT-X-DEFINE (draft-pantos-hls-rfc8216bis, section 4.4.2.3): values by name.
type Variables map[string]string

// Weight is what they take in memory, bytes.
func (v Variables) Weight() (n int64) {
	for name, value := range v {
		n += 64 + int64(len(name)+len(value))
	}
	return n
}

// Source is where a playlist takes the values of variables from that it does not say itself.
type Source struct {
	URL     *url.URL  // of the playlist, after redirects; nil: no query has a value
	Imports Variables // of the multivariant playlist that names it; nil: there are none
	site    *site.Site
}

// parameter is the value of a parameter of the query. Seeds and packagers read a playlist without those that the key leaves out. These
// select no content, so any value leads to the same names.
func (s Source) parameter(name string) (value string, ok bool) {
	if s.URL != nil {
		value = s.URL.Query().Get(name)
	}
	if value != "" || s.site == nil {
		return value, value != ""
	}
	key, err := s.site.KeyOfPath("/?" + url.QueryEscape(name) + "=1")
	return "", err == nil && key == "/"
}

var (
	defineTag = []byte("#EXT-X-DEFINE:")
	variable  = regexp.MustCompile(`\{\$[A-Za-z0-9_-]+\}`)
	quoted    = regexp.MustCompile(`"[^"\r\n]*"`)
)

// filler fills the variables of one playlist in.
type filler struct {
	Source
	known  Variables // nil: the playlist defines none, and what looks like one is text
	filled int       // bytes of values
}

func newFiller(s Source, data []byte) *filler {
	f := &filler{Source: s}
	if bytes.HasPrefix(data, defineTag) || bytes.Contains(data, append([]byte("\n"), defineTag...)) {
		f.known = Variables{}
	}
	return f
}

// line fills in a line: variables stand in a URI, and in the quoted strings of a tag.
func (f *filler) line(line []byte) ([]byte, error) {
	if f.known == nil || !bytes.Contains(line, []byte("{$")) {
		return line, nil
	}
	if line[0] == '#' {
		var broken error
		out := quoted.ReplaceAllFunc(line, func(text []byte) []byte {
			if broken == nil {
				text, broken = f.fill(text)
			}
			return text
		})
		return out, broken
	}
	line, err := f.fill(line)
	if text := bytes.TrimSpace(line); err == nil && (len(text) == 0 || text[0] == '#') {
		err = fmt.Errorf("%w: a URI is %.32q then", ErrVariables, text)
	}
	return line, err
}

// fill fills in text.
func (f *filler) fill(text []byte) (out []byte, err error) {
	for {
		at := variable.FindIndex(text)
		if at == nil {
			return append(out, text...), nil
		}
		name := string(text[at[0]+2 : at[1]-1])
		value, known := f.known[name]
		switch f.filled += len(value); {
		case !known:
			return nil, fmt.Errorf("%w: {$%.64s} is not defined before it is used", ErrVariables, name)
		case f.filled > MaxBytes:
			return nil, fmt.Errorf("%w: they have more than %d bytes in all", ErrVariables, MaxBytes)
		}
		out = append(append(out, text[:at[0]]...), value...)
		text = text[at[1]:]
	}
}

// define takes in an EXT-X-DEFINE.
func (f *filler) define(line []byte) error {
	line, err := f.line(line)
	if err != nil {
		return err
	}
	a := attributes(strings.TrimRight(string(line[len(defineTag):]), "\r\n"))
	name, value, known, kinds := "", "", false, 0
	for _, kind := range []string{"NAME", "IMPORT", "QUERYPARAM"} {
		if text, is := a[kind]; is {
			name, kinds = text, kinds+1
		}
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrVariables}, args...)...)
	}
	switch _, is := f.known[name]; {
	case kinds != 1:
		return fail("a definition has not one of NAME, IMPORT and QUERYPARAM")
	case is:
		return fail("%.64q is defined twice", name)
	case len(f.known) == maxVariables:
		return fail("there are more than %d", maxVariables)
	case a["IMPORT"] != "":
		if value, known = f.Imports[name]; !known {
			return fail("it imports %.64q, and was read without a multivariant playlist that defines it", name)
		}
	case a["QUERYPARAM"] != "":
		if value, known = f.parameter(name); !known {
			return fail("its URL has no parameter %.64q", name)
		}
	default:
		if value, known = a["VALUE"]; !known {
			return fail("%.64q has no value", name)
		}
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '"' }) || len(name)+len(value) > maxVariable {
		return fail("the value of %.64q has a quotation mark or a control character, or more than %d bytes", name, maxVariable)
	}
	f.known[name] = value
	return nil
}
