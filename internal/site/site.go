// Package site holds what an operator says of a site and derives names from it: keys of URLs, titles of manifests
// (spec/site.md). Pure: the twin of web/packages/core/src/segment, held to it by spec/vectors/site.json.
package site

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leeway-video/leeway/internal/certificate"
)

// MaxKey is the length of the longest key, in bytes.
const MaxKey = 1024

// MaxTitle is the length of the longest title, in bytes.
const MaxTitle = 512

// What Key, KeyOfPath and Title refuse.
var (
	ErrNotHTTP     = errors.New("not an absolute http or https URL")
	ErrCredentials = errors.New("user information in the URL")
	ErrForeignHost = errors.New("host is none of the site's")
	ErrBadPath     = errors.New("backslash, control character or invalid UTF-8 in path or query")
	ErrTooLong     = errors.New("key is longer than 1024 bytes, or title than 512")
	ErrBadTitle    = errors.New("explicit title is not 1–512 bytes of UTF-8 without control characters")
)

// Site derives names for one site. It is immutable and safe for concurrent use.
type Site struct {
	config   Config
	query    names     // of query parameters that select no content
	elements names     // of path elements that select none
	pattern  []string  // elements of key.path; nil for none
	bindings []binding // of title.explicit
	packager []certificate.VerifyKey
}

// New checks a configuration and fills its defaults in. The error is a *FieldError.
func New(c Config) (*Site, error) {
	c.Hosts = slices.Clone(c.Hosts)
	c.PageOrigins, c.PackagerKeys, c.Files = slices.Clone(c.PageOrigins), slices.Clone(c.PackagerKeys), slices.Clone(c.Files)
	c.Key.IgnoreQuery, c.Key.IgnorePath = slices.Clone(c.Key.IgnoreQuery), slices.Clone(c.Key.IgnorePath)
	c.Title.Explicit = slices.Clone(c.Title.Explicit)
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Site{config: c, query: namesOf(c.Key.IgnoreQuery), elements: namesOf(c.Key.IgnorePath)}
	if p := c.Key.Path; p != "" {
		s.pattern = strings.Split(p[1:len(p)-1], "/")
	}
	for _, b := range c.Title.Explicit {
		s.bindings = append(s.bindings, b.compile())
	}
	s.packager = packagers(c.Name, c.PackagerKeys)
	return s, nil
}

// Name is the site's label in metrics and certificates.
func (s *Site) Name() string { return s.config.Name }

// Config is the configuration with its defaults filled in. Its slices are shared and must not be changed.
func (s *Site) Config() Config { return s.config }

// Packagers are the keys of the site's packagers. It is shared and must not be changed.
func (s *Site) Packagers() []certificate.VerifyKey { return s.packager }

func packagers(site string, keys []string) (list []certificate.VerifyKey) {
	for _, text := range keys {
		k, err := certificate.ParsePublic(text)
		if err == nil {
			k.Sites = []string{site}
			list = append(list, k)
		}
	}
	return list
}

// Hosts lists the hosts that serve the site's paths. It is shared and must not be changed.
func (s *Site) Hosts() []string { return s.config.Hosts }

// Key derives the key of an absolute URL: what names its content on this site (spec/site.md, "The key rule").
// It fails with ErrNotHTTP, ErrCredentials, ErrForeignHost, ErrBadPath or ErrTooLong, in this order.
func (s *Site) Key(rawURL string) (string, error) {
	u, _, _ := strings.Cut(rawURL, "#")
	scheme, rest, ok := splitScheme(u)
	if !ok {
		return "", ErrNotHTTP
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if strings.Contains(authority, "@") {
		return "", ErrCredentials
	}
	if !slices.Contains(s.config.Hosts, bareHost(scheme, authority)) {
		return "", ErrForeignHost
	}
	return s.key(rest[end:], s.pattern)
}

// KeyOfPath derives the key of a path with its query, as it lies below fetch_base: the key rule from its third step on,
// without path tokens, which origins behind seeds do not have. The key of a key's path is the key.
// It fails with ErrBadPath (also for a path without a leading slash) or ErrTooLong.
func (s *Site) KeyOfPath(path string) (string, error) {
	path, _, _ = strings.Cut(path, "#")
	if !strings.HasPrefix(path, "/") {
		return "", ErrBadPath
	}
	return s.key(path, nil)
}

func (s *Site) key(pathAndQuery string, pattern []string) (string, error) {
	for i := range len(pathAndQuery) {
		if b := pathAndQuery[i]; b < 0x20 || b == 0x7f || b == '\\' {
			return "", ErrBadPath
		}
	}
	if !utf8.ValidString(pathAndQuery) {
		return "", ErrBadPath
	}
	path, query, _ := strings.Cut(pathAndQuery, "?")
	key := dropTokens(s.dropIgnored(removeDots(percentForm(path, false))), pattern)
	if q := s.keptQuery(query); q != "" {
		key += "?" + q
	}
	if len(key) > MaxKey {
		return "", ErrTooLong
	}
	return key, nil
}

// Title derives the title of a manifest: the explicit one if there is one, else from the manifest's key. It fails with
// ErrBadTitle, with ErrBadPath when manifestKey is no key, and with ErrTooLong.
func (s *Site) Title(manifestKey, explicit string) (string, error) {
	if explicit != "" {
		if len(explicit) > MaxTitle || !utf8.ValidString(explicit) || strings.ContainsFunc(explicit, isControl) {
			return "", ErrBadTitle
		}
		return explicit, nil
	}
	path, query, _ := strings.Cut(manifestKey, "?")
	if !strings.HasPrefix(path, "/") {
		return "", ErrBadPath
	}
	for range 1 + s.config.Title.Drop {
		path = path[:max(0, strings.LastIndexByte(path, '/'))]
	}
	if path == "" {
		path = "/"
	}
	if query != "" {
		path += "?" + query
	}
	if len(path) > MaxTitle {
		return "", ErrTooLong
	}
	return path, nil
}

// isControl is true of the C0 controls, DEL and the C1 controls.
func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// AllowsOrigin says whether a page of this origin (the handshake's Origin header) may join: it is on one of the site's
// hosts or among page_origins. Without an origin, and for the opaque "null", only "*" allows it.
func (s *Site) AllowsOrigin(origin string) bool {
	if slices.Contains(s.config.PageOrigins, "*") {
		return true
	}
	scheme, authority, ok := splitScheme(origin)
	if !ok {
		return false
	}
	host := bareHost(scheme, authority)
	return slices.Contains(s.config.Hosts, host) || slices.Contains(s.config.PageOrigins, scheme+"://"+host)
}

// splitScheme splits http:// or https:// off, in any case; the scheme comes back in lower case.
func splitScheme(u string) (scheme, rest string, ok bool) {
	head, rest, ok := strings.Cut(u, "://")
	scheme = asciiLower(head)
	return scheme, rest, ok && (scheme == "http" || scheme == "https")
}

// bareHost is an authority in lower case without an empty port or the scheme's default one.
func bareHost(scheme, authority string) string {
	host := asciiLower(authority)
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	if bare, ok := strings.CutSuffix(host, port); ok {
		return bare
	}
	return strings.TrimSuffix(host, ":")
}

// asciiLower lowers A–Z alone: with Unicode's rules the Kelvin sign would become a k.
func asciiLower(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
