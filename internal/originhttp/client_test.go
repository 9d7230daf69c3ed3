package originhttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/seed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var film = bytes.Repeat([]byte("0123456789"), 1000)

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func outcome(t *testing.T, err error) seed.Outcome {
	t.Helper()
	if err == nil {
		return seed.OutcomeOK
	}
	var f *seed.FetchError
	if !errors.As(err, &f) {
		t.Fatalf("error of no outcome: %v", err)
	}
	return f.Outcome
}

func TestGetWholeAndRange(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/vod/a.m4s" || r.URL.RawQuery != "v=2" || r.Header.Get("Cookie") != "" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(film))
	})
	c := client(t, Config{Base: s.URL + "/vod/"})
	got, err := c.Get(context.Background(), seed.Fetch{Path: "/a.m4s?v=2", MaxBytes: 1 << 20, Shared: true})
	if err != nil || !bytes.Equal(got.Data, film) || got.ObjectLength != int64(len(film)) || got.Validator != `"one"` || got.Path != "/a.m4s?v=2" {
		t.Fatalf("whole: %v, %v", got, err)
	}
	part := seed.Fetch{Path: "/a.m4s?v=2", Ranged: true, First: 10, Last: 29, MaxBytes: 20, Shared: true}
	got, err = c.Get(context.Background(), part)
	if err != nil || string(got.Data) != "01234567890123456789" || got.ObjectLength != int64(len(film)) {
		t.Fatalf("range: %v, %v", got, err)
	}
	_, err = c.Get(context.Background(), seed.Fetch{Path: "/a.m4s?v=2", MaxBytes: 1 << 20, Validator: `"one"`})
	if o := outcome(t, err); o != seed.OutcomeNotModified {
		t.Errorf("with the validator: %s", o)
	}
	var f *seed.FetchError
	_, err = c.Get(context.Background(), seed.Fetch{Path: "/a.m4s?v=2", MaxBytes: 9999})
	if !errors.As(err, &f) || f.Outcome != seed.OutcomeTooLarge || f.ObjectLength != int64(len(film)) {
		t.Errorf("above the bound: %v", err)
	}
}

func TestOriginThatIgnoresRange(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10000")
		_, _ = w.Write(film)
	})
	c := client(t, Config{Base: s.URL})
	got, err := c.Get(context.Background(), seed.Fetch{Path: "/a", Ranged: true, First: 15, Last: 19, MaxBytes: 100})
	if err != nil || string(got.Data) != "56789" || got.ObjectLength != 10000 {
		t.Errorf("cut out of the whole: %v, %v", got, err)
	}
	_, err = c.Get(context.Background(), seed.Fetch{Path: "/a", Ranged: true, First: 9999, Last: 10000, MaxBytes: 100})
	if o := outcome(t, err); o != seed.OutcomeRefused {
		t.Errorf("past the end: %s", o)
	}
}

func TestStatusesHaveOutcomes(t *testing.T) {
	for status, want := range map[int]seed.Outcome{
		404: seed.OutcomeNotFound, 410: seed.OutcomeNotFound, 403: seed.OutcomeClient, 500: seed.OutcomeServer, 503: seed.OutcomeServer,
		206: seed.OutcomeClient, 204: seed.OutcomeClient,
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := client(t, Config{Base: s.URL}).Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 1})
		if o := outcome(t, err); o != want {
			t.Errorf("status %d: %s, want %s", status, o, want)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	release := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-release })
	defer close(release)
	_, err := client(t, Config{Base: s.URL}).Get(ctx, seed.Fetch{Path: "/a", MaxBytes: 1})
	if o := outcome(t, err); o != seed.OutcomeTimeout {
		t.Errorf("slow origin: %s", o)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err = client(t, Config{Base: gone.URL}).Get(context.Background(), seed.Fetch{Path: "/a?token=secret", MaxBytes: 1})
	if o := outcome(t, err); o != seed.OutcomeNetwork || strings.Contains(err.Error(), "secret") {
		t.Errorf("origin that is not there: %v", err)
	}
}

func TestWhatIsNotForEveryoneIsRefused(t *testing.T) {
	for _, c := range []struct {
		key, value string
		refused    bool
	}{
		{"Set-Cookie", "a=1", true}, {"Cache-Control", "max-age=1, Private", true}, {"Cache-Control", `private="x"`, true},
		{"Cache-Control", "no-store", true}, {"Cache-Control", "max-age=0, No-Store ", true}, {"Cache-Control", "no-cache", false}, {"Cache-Control", "max-age=0", false},
		{"Cache-Control", "public", false}, {"Vary", "Cookie", true}, {"Vary", "*", true}, {"Vary", "Accept-Encoding, origin", false},
		{"Vary", "Origin, User-Agent", true}, {"Content-Encoding", "gzip", true}, {"Content-Encoding", "identity", false},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(c.key, c.value)
			_, _ = w.Write([]byte("x"))
		})
		cl := client(t, Config{Base: s.URL})
		_, err := cl.Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 10, Shared: true})
		if got := outcome(t, err) == seed.OutcomeRefused; got != c.refused {
			t.Errorf("%s: %s: refused %v", c.key, c.value, got)
		}
		if _, err := cl.Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 10}); err != nil && c.value != "gzip" {
			t.Errorf("%s: %s: a playlist is refused: %v", c.key, c.value, err)
		}
		s = serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(c.key, c.value)
			w.WriteHeader(http.StatusNotModified)
		})
		_, err = client(t, Config{Base: s.URL}).Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 10, Shared: true, Validator: `"a"`})
		if got := outcome(t, err) == seed.OutcomeRefused; got != (c.refused && c.key != "Content-Encoding") {
			t.Errorf("%s: %s of what is not modified: refused %v", c.key, c.value, got)
		}
	}
}

