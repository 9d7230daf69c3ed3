// Package originhttp fetches from a site's origin for a seed (the port seed.Origin) over net/http.
//
// It asks below fetch_base and nowhere else: a redirect must lead below fetch_base or below a listed prefix, and every
// address that a name resolves to is checked when the connection is made, so that neither a redirect nor a changed DNS
// answer makes the seed speak to a neighbor or to a metadata service.
package originhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
)

const (
	dialTimeout   = 5 * time.Second
	headerTimeout = 15 * time.Second
	pingAfter     = 10 * time.Second // of hearing nothing on an HTTP/2 connection
	maxHeader     = 64 << 10         // bytes of a response's header
	maxRedirects  = 4
	idleConns     = 16
	silence       = 10 * time.Second // a body that is read as it comes may be without a byte
)

// Config of a client.
type Config struct {
	// Base is the site's fetch_base: an http or https URL.
	Base string
	// Redirects lists further URL prefixes that redirects may lead to.
	Redirects []string
	// Private lists private address ranges that Base's name may resolve to, such as a cluster's services. What Base
	// itself names (an address, or localhost) needs no mention.
	Private []netip.Prefix
	// UserAgent is sent; empty is "leeway-seed".
	UserAgent string
	// Auth is what the origin asks of programs that fetch.
	Auth Auth
}

// Client fetches from one site's origin. It satisfies seed.Origin.
type Client struct {
	base      *url.URL
	redirects []*url.URL
	private   []netip.Prefix
	agent     string
	http      *http.Client
	silence   time.Duration
}

var _ seed.Origin = (*Client)(nil)

// errRefused marks what this package refuses itself.
var errRefused = errors.New("refused")

// New makes a client. The error names the setting that is wrong.
func New(cfg Config) (*Client, error) {
	base, err := ParseBase(cfg.Base)
	if err != nil {
		return nil, fmt.Errorf("originhttp: fetch_base: %w", err)
	}
	c := &Client{base: base, private: append([]netip.Prefix(nil), cfg.Private...), agent: cfg.UserAgent, silence: silence}
	if c.agent == "" {
		c.agent = "leeway-seed"
	}
	for _, r := range cfg.Redirects {
		u, err := ParseBase(r)
		if err != nil {
			return nil, fmt.Errorf("originhttp: redirects: %w", err)
		}
		c.redirects = append(c.redirects, u)
	}
	for _, u := range append([]*url.URL{base}, c.redirects...) {
		c.private = append(c.private, named(u.Hostname())...)
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: c.control}
	var transport http.RoundTripper = newTransport(dialer)
	if len(cfg.Auth.Header) > 0 || cfg.Auth.Sign != nil {
		transport = &authorized{auth: cfg.Auth, base: base, now: time.Now, next: transport}
	}
	c.http = &http.Client{CheckRedirect: c.checkRedirect, Transport: transport}
	return c, nil
}

func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // a proxy from the environment would resolve names where we cannot check them
		DialContext:            dialer.DialContext,
		DisableCompression:     true, // the bytes as viewers see them
		ResponseHeaderTimeout:  headerTimeout,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        time.Minute,
		ForceAttemptHTTP2:      true,
		// Without pings a connection that a balancer dropped silently takes every request for minutes, each until its timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: dialTimeout},
	}
}

// ParseBase parses a URL prefix of the configuration: http or https with a host, and without user, query or fragment.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not a plain http or https URL (such as https://origin.example.com/media)", u.Redacted())
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// named returns the private addresses that a host in the configuration stands for by itself.
func named(host string) []netip.Prefix {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	return nil
}

// special ranges are no hosts of the public internet although netip does not call them private.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001:db8::/32"),
}

// metadata addresses answer with credentials; no configuration opens a way to them. Not all are link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
}

// allows says whether the client may connect to an address.
func (c *Client) allows(a netip.Addr) bool {
	a = a.Unmap()
	if v, ok := embedded(a); ok {
		a = v
	}
	for _, m := range metadata {
		if a == m {
			return false
		}
	}
	if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.Zone() != "" {
		return false
	}
	for _, p := range c.private {
		if p.Contains(a) {
			return true
		}
	}
	if a.IsPrivate() || a.IsLoopback() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// embedded returns the IPv4 address that a NAT64 or 6to4 address leads to.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

// control is asked for every address that is about to be connected to, after resolution.
func (c *Client) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !c.allows(ap.Addr()) {
		return fmt.Errorf("%w: the origin resolves to an address that is not allowed (list its range in seed.private if it is yours)", errRefused)
	}
	return nil
}

func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: more than %d redirects", errRefused, maxRedirects)
	}
	if _, ok := below(c.base, req.URL); ok {
		return nil
	}
	for _, r := range c.redirects {
		if _, ok := below(r, req.URL); ok {
			return nil
		}
	}
	return fmt.Errorf("%w: a redirect leads out of fetch_base (list its prefix if it is yours)", errRefused)
}

// below returns what comes behind base in u: path and query.
func below(base, u *url.URL) (string, bool) {
	if u.Scheme != base.Scheme || !strings.EqualFold(u.Host, base.Host) || u.User != nil {
		return "", false
	}
	path := u.EscapedPath()
	prefix := base.EscapedPath()
	if !strings.HasPrefix(path, prefix+"/") || climbs(path) {
		return "", false
	}
	rest := path[len(prefix):]
	if u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	return rest, true
}

// climbs says whether a path has dot segments, plain or hidden, or a backslash: servers differ in what they make of them.
func climbs(path string) bool {
	p := strings.ToLower(path)
	p = strings.ReplaceAll(p, "%2e", ".")
	p = strings.ReplaceAll(strings.ReplaceAll(p, "%5c", "/"), "%2f", "/")
	for _, element := range strings.Split(strings.ReplaceAll(p, `\`, "/"), "/") {
		if element == "." || element == ".." {
			return true
		}
	}
	return false
}

// browserQuery writes a query as browsers send it: a space in it would end the request's line.
func browserQuery(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"#<>'`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// request builds the request for a path below fetch_base.
func (c *Client) request(ctx context.Context, f seed.Fetch) (*http.Request, error) {
	path, query, _ := strings.Cut(f.Path, "?")
	if !strings.HasPrefix(path, "/") || climbs(path) {
		return nil, fmt.Errorf("%w: the path is not below fetch_base", errRefused)
	}
	u, err := url.Parse(c.base.Scheme + "://" + c.base.Host + c.base.EscapedPath() + path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	u.RawQuery = browserQuery(query)
	if _, ok := below(c.base, u); !ok {
		return nil, fmt.Errorf("%w: the path is not below fetch_base", errRefused)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept-Encoding", "identity")
	if f.Ranged {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", f.First, f.Last))
	}
	switch {
	case strings.Contains(f.Validator, `"`):
		req.Header.Set("If-None-Match", f.Validator)
	case f.Validator != "":
		req.Header.Set("If-Modified-Since", f.Validator)
	}
	return req, nil
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }
