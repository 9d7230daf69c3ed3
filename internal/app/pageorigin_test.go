package app

import (
	"bytes"
	"log/slog"
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
