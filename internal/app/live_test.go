package app

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/app/live"
	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// shortFilm is testkit.TinyFilm in segments of a tenth of a second: its replay goes on while a test looks.
func shortFilm(t *testing.T) string {
	t.Helper()
	dir := testkit.TinyFilm(t)
	list := filepath.Join(dir, "240p", "index.m3u8")
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte(strings.ReplaceAll(string(text), "#EXTINF:4,", "#EXTINF:0.1,")), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

var liveSegment1 = regexp.MustCompile(`live-\d+\.ts`)

// TestUpReplays: what is in a playlist is there and signed, what has left it goes, and its digest stays.
func TestUpReplays(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startUp(t, "--media="+shortFilm(t), "--replay", "--window=10s")
	_, page := fetch(t, "GET", r.page+"/")
	if !strings.Contains(page, "/media/live/master.m3u8") {
		t.Errorf("the page is of another film:\n%s", page)
	}
	at := r.page + "/media/live/240p/"
	code, list := fetch(t, "GET", at+"index.m3u8")
	first := liveSegment1.FindString(list)
	if code != 200 || first == "" || strings.Contains(list, "ENDLIST") || !strings.Contains(list, "PROGRAM-DATE-TIME") {
		t.Fatalf("%d %s", code, list)
	}
	middle := liveSegment1.FindAllString(list, -1)[50]
	if code, text := fetch(t, "GET", at+first); code != 200 || len(text) != 40_000 {
		t.Errorf("%s: %d, %d bytes", first, code, len(text))
	}
	_, text := fetch(t, "GET", at+"index.m3u8.leeway")
	signed, err := certificate.ParseList([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	named := map[segment.Name]bool{}
	for _, one := range signed {
		named[one.Name] = true
	}
	if len(named) < 100 || !named[segment.WholeName("/media/live/240p/"+middle)] {
		t.Errorf("%d names are signed", len(named))
	}
	testkit.Eventually(t, middle+" leaves the playlist", func() bool {
		_, now := fetch(t, "GET", at+"index.m3u8")
		return !strings.Contains(now, middle)
	})
	testkit.Eventually(t, first+" is gone, a playlist's length after it left the playlist", func() bool {
		code, _ := fetch(t, "GET", at+first)
		return code == 404
	})
	token, err := readToken(filepath.Join(r.dir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	_, text = fetch(t, "GET", strings.Replace(r.admin, "//", "//any:"+token+"@", 1)+"/origin/digests")
	var kept map[string]string
	if err := json.Unmarshal([]byte(text), &kept); err != nil || len(kept["/media/live/240p/"+first]) != 64 {
		t.Errorf("%v, %d digests", err, len(kept))
	}
	begin := time.Now()
	if err := r.stop(); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("stopped after %v: %v", time.Since(begin), err)
	}
}

// TestViewerCommandOnALiveStream: it pauses, and says how far behind the clock it is.
func TestViewerCommandOnALiveStream(t *testing.T) {
	defer goleak.VerifyNone(t)
	up := startUp(t, "--media="+noisyFilm(t, 8, 70_000), "--replay", "--window=10s")
	manifest := up.page + "/media/live/master.m3u8"
	out, errs, code := leeway(t, nil, "viewer", "--no-peers", "--pause=500ms=500ms", "--catch-up=1.5", "--leave=3s", manifest)
	var s viewer.Summary
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.Ended != "left" || s.Leaps != 0 {
		t.Errorf("%d %s%s", code, out, errs)
	}
	// It joins three segments behind the end, which the clock may be a segment ahead of, and pauses for half of one.
	if s.LatencyMs < 2500 || s.LatencyMs > 6000 || s.LagMs < 2500 || s.LagMs > 6000 {
		t.Errorf("%d ms behind the clock on average, %d ms at the end", s.LatencyMs, s.LagMs)
	}
	if !strings.Contains(errs, "s behind live") {
		t.Errorf("the progress does not say how far behind the clock it is:\n%s", errs)
	}
	_ = up.stop()
}

// TestUpShowsAClock: a real encoder.
func TestUpShowsAClock(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	defer goleak.VerifyNone(t)
	before := folders(t)
	r := startUp(t, "--live")
	if code, list := fetch(t, "GET", r.page+"/media/live/240p/index.m3u8"); code != 200 || !strings.Contains(list, "PROGRAM-DATE-TIME") {
		t.Errorf("%d %s", code, list)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if after := folders(t); after > before {
		t.Errorf("%d folders of streams are left, %d were there before", after, before)
	}
}

var livePart1 = regexp.MustCompile(`live-\d+\.\d+\.m4s`)

// TestUpShowsAClockInParts: a request for what comes next waits for it, and what is published in parts is signed as a whole.
func TestUpShowsAClockInParts(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	defer goleak.VerifyNone(t)
	r := startUp(t, "--live", "--low-latency")
	at := r.page + "/media/live/240p/"
	read := func(query string) *playlist.Media {
		code, text := fetch(t, "GET", at+"index.m3u8"+query)
		_, media, err := playlist.Read([]byte(text))
		if code != 200 || err != nil || media == nil || media.LowLatency == nil || media.LowLatency.Hint == nil {
			t.Fatalf("%d %v %s", code, err, text)
		}
		return media
	}
	media := read("")
	for range 4 {
		sequence, part := media.Next()
		hint := media.LowLatency.Hint.URI
		if code, text := fetch(t, "GET", at+hint); code != 200 || !strings.Contains(text, "moof") {
			t.Errorf("%s: %d, %d bytes", hint, code, len(text))
		}
		media = read(fmt.Sprintf("?_HLS_msn=%d&_HLS_part=%d", sequence, part))
		if next, n := media.Next(); next < sequence || next == sequence && n <= part {
			t.Errorf("part %d of %d was asked for, and part %d of %d is next", part, sequence, n, next)
		}
	}
	if code, _ := fetch(t, "GET", at+"index.m3u8?_HLS_msn=1&_HLS_part=x"); code != 400 {
		t.Errorf("a part that is no number: %d", code)
	}
	// A player of DASH asks for the segment that these are parts of.
	sequence, _ := media.Next()
	if code, text := fetch(t, "GET", fmt.Sprintf("%slive-%d.m4s", at, sequence)); code != 200 || strings.Count(text, "moof") != 4 {
		t.Errorf("segment %d: %d, %d parts", sequence, code, strings.Count(text, "moof"))
	}
	_, text := fetch(t, "GET", r.page+"/media/live/"+live.DASHName)
	if !strings.Contains(text, fmt.Sprintf("value=%q", origin.ClockName)) {
		t.Errorf("the MPD names no clock of the origin: %s", text)
	}
	_, text = fetch(t, "GET", r.page+"/media/live/manifest.mpd.240p.leeway")
	if _, err := certificate.ParseList([]byte(text)); err != nil {
		t.Errorf("the list of a representation: %v", err)
	}
	_, text = fetch(t, "GET", at+"index.m3u8.leeway")
	if signed, err := certificate.ParseList([]byte(text)); err != nil || len(signed) < 2 {
		t.Errorf("%d are signed: %v", len(signed), err)
	}
	// On a slow machine a link may take longer than the first viewer stays. Each is alone, and the first one of DASH comes when those of HLS have left.
	for _, name := range []string{live.MasterName, live.DASHName} {
		pushed := int64(0)
		for try := 1; try <= 3 && pushed == 0; try++ {
			pushed = playsLow(t, r.page+"/media/live/"+name, 4+4*try).Stats.Parts["seed"]
		}
		if pushed == 0 {
			t.Errorf("the seed has pushed nothing to three viewers of %s", name)
		}
	}
	// Four parts were asked for above, before the viewer came.
	if _, text := fetch(t, "GET", r.page+"/demo/ledger"); len(livePart1.FindAllString(text, -1)) < 6 {
		t.Errorf("the viewer has not played parts: %s", text)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// playsLow plays a low-latency stream for some seconds.
func playsLow(t *testing.T, manifest string, seconds int) viewer.Summary {
	t.Helper()
	out, errs, code := leeway(t, nil, "viewer", "--low-latency", fmt.Sprintf("--leave=%ds", seconds), manifest)
	var s viewer.Summary
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.Ended != "left" || s.LatencyMs <= 0 || s.LagMs <= 0 || s.Stats.RejectedBytes > 0 || s.Banned > 0 {
		t.Errorf("%d %s%s", code, out, errs)
	}
	t.Logf("%s: %d ms behind, %v, %v, %d stalls, %d errors %s", manifest, s.LatencyMs, s.Stats.Bytes, s.Stats.Parts, s.Stats.Stalls, s.Errors, s.LastError)
	return s
}

// folders counts those of streams.
func folders(t *testing.T) int {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "leeway-live-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(left)
}

func TestUpNeedsFfmpegForAClock(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := tryUp(t, "--live"); err == nil || !strings.Contains(err.Error(), "apt-get install ffmpeg") {
		t.Error(err)
	}
}

func TestUpSaysWhichPicturesDoNotGoTogether(t *testing.T) {
	for _, args := range [][]string{{"--live", "--replay"}, {"--live", "--media=film.mp4"}, {"--replay", "--site=site.yaml"}, {"--low-latency"}, {"--low-latency", "--replay"}, {"--live", "--part=200ms"}, {"--live", "--low-latency", "--part=50ms"}, {"--segment=3s"}, {"--window=1s"}, {"--origin-fault=late", "--media=" + testkit.TinyFilm(t)}} {
		if _, errs, code := leeway(t, nil, append([]string{"up", "--data-dir=" + t.TempDir()}, args...)...); code != 2 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if _, errs, code := leeway(t, []string{"LEEWAY_UP_LIVE=true", "LEEWAY_UP_REPLAY=true"}, "up", "--data-dir="+t.TempDir()); code != 2 || !strings.Contains(errs, "give one of them") {
		t.Errorf("%d %s", code, errs)
	}
}