func TestRedirectsStayBelowTheBase(t *testing.T) {
	var target string
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("other")) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/vod/a" {
			http.Redirect(w, r, target, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	c := client(t, Config{Base: s.URL + "/vod", Redirects: []string{other.URL + "/listed"}})
	for to, want := range map[string]seed.Outcome{
		"/vod/b":                     seed.OutcomeOK,
		"/vod/../etc":                seed.OutcomeRefused,
		"/vod/%2e%2e/etc":            seed.OutcomeRefused,
		"/vodka/b":                   seed.OutcomeRefused,
		"/vod/a":                     seed.OutcomeRefused, // a circle
		other.URL + "/listed/x":      seed.OutcomeOK,
		other.URL + "/elsewhere":     seed.OutcomeRefused,
		"http://169.254.169.254/vod": seed.OutcomeRefused,
		"file:///etc/passwd":         seed.OutcomeRefused,
	} {
		target = to
		_, err := c.Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 10})
		if o := outcome(t, err); o != want {
			t.Errorf("redirect to %s: %s (%v), want %s", to, o, err, want)
		}
	}
	for _, path := range []string{"/../x", "/%2e%2e/x", "x", "//evil.example.com/x/..", `/a\..\b`} {
		_, err := c.Get(context.Background(), seed.Fetch{Path: path, MaxBytes: 10})
		if o := outcome(t, err); o != seed.OutcomeRefused {
			t.Errorf("path %s: %s", path, o)
		}
	}
}

func TestAddressesAreCheckedWhenConnecting(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) })
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	// A name that looks public and resolves to loopback, as after DNS rebinding: what the resolver says is stood in for
	// by asking control directly, and by a base that names another private address than the one connected to.
	c := client(t, Config{Base: "http://10.1.2.3" + port})
	if err := c.control("tcp4", "127.0.0.1"+port, nil); !errors.Is(err, errRefused) {
		t.Errorf("loopback behind another base: %v", err)
	}
	public := client(t, Config{Base: "https://origin.example.com", Private: []netip.Prefix{netip.MustParsePrefix("10.8.0.0/16")}})
	for addr, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "10.8.1.1": true, "10.9.1.1": false, "127.0.0.1": false, "::1": false,
		"169.254.169.254": false, "fe80::1": false, "fd00:ec2::254": false, "fd12::1": false, "192.168.1.1": false, "100.64.0.1": false,
		"0.0.0.0": false, "::": false, "224.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:93.184.216.34": true,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "192.0.2.1": false, "240.0.0.1": false,
	} {
		if got := public.allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: allowed %v", addr, got)
		}
	}
	local := client(t, Config{Base: "http://localhost" + port, Private: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}})
	for _, a := range []string{"100.100.100.200", "192.0.0.192", "168.63.129.16", "fd20:ce::254", "64:ff9b::a9fe:a9fe"} {
		if local.allows(netip.MustParseAddr(a)) {
			t.Errorf("the way to the metadata at %s is open", a)
		}
	}
	if local.allows(netip.MustParseAddr("169.254.169.254")) || !local.allows(netip.MustParseAddr("127.0.0.1")) {
		t.Error("localhost names loopback, and nothing opens the way to metadata")
	}
	if _, err := local.Get(context.Background(), seed.Fetch{Path: "/a", MaxBytes: 10}); err != nil {
		t.Errorf("localhost: %v", err)
	}
}

func TestBadConfigurationIsNamed(t *testing.T) {
	for _, base := range []string{"", "ftp://x/", "http://user@x/", "http://x/?q", "/vod", "http://x/#f"} {
		if _, err := New(Config{Base: base}); err == nil || !strings.Contains(err.Error(), "fetch_base") {
			t.Errorf("base %q: %v", base, err)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-1/2")
	f.Add("bytes 0-1/*")
	f.Add("bytes -1--1/0")
	f.Fuzz(func(t *testing.T, v string) {
		if first, last, total, ok := contentRange(v); ok && (first > last || last >= total && total != 0) {
			t.Errorf("%q: %d-%d/%d", v, first, last, total)
		}
	})
}
