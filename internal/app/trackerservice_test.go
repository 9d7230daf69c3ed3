package app

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
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
		"only proxies":                {"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"a proxy that writes rubbish": {"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		"a proxy without the header":  {"10.0.0.1:1", nil, "10.0.0.1"},
		"mapped addresses":            {"[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.5"}, "203.0.113.5"},
		"IPv6":                        {"[2001:db8::1]:1", []string{"2001:db9::7"}, "2001:db9::7"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		for _, f := range c.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		if got := clientAddress(r, proxies).String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
