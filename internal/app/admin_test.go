package app

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
)

func TestAdminPurge(t *testing.T) {
	var sent bus.RevokeMessage
	down := false
	a := &admin{
		metrics: http.NotFoundHandler(), ready: func() error { return nil }, sites: []string{"demo"},
		now: func() time.Time { return time.UnixMilli(1234) }, log: slog.New(slog.DiscardHandler),
		send: func(subject string, data []byte) error {
			if down {
				return errors.New("down")
			}
			if subject != bus.SubjectRevoke {
				t.Errorf("subject %s", subject)
			}
			return bus.Decode(data, &sent)
		},
	}
	s := httptest.NewServer(a.mux())
	defer s.Close()
	address := strings.TrimPrefix(s.URL, "http://")

	out, errs, code := leeway(t, nil, "purge", "demo", "/media/x/", "--admin", address)
	if code != 0 || out != "purged demo /media/x/\n" {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if len(sent.Revocations) != 1 || sent.Revocations[0].Prefix != "/media/x/" || sent.Revocations[0].MinIssuedAt != 1234 {
		t.Errorf("sent %+v", sent)
	}
	if _, errs, code := leeway(t, nil, "purge", "demmo", "/", "--admin", address); code != 1 || !strings.Contains(errs, `did you mean "demo"`) {
		t.Errorf("an unknown site: %d %q", code, errs)
	}
	if _, errs, code := leeway(t, nil, "purge", "demo", "media", "--admin", address); code != 1 || !strings.Contains(errs, "slash") {
		t.Errorf("a prefix without slash: %d %q", code, errs)
	}
	down = true
	if _, errs, code := leeway(t, nil, "purge", "demo", "/", "--admin", address); code != 1 || !strings.Contains(errs, "bus is down") {
		t.Errorf("no bus: %d %q", code, errs)
	}
	r, err := http.Post(s.URL+"/purge", "text/plain", bytes.NewReader([]byte(`{"site":"demo","prefix":"/"}`)))
	if err != nil || r.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form from a page: %v %v", r, err)
	}
	_ = r.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

func TestAdminHealth(t *testing.T) {
	var notReady error
	a := &admin{metrics: http.NotFoundHandler(), ready: func() error { return notReady }, now: time.Now, log: slog.New(slog.DiscardHandler)}
	get := func(path string) int {
		w := httptest.NewRecorder()
		a.mux().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code
	}
	if get("/healthz") != 200 || get("/readyz") != 200 || get("/debug/pprof/") != 200 {
		t.Error("a healthy process does not say so")
	}
	notReady = errors.New("draining")
	if get("/healthz") != 200 || get("/readyz") != 503 {
		t.Error("a draining process is healthy and not ready")
	}
}
