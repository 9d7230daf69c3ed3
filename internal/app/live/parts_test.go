package live_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/app/live"
	"github.com/leeway-video/leeway/internal/testkit"
)

// TestClockInParts: a real encoder, in real time. Each part is there before a playlist lists it, and a segment is its parts.
func TestClockInParts(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	s := newStore()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := s.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		if name := strings.TrimPrefix(r.URL.Path, "/"); strings.HasSuffix(name, "index.m3u8") {
			checkParts(t, s, name)
		}
		w.WriteHeader(answer.StatusCode)
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := smallClock()
	clock.Part = 250 * time.Millisecond
	ended := make(chan error, 1)
	go func() { ended <- clock.Run(ctx, live.Target{Base: server.URL + "/", Client: client}) }()
	testkit.Eventually(t, "there is a master playlist, and segments leave the others", func() bool {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		return s.file("master.m3u8") != "" && strings.Count(s.file("high/index.m3u8"), "#EXTINF:") == 3 && !strings.Contains(s.file("high/index.m3u8"), "EXTINF:1.02")
	})
	low := s.read(t, "low/index.m3u8").LowLatency
	if low == nil || !low.Blocks || low.PartTarget < 271*time.Millisecond || low.PartTarget > 290*time.Millisecond || low.HoldBack < 3*low.PartTarget {
		t.Errorf("%+v", low)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// checkParts looks at a playlist when it is published.
func checkParts(t *testing.T, s *store, name string) {
	media, folder := s.read(t, name), strings.TrimSuffix(name, "index.m3u8")
	if media.LowLatency == nil {
		t.Error("a playlist without parts")
		return
	}
	for i, one := range media.Segments {
		whole := s.file(folder + one.URI)
		if whole == "" || one.At.IsZero() || one.Init == nil || s.file(folder+one.Init.URI) == "" {
			t.Errorf("segment %s: %d bytes, %+v", one.URI, len(whole), one)
		}
		if i < len(media.Segments)-3 {
			continue
		}
		parts, seconds := "", 0.0
		for n, part := range one.Parts {
			if part.Independent != (n == 0) || part.Duration > media.LowLatency.PartTarget.Seconds() {
				t.Errorf("part %d of %s: %+v", n, one.URI, part)
			}
			parts, seconds = parts+s.file(folder+part.URI), seconds+part.Duration
		}
		if parts != whole || len(one.Parts) != 4 || seconds-one.Duration > 1e-5 || one.Duration-seconds > 1e-5 {
			t.Errorf("segment %s has %d bytes in %g s, its %d parts have %d in %g s", one.URI, len(whole), one.Duration, len(one.Parts), len(parts), seconds)
		}
	}
	if g := media.LowLatency.Growing; g != nil {
		for _, part := range g.Parts {
			if s.file(folder+part.URI) == "" {
				t.Errorf("part %s is listed and not there", part.URI)
			}
		}
	}
	if hint := media.LowLatency.Hint; hint == nil || s.file(folder+hint.URI) != "" {
		t.Errorf("hint at %+v", hint)
	}
}
