package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/testkit"
)

// TestACertificateThatEnds is told of at the start and in the metrics, ends readiness, and is forgotten when it was renewed.
func TestACertificateThatEnds(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cert, key := writePairUntil(t, dir, "film.test", now.Add(24*time.Hour))
	var log strings.Builder
	p, err := openPair(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "ends soon") {
		t.Fatalf("%v %s", err, log.String())
	}
	registry, err := promreg.New(nil, certificateEndMetric)
	if err != nil {
		t.Fatal(err)
	}
	p.count(registry)
	end := func() string {
		return fmt.Sprintf("%s %s\n", certificateEndMetric.Name, formatted(p.loaded.Load().Leaf.NotAfter))
	}
	if page := metricsPage(t, registry); !strings.Contains(page, end()) {
		t.Errorf("no %q in\n%s", end(), page)
	}
	if err := p.ready(); err != nil {
		t.Error(err)
	}
	p.now = func() time.Time { return now.Add(25 * time.Hour) }
	if err := p.ready(); err == nil || !strings.Contains(err.Error(), cert+" ended at") {
		t.Errorf("after its end: %v", err)
	}
	writePairUntil(t, dir, "film.test", now.Add(90*24*time.Hour))
	later := now.Add(time.Hour) // of the files: another stamp than the first
	for _, file := range []string{cert, key} {
		if err := os.Chtimes(file, later, later); err != nil {
			t.Fatal(err)
		}
	}
	p.now = func() time.Time { return now.Add(26 * time.Hour) }
	if err := p.ready(); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if page := metricsPage(t, registry); !strings.Contains(page, end()) {
		t.Errorf("renewed: no %q in\n%s", end(), page)
	}
	if err := (*pair)(nil).ready(); err != nil {
		t.Errorf("no certificate: %v", err)
	}
}

// TestATrackerWhoseCertificateHasEndedIsNotReady: a balancer sends viewers elsewhere.
func TestATrackerWhoseCertificateHasEndedIsNotReady(t *testing.T) {
	cert, key := writePairUntil(t, t.TempDir(), "film.test", time.Now().Add(-time.Hour))
	r := startUp(t, "--media="+testkit.TinyFilm(t), "--tls-cert", cert, "--tls-key", key)
	if code, text := fetch(t, "GET", r.admin+"/readyz"); code != 503 || !strings.Contains(text, "ended at") {
		t.Errorf("%d %s", code, text)
	}
}

// formatted is a time as the metrics page writes it.
func formatted(at time.Time) string {
	return strconv.FormatFloat(float64(at.Unix()), 'g', -1, 64)
}

func metricsPage(t *testing.T, registry *promreg.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// TestHandshakesDoNotWaitForTheFiles: a file system that hangs must not hold up clients.
func TestHandshakesDoNotWaitForTheFiles(t *testing.T) {
	cert, key := writePair(t, t.TempDir(), "film.test")
	p, err := openPair(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.now = func() time.Time { return time.Now().Add(pairEvery) }
	p.looking.Lock() // as while the files are looked at
	defer p.looking.Unlock()
	if c, err := p.get(nil); err != nil || c != p.loaded.Load() {
		t.Errorf("%v %v", c, err)
	}
}
