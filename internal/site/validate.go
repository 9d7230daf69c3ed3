package site

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/certificate"
)

// FieldError says which field of a site's configuration is wrong, and what to do.
type FieldError struct {
	Site    string // the site's name as configured
	Path    string // of the field, as in the file: hosts[2], key.path
	Problem string
	Hint    string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("site %q: %s: %s (%s)", e.Site, e.Path, e.Problem, e.Hint)
}

// Limits of spec/site.md.
const (
	maxName   = 32
	maxHosts  = 64
	maxIgnore = 64
	maxPath   = 256
	maxElems  = 16 // of key.ignore_path
	maxDrop   = 8
	maxFiles  = 64
	maxKeys   = 8 // of packagers: two of each of a few packagers while they are replaced
)

// defaults fills the fields that were left empty.
func (c *Config) defaults() {
	fill := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	if c.TokenKeys != "" {
		fill(&c.Access, AccessToken)
	}
	fill(&c.Access, AccessPublic)
	fill(&c.Policy.Role, RoleFull)
	fill(&c.Policy.Prefetch, PrefetchAllow)
	fill(&c.Policy.Relay, RelayAllow)
	fill(&c.Policy.Local, LocalIfGranted)
	fill(&c.Policy.SignedManifests, SignedOff)
	fill(&c.Policy.UnknownLine, UnknownLineLeech)
	fill(&c.Policy.CostlyTitles, CostlyRest)
	c.Policy.CertifyFrom = cmp.Or(c.Policy.CertifyFrom, DefaultCertifyFrom)
	c.Policy.MinViewers = cmp.Or(c.Policy.MinViewers, 1)
	c.Policy.MaxLinks = cmp.Or(c.Policy.MaxLinks, DefaultMaxLinks)
	c.FetchBase = strings.TrimRight(c.FetchBase, "/")
	c.Key.expand()
}

// validate returns the first thing wrong with a configuration whose defaults are filled in.
func (c *Config) validate() error {
	for _, check := range []func() *FieldError{
		c.checkName, c.checkHosts, c.checkPresets, c.checkIgnore, c.checkIgnorePath, c.checkPath, c.checkChoices, c.checkNumbers, c.checkFetchBase, c.checkFetchAuth, c.checkPageOrigins, c.checkBindings,
		c.checkPackagerKeys, c.checkFiles,
	} {
		if err := check(); err != nil {
			err.Site = c.Name
			return err
		}
	}
	return nil
}

func wrong(path, hint, problem string, args ...any) *FieldError {
	return &FieldError{Path: path, Problem: fmt.Sprintf(problem, args...), Hint: hint}
}

func (c *Config) checkName() *FieldError {
	const hint = "1–32 characters of a–z, 0–9 and -"
	if c.Name == "" || len(c.Name) > maxName {
		return wrong("name", hint, "has %d characters", len(c.Name))
	}
	for _, r := range c.Name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return wrong("name", hint, "contains %q", r)
		}
	}
	return nil
}

func (c *Config) checkHosts() *FieldError {
	if len(c.Hosts) == 0 || len(c.Hosts) > maxHosts {
		return wrong("hosts", "list the 1–64 hosts that serve the site's paths", "has %d entries", len(c.Hosts))
	}
	for i, h := range c.Hosts {
		path := fmt.Sprintf("hosts[%d]", i)
		if problem, hint := checkHost(h); problem != "" {
			return wrong(path, hint, "%q %s", h, problem)
		}
		if slices.Contains(c.Hosts[:i], h) {
			return wrong(path, "leave one of them out", "%q is listed twice", h)
		}
	}
	return nil
}

// checkHost says what is wrong with `host` or `host:port` as browsers write it in a URL.
func checkHost(h string) (problem, hint string) {
	name, port := h, ""
	if i := strings.LastIndexByte(h, ':'); i > strings.LastIndexByte(h, ']') {
		name, port = h[:i], h[i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || n == 0 || port != strconv.FormatUint(n, 10):
			return "has no port number after the colon", "write host or host:port, without scheme or path"
		case n == 80 || n == 443:
			return "names a default port", "write the host alone: http's 80 and https's 443 are left out of keys"
		}
	}
	if v6, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(v6, "]"))
		if err != nil || !strings.HasSuffix(v6, "]") || !addr.Is6() || addr.Zone() != "" || "["+addr.String()+"]" != name {
			return "is no IPv6 address in its shortest form", "write it as browsers do: [2001:db8::1]"
		}
		return "", ""
	}
	if name == "" || len(name) > 253 {
		return "has no host of 1–253 characters", "write host or host:port, without scheme or path"
	}
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			return "is not lower case", "write " + strings.ToLower(h)
		case (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_':
			return fmt.Sprintf("contains %q", r), "write host or host:port, without scheme or path; international names in their xn-- form"
		}
	}
	return "", ""
}

