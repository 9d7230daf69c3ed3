package app

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func testProxies(t testing.TB, header string) proxies {
	t.Helper()
	p, err := newProxies(TrackerConfig{TrustedProxies: []string{"10.0.0.0/8", "2001:db8::/32"}, ProxyHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestClientAddress(t *testing.T) {
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                    {"203.0.113.5:1", nil, "203.0.113.5"},
		"a client that writes itself": {"203.0.113.5:1", []string{"198.51.100.1"}, "203.0.113.5"},
		"one proxy":                   {"10.0.0.1:1", []string{"203.0.113.5"}, "203.0.113.5"},
		"two proxies, two headers":    {"10.0.0.1:1", []string{"203.0.113.5", "10.0.0.2"}, "203.0.113.5"},
		"a lie before the proxy":      {"10.0.0.1:1", []string{"198.51.100.1, 203.0.113.5"}, "203.0.113.5"},
		"a lie in a header before":    {"10.0.0.1:1", []string{"198.51.100.1", "203.0.113.5"}, "203.0.113.5"},
		"a client that names a proxy": {"10.0.0.1:1", []string{"10.9.9.9, 203.0.113.5"}, "203.0.113.5"},
		"only proxies":                {"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"a proxy that writes rubbish": {"10.0.0.1:1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"a proxy without the header":  {"10.0.0.1:1", nil, "10.0.0.1"},
		"mapped addresses":            {"[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.5"}, "203.0.113.5"},
		"IPv6":                        {"[2001:db8::1]:1", []string{"2001:db9::7"}, "2001:db9::7"},
		"a port":                      {"10.0.0.1:1", []string{"203.0.113.5:4711"}, "203.0.113.5"},
		"IPv6 and a port":             {"10.0.0.1:1", []string{"[2001:db9::7]:4711"}, "2001:db9::7"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		for _, f := range c.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		r.Header.Add("Forwarded", "for=192.0.2.66") // which this proxy passes on as it came
		p := testProxies(t, headerXForwardedFor)
		if got := p.client(r).String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestRegion: what a viewer writes itself says nothing.
func TestRegion(t *testing.T) {
	for name, c := range map[string]struct {
		remote string
		said   []string
		want   string
	}{
		"a trusted proxy":                     {"10.0.0.1:1", []string{"DE"}, "de"},
		"a viewer without a proxy":            {"203.0.113.5:1", []string{"DE"}, ""},
		"a viewer's header before it":         {"10.0.0.1:1", []string{"us", " de "}, "de"},
		"no header":                           {"10.0.0.1:1", nil, ""},
		"an empty header":                     {"10.0.0.1:1", []string{""}, ""},
		"the longest label":                   {"10.0.0.1:1", []string{strings.Repeat("a", maxRegion)}, strings.Repeat("a", maxRegion)},
		"a longer one":                        {"10.0.0.1:1", []string{strings.Repeat("a", maxRegion+1)}, ""},
		"a space in it":                       {"10.0.0.1:1", []string{"de by"}, ""},
		"no ASCII":                            {"10.0.0.1:1", []string{"dé"}, ""},
		"a proxy with an IPv4-mapped address": {"[::ffff:10.0.0.1]:1", []string{"fr"}, "fr"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		for _, s := range c.said {
			r.Header.Add("CF-IPCountry", s)
		}
		p := testProxies(t, headerXForwardedFor)
		if got := p.regionOf(r); got != "" {
			t.Errorf("%s: %q without a header to look at", name, got)
		}
		p.region = "cf-ipcountry"
		if got := p.regionOf(r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestForwarded(t *testing.T) {
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"one proxy":                    {"10.0.0.1:1", []string{"for=203.0.113.5"}, "203.0.113.5"},
		"everything it may say":        {"10.0.0.1:1", []string{`by=203.0.113.43;For="203.0.113.5:4711" ; proto=https;host="a;b,c"`}, "203.0.113.5"},
		"IPv6":                         {"10.0.0.1:1", []string{`for="[2001:db9::7]:4711"`}, "2001:db9::7"},
		"IPv6 without a port":          {"10.0.0.1:1", []string{`for="[2001:db9::7]"`}, "2001:db9::7"},
		"two proxies":                  {"10.0.0.1:1", []string{"for=203.0.113.5, for=10.0.0.2"}, "203.0.113.5"},
		"two headers":                  {"10.0.0.1:1", []string{"for=203.0.113.5", "for=10.0.0.2"}, "203.0.113.5"},
		"a lie before the proxy":       {"10.0.0.1:1", []string{"for=198.51.100.1", "for=203.0.113.5"}, "203.0.113.5"},
		"a lie with half a quote":      {"10.0.0.1:1", []string{`for="198.51.100.1`, "for=203.0.113.5"}, "203.0.113.5"},
		"a lie that swallows the rest": {"10.0.0.1:1", []string{`for=198.51.100.1;x=", for=203.0.113.5`}, "203.0.113.5"},
		"a lie that hides in a string": {"10.0.0.1:1", []string{`for="x,for=198.51.100.1", for=203.0.113.5`}, "203.0.113.5"},
		"no proxy":                     {"203.0.113.5:1", []string{"for=198.51.100.1"}, "203.0.113.5"},
		"a hidden client":              {"10.0.0.1:1", []string{"for=_secret"}, "10.0.0.1"},
		"an unknown one":               {"10.0.0.1:1", []string{"for=198.51.100.1, for=unknown"}, "10.0.0.1"},
		"an element without it":        {"10.0.0.1:1", []string{"for=198.51.100.1, proto=https"}, "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"Forwarded": c.forwarded, "X-Forwarded-For": {"192.0.2.66"}}}
		p := testProxies(t, headerForwarded)
		if got := p.client(r).String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// FuzzForwarded: whatever a client writes before it, the last element is the proxy's, and no client is taken for another by a
// header alone.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "for=198.51.100.1", `for="198.51.100.1`, `for=1.2.3.4;x="`, `a="\"";for=1.2.3.4`, `\",,;;==`, "[::1]", "for=10.0.0.9", `"\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		for _, header := range []string{headerForwarded, headerXForwardedFor} {
			own := "203.0.113.5"
			if header == headerForwarded {
				own = "for=" + own
			}
			p := testProxies(t, header)
			for _, values := range [][]string{{written, own}, {written + ", " + own}} { // a line of its own, or the client's
				r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{http.CanonicalHeaderKey(header): values}}
				if got := p.client(r); got != netip.MustParseAddr("203.0.113.5") {
					t.Errorf("%s: %q made the client %s", header, values, got)
				}
				r.RemoteAddr = "203.0.113.6:1"
				if got := p.client(r); got != netip.MustParseAddr("203.0.113.6") {
					t.Errorf("%s: %q of no proxy made the client %s", header, values, got)
				}
			}
		}
	})
}
