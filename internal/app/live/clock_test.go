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

func smallClock() live.Clock {
	return live.Clock{Segment: time.Second, Window: 3 * time.Second, FPS: 24, Renditions: []live.Rendition{
		{Name: "low", Height: 90, Video: 60_000, Audio: 32_000}, {Name: "high", Height: 120, Video: 120_000, Audio: 32_000},
	}}
}

// TestClock: a real encoder, in real time.
func TestClock(t *testing.T) {
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
		w.WriteHeader(answer.StatusCode)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- smallClock().Run(ctx, live.Target{Base: server.URL + "/"}) }()
	testkit.Eventually(t, "there is a master playlist, and segments leave the others", func() bool {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		return s.file("master.m3u8") != "" && strings.Count(s.file("high/index.m3u8"), "#EXTINF:") == 3
	})
	for _, name := range []string{"low", "high"} {
		media := s.read(t, name+"/index.m3u8")
		last := media.Segments[len(media.Segments)-1]
		if !media.Live || media.Target != time.Second {
			t.Errorf("%+v", media)
		}
		// ffmpeg does not wait for the answer to a segment before it sends the playlist.
		testkit.Eventually(t, "the last segment is there", func() bool { return len(s.file(name+"/"+last.URI)) >= 1000 })
		if age := time.Since(last.At); age < 0 || age > 30*time.Second {
			t.Errorf("%s: the last segment began %v ago", name, age)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestClockSaysWhatFfmpegSays(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	c := smallClock()
	c.Renditions[0].Video = -1
	if err := c.Run(t.Context(), live.Target{Base: "http://127.0.0.1:1/"}); err == nil || !strings.Contains(err.Error(), "ffmpeg: exit status") {
		t.Error(err)
	}
}

func TestClockNeedsFfmpeg(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := smallClock().Run(t.Context(), live.Target{}); err == nil || !strings.Contains(err.Error(), "apt-get install ffmpeg") {
		t.Error(err)
	}
}