func (c *Config) checkIgnore() *FieldError {
	if len(c.Key.IgnoreQuery) > maxIgnore {
		return wrong("key.ignore_query", "at most 64; a trailing * matches a prefix", "has %d entries", len(c.Key.IgnoreQuery))
	}
	for i, name := range c.Key.IgnoreQuery {
		path := fmt.Sprintf("key.ignore_query[%d]", i)
		if name == "" || len(name) > maxPath {
			return wrong(path, "1–256 bytes", "has %d bytes", len(name))
		}
		if strings.ContainsAny(name, "=&#") {
			return wrong(path, "write the parameter's name alone", "%q is more than a name", name)
		}
		if form := percentForm(name, true); form != name {
			return wrong(path, fmt.Sprintf("write %q", form), "%q is not in the percent form in which names are compared", name)
		}
	}
	return nil
}

func (c *Config) checkIgnorePath() *FieldError {
	if len(c.Key.IgnorePath) > maxElems {
		return wrong("key.ignore_path", "at most 16; a trailing * matches a prefix", "has %d entries", len(c.Key.IgnorePath))
	}
	for i, e := range c.Key.IgnorePath {
		path := fmt.Sprintf("key.ignore_path[%d]", i)
		literal, prefix := strings.CutSuffix(e, "*")
		switch {
		case e == "" || len(e) > maxPath:
			return wrong(path, "1–256 bytes", "has %d bytes", len(e))
		case prefix && len(literal) < 2:
			return wrong(path, "write two characters or more before the *, such as hdntl=*", "%q would remove elements that name the content", e)
		case e == "." || e == ".." || strings.ContainsAny(e, `/?#\`) || percentForm(e, false) != e:
			return wrong(path, "one element, without slashes, in percent form", "%q is no element of a path in percent form", e)
		}
	}
	return nil
}

func (c *Config) checkPath() *FieldError {
	p := c.Key.Path
	if p == "" {
		return nil
	}
	const hint = "a prefix such as /t/{}/: literal elements and {} between slashes, at most 256 bytes"
	if len(p) > maxPath || !strings.HasPrefix(p, "/") || !strings.HasSuffix(p, "/") || p == "/" {
		return wrong("key.path", hint, "%q does not begin and end with a slash, or is too long or empty", p)
	}
	tokens := 0
	for element := range strings.SplitSeq(p[1:len(p)-1], "/") {
		switch {
		case element == "{}":
			tokens++
		case element == "" || element == "." || element == ".." || strings.ContainsAny(element, `\`) || percentForm(element, false) != element:
			return wrong("key.path", hint, "element %q is neither {} nor a literal in percent form", element)
		}
	}
	if tokens == 0 {
		return wrong("key.path", hint, "%q has no {}, so it removes nothing", p)
	}
	return nil
}

// Choice is a key of a site, its value, and the values that there are.
type Choice struct {
	Key, Value string
	Of         []string
}

// Choices are the keys of the site whose values are closed sets.
func (c *Config) Choices() []Choice {
	return []Choice{
		{"access", c.Access, []string{AccessPublic, AccessToken}},
		{"policy.role", c.Policy.Role, []string{RoleFull, RoleLeech, RoleRelayOnly, RoleOff}},
		{"policy.prefetch", c.Policy.Prefetch, []string{PrefetchAllow, PrefetchNever}},
		{"policy.relay", c.Policy.Relay, []string{RelayAllow, RelayNever}},
		{"policy.local", c.Policy.Local, []string{LocalIfGranted, LocalAsk, LocalNever}},
		{"policy.signed_manifests", c.Policy.SignedManifests, []string{SignedOff, SignedShare}},
		{"policy.unknown_line", c.Policy.UnknownLine, []string{UnknownLineLeech, UnknownLineFull}},
		{"policy.costly_titles", c.Policy.CostlyTitles, []string{CostlyRest, CostlyShare}},
	}
}

func (c *Config) checkChoices() *FieldError {
	for _, f := range c.Choices() {
		if !slices.Contains(f.Of, f.Value) {
			return wrong(f.Key, "one of "+strings.Join(f.Of, ", "), "%q is no choice", f.Value)
		}
	}
	return nil
}

func (c *Config) checkNumbers() *FieldError {
	leastUpload := int64(0)
	if c.Policy.UploadKbps > 0 {
		leastUpload = MinUploadKbps
	}
	for _, f := range []struct {
		path     string
		v        int64
		min, max int64
	}{
		{"title.drop", int64(c.Title.Drop), 0, maxDrop},
		{"policy.waste_bytes", c.Policy.WasteBytes, 0, 1<<53 - 1},
		{"policy.certify_from", int64(c.Policy.CertifyFrom), 1, 1 << 20},
		{"policy.min_viewers", int64(c.Policy.MinViewers), 1, 1 << 20},
		{"policy.hold_back_permille", int64(c.Policy.HoldBackPermille), 0, 1000},
		{"policy.control_group_permille", int64(c.Policy.ControlGroupPermille), 0, 1000},
		{"policy.upload_kbps", c.Policy.UploadKbps, leastUpload, MaxUploadKbps},
		{"policy.disk_bytes", c.Policy.DiskBytes, 0, MaxDiskBytes},
		{"policy.max_links", int64(c.Policy.MaxLinks), 1, MaxLinks},
	} {
		if f.v < f.min || f.v > f.max {
			return wrong(f.path, fmt.Sprintf("%d to %d", f.min, f.max), "%d is out of range", f.v)
		}
	}
	return nil
}

func (c *Config) checkFetchBase() *FieldError {
	if c.FetchBase == "" {
		return nil
	}
	const hint = "an http or https URL such as https://origin.internal:8443/vod, below which the site's paths lie"
	u, err := url.Parse(c.FetchBase)
	switch {
	case err != nil:
		return wrong("fetch_base", hint, "is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return wrong("fetch_base", hint, "%q is not http or https, or has no host", c.FetchBase)
	case u.User != nil:
		return wrong("fetch_base", hint, "carries user information")
	case strings.ContainsAny(c.FetchBase, "?#"):
		return wrong("fetch_base", hint, "carries a query or a fragment")
	}
	return nil
}

func (c *Config) checkFetchAuth() *FieldError {
	a := c.FetchAuth
	signs := a.Sign != ""
	switch {
	case !signs && a.HeadersFile == "" && (a.KeyFile != "" || a.KeyPairID != "" || len(a.Parameters) > 0):
		return wrong("fetch_auth.sign", SignNginx+" or "+SignCloudFront, "is empty, and there is a key to sign with")
	case !signs && a.HeadersFile == "":
		return nil
	case signs && a.Sign != SignNginx && a.Sign != SignCloudFront:
		return wrong("fetch_auth.sign", SignNginx+" or "+SignCloudFront, "%q is no choice", a.Sign)
	case signs && a.KeyFile == "":
		return wrong("fetch_auth.key_file", "name the file with the value of secure_link_md5, or with CloudFront's private key", "is empty, and %s signs with it", a.Sign)
	case (a.Sign == SignCloudFront) != (a.KeyPairID != ""):
		return wrong("fetch_auth.key_pair_id", "it belongs to sign: cloudfront, which needs it", "is missing, or there without cloudfront")
	case len(a.Parameters) > 0 && (a.Sign != SignNginx || !areNames(a.Parameters)):
		return wrong("fetch_auth.parameters", "two names for sign: nginx, as its secure_link has them: [md5, expires]", "%q", a.Parameters)
	case c.FetchBase == "":
		return wrong("fetch_auth", "set fetch_base, or leave fetch_auth out", "there is no fetch_base to fetch from")
	case c.Access == AccessPublic && c.Policy.SignedManifests != SignedShare:
		return wrong("fetch_auth", "access: token with token_keys has your backend say which viewers may; policy.signed_manifests: share says that any may",
			"the site is public: seeds would pass on to any viewer what the origin keeps for those with a signature")
	}
	return nil
}

// areNames says whether a list has two different names of query parameters.
func areNames(list []string) bool {
	return len(list) == 2 && list[0] != list[1] &&
		!slices.ContainsFunc(list, func(n string) bool {
			return n == "" || strings.ContainsFunc(n, func(r rune) bool { return !isWord(r) })
		})
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func (c *Config) checkPackagerKeys() *FieldError {
	const hint = "the line that leeway certify prints when it makes a key"
	if len(c.PackagerKeys) > maxKeys {
		return wrong("packager_keys", "at most 8; remove those that are out of use", "has %d entries", len(c.PackagerKeys))
	}
	seen := map[certificate.KeyID]bool{}
	for i, text := range c.PackagerKeys {
		path := fmt.Sprintf("packager_keys[%d]", i)
		k, err := certificate.ParsePublic(text)
		if err != nil {
			return wrong(path, hint, "%v", err)
		}
		if seen[k.KeyID] {
			return wrong(path, "leave one of them out", "is listed twice")
		}
		seen[k.KeyID] = true
	}
	return nil
}

func (c *Config) checkPageOrigins() *FieldError {
	const hint = `scheme and host as browsers write an Origin, such as https://www.example.com, or "*" for any page`
	for i, o := range c.PageOrigins {
		if o == "*" {
			continue
		}
		scheme, host, ok := splitScheme(o)
		if !ok || scheme+"://"+host != o {
			return wrong(fmt.Sprintf("page_origins[%d]", i), hint, "%q is no http or https origin in lower case", o)
		}
		if problem, _ := checkHost(host); problem != "" {
			return wrong(fmt.Sprintf("page_origins[%d]", i), hint, "%q %s", o, problem)
		}
	}
	return nil
}
