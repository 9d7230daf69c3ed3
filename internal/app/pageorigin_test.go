package app

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestARefusedPageIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		check := pageOrigin(func(o string) bool { return o == "https://video.example.com" }, slog.New(slog.NewTextHandler(&out, nil)))
		ask := func(origin string, want bool) {
			t.Helper()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Origin", origin)
			if got := check(r); got != want {
				t.Errorf("%q: %v", origin, got)
			}
		}
		lines := func(want int) {
			t.Helper()
			if n := strings.Count(out.String(), "a page was refused"); n != want {
				t.Errorf("%d lines, want %d:\n%s", n, want, &out)
			}
		}
		ask("https://video.example.com", true)
		ask("", true)
		lines(0)
		for range 3 {
			ask("https://"+strings.Repeat("x", 1000), false)
		}
		lines(1)
		if out.Len() > 2*loggedOrigin {
			t.Errorf("logs all of a long origin: %d bytes", out.Len())
		}
		<-time.After(time.Minute)
		ask("http://localhost:3000", false)
		lines(2)
		if !strings.Contains(out.String(), "origin=http://localhost:3000") {
			t.Errorf("no origin:\n%s", &out)
		}
	})
}

func TestOnlyTheTrackersOwnPageAsksAsAnother(t *testing.T) {
	const page = "https://www.example.com"
	for name, c := range map[string]struct{ target, origin, want string }{
		"its own page":              {"https://t.example/?page=" + page, "https://t.example", page},
		"its own page, in capitals": {"https://t.example/?page=" + page, "https://T.example", page},
		"its own page, as itself":   {"https://t.example/", "https://t.example", "https://t.example"},
		"another site's page":       {"https://t.example/?page=" + page, "https://evil.example", "https://evil.example"},
		"another port of its host":  {"https://t.example/?page=" + page, "https://t.example:8443", "https://t.example:8443"},
		"a sandboxed page":          {"https://t.example/?page=" + page, "null", "null"},
		"a program":                 {"https://t.example/?page=" + page, "", ""},
		"what is no origin":         {"https://t.example/?page=x", "https://t.example", "https://t.example"},
	} {
		r := httptest.NewRequest(http.MethodGet, c.target, nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if got := askedOrigin(r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
