package site

import (
	"slices"
	"strings"
)

const upperHex = "0123456789ABCDEF"

// percentForm brings a path, a part of a query or a parameter's name to its one percent form (spec/site.md, step 4).
func percentForm(s string, query bool) string {
	i := 0
	for i < len(s) && s[i] != '%' && stays(s[i], query) {
		i++
	}
	if i == len(s) {
		return s // almost every URL
	}
	out := make([]byte, i, len(s)+8)
	copy(out, s)
	for ; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				if d := byte(hi<<4 | lo); unreserved(d) {
					out = append(out, d)
				} else {
					out = append(out, '%', upperHex[hi], upperHex[lo])
				}
				i += 2
				continue
			}
		}
		if stays(c, query) {
			out = append(out, c)
		} else {
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(out)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// stays is true of the bytes that stand for themselves: unreserved, sub-delims, ":", "@", "/", in a query also "?".
func stays(c byte, query bool) bool {
	return unreserved(c) || strings.IndexByte("!$&'()*+,;=:@/", c) >= 0 || query && c == '?'
}

// removeDots removes dot segments as RFC 3986 §5.2.4 does for a path that begins with a slash; an empty path is the root.
func removeDots(path string) string {
	if path == "" {
		return "/"
	}
	if !strings.Contains(path, "/.") {
		return path
	}
	var kept []string
	elements := strings.Split(path[1:], "/")
	for i, e := range elements {
		if e != "." && e != ".." {
			kept = append(kept, e)
			continue
		}
		if e == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if i == len(elements)-1 {
			kept = append(kept, "") // what ends in a dot segment ends in a slash
		}
	}
	return "/" + strings.Join(kept, "/")
}

// dropTokens removes the elements that a pattern's {} match, if the pattern matches the path from its start and the path
// goes on behind it.
func dropTokens(path string, pattern []string) string {
	if len(pattern) == 0 {
		return path
	}
	elements := strings.Split(path[1:], "/")
	if len(elements) <= len(pattern) {
		return path
	}
	kept := make([]string, 0, len(elements))
	for i, p := range pattern {
		switch {
		case p != "{}" && p == elements[i]:
			kept = append(kept, p)
		case p != "{}" || elements[i] == "":
			return path
		}
	}
	return "/" + strings.Join(append(kept, elements[len(pattern):]...), "/")
}

// dropIgnored removes the elements of key.ignore_path; the last element stays, whatever it is.
func (s *Site) dropIgnored(path string) string {
	if len(s.elements.whole)+len(s.elements.prefixes) == 0 {
		return path
	}
	elements := strings.Split(path[1:], "/")
	last := len(elements) - 1
	kept := slices.DeleteFunc(elements[:last:last], s.elements.has)
	return "/" + strings.Join(append(kept, elements[last]), "/")
}

// keptQuery keeps the parameters that select content, in the order of their names.
func (s *Site) keptQuery(query string) string {
	var parts []string
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		part = percentForm(part, true)
		if !s.query.has(parameter(part)) {
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts, func(a, b string) int { return strings.Compare(parameter(a), parameter(b)) })
	return strings.Join(parts, "&")
}

// names is a list of the key rule, in which a trailing * matches a prefix.
type names struct {
	whole    map[string]bool
	prefixes []string
}

func namesOf(list []string) names {
	n := names{whole: map[string]bool{}}
	for _, name := range list {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			n.prefixes = append(n.prefixes, prefix)
		} else {
			n.whole[name] = true
		}
	}
	return n
}

func (n names) has(name string) bool {
	return n.whole[name] || slices.ContainsFunc(n.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Parameters are the names of the query parameters in a key or a title, each once.
func Parameters(key string) (list []string) {
	_, query, _ := strings.Cut(key, "?")
	for part := range strings.SplitSeq(query, "&") {
		if name := parameter(part); name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// parameter is the name in one part of a query.
func parameter(part string) string {
	name, _, _ := strings.Cut(part, "=")
	return name
}
