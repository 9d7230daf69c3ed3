package live_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/app/live"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/cmaf"
	"github.com/leeway-video/leeway/internal/wire/mpd"
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
	checkDASH(t, s, clock)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// checkDASH reads the MPD: what it names by the clock is there, and begins where its place on the timeline says.
func checkDASH(t *testing.T, s *store, clock live.Clock) {
	t.Helper()
	text := s.file(live.DASHName)
	start, err := time.Parse(time.RFC3339, attribute(t, text, "availabilityStartTime"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.ParseInt(attribute(t, text, "startNumber"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"type": "dynamic", "availabilityTimeOffset": "0.75", "availabilityTimeComplete": "false", "timeShiftBufferDepth": "PT3S", "target": "840", "duration": "1000", "start": "PT1S",
	} {
		if got := attribute(t, text, name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	at := &url.URL{Scheme: "http", Host: "origin.test", Path: "/" + live.DASHName}
	publish, err := time.Parse(time.RFC3339, attribute(t, text, "publishTime"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := mpd.Read([]byte(text), at, publish)
	if err != nil || !manifest.Live || len(manifest.Representations) != len(clock.Renditions) {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, r := range manifest.Representations {
		if len(r.Segments) < 3 || !strings.Contains(text, `id="`+r.ID+`" codecs="avc1.`) {
			t.Errorf("%s has %d segments\n%s", r.ID, len(r.Segments), text)
		}
		header := s.file(r.Segments[0].URL.Path[1:])
		for _, one := range r.Segments[1:] {
			file := one.URL.Path[1:]
			testkit.Eventually(t, file+" is there", func() bool { return s.file(file) != "" })
			reader := cmaf.NewReader(strings.NewReader(header + s.file(file)))
			_, err := reader.Header()
			chunk, err2 := reader.Next()
			if err := errors.Join(err, err2); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			number, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(file, r.ID+"/live-"), ".m4s"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if late := chunk.Start - time.Duration(number-first)*clock.Segment; late < 0 || late > 25*time.Millisecond {
				t.Errorf("%s begins %v after its place", file, late)
			}
		}
	}
	// Both say when a segment was shown. The MPD's time does not begin with the stream.
	list := s.read(t, "high/index.m3u8")
	place := start.Add(clock.Segment + time.Duration(list.Sequence-first)*clock.Segment)
	if late := list.Segments[0].At.Sub(place); late < 0 || late > 25*time.Millisecond {
		t.Errorf("the playlist has segment %d %v after the MPD", list.Sequence, late)
	}
}

// attribute is the value of the first attribute of a name.
func attribute(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, " "+name+`="`)
	value, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		t.Fatalf("no %s\n%s", name, text)
	}
	return value
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
