package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/testkit"
)

// Players of HLS and of DASH have the manifest of one folder, so they have one title; benches have the MPEG-TS.
func TestAFilmThatIsMadeHereIsOneTitleForHLSAndDASH(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	file := filepath.Join(t.TempDir(), "Own.mp4")
	if out, err := exec.Command("ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=24:duration=4", "-pix_fmt", "yuv420p", file).CombinedOutput(); err != nil {
		t.Fatalf("make a film: %v: %s", err, out)
	}
	p := PictureConfig{Media: file}
	var said strings.Builder
	env := Env{Stdout: &said, Stderr: io.Discard, Environ: []string{"XDG_CACHE_HOME=" + t.TempDir()}}
	source, dir, err := p.open(t.Context(), env, &testkit.Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	shown := p.shown("", source)
	if shown.Source != "/media/own/master.m3u8" || shown.DASH != "/media/own/master.mpd" {
		t.Errorf("the page plays %+v", shown)
	}
	h := source.Handler(origin.Viewer)
	for path, want := range map[string]string{
		shown.Source: "media_0.m3u8", shown.DASH: "$RepresentationID$-$Number%05d$.m4s", "/media/own/media_0.m3u8": "\n0-00001.m4s\n",
		"/media/own/ts/master.m3u8": "240p/index.m3u8", "/media/own/ts/240p/index.m3u8": "\nseg-00000.ts\n",
	} {
		if r := ask(h, "GET", path); r.Code != 200 || !strings.Contains(r.Body.String(), want) {
			t.Errorf("%s: %d, want %q:\n%s", path, r.Code, want, r.Body)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"film", file}, dir}, {[]string{"film", "--cmaf", file}, source.Root.Name()}} {
		said.Reset()
		if err := Run(t.Context(), c.args, env); err != nil || said.String() != c.want+"\n" {
			t.Errorf("leeway %s: %v, %q, want %s", c.args, err, said.String(), c.want)
		}
	}
}

// TestThePictureOfEachCommandIsItsOwn: the same flags set the keys of the section of the command that has them.
func TestThePictureOfEachCommandIsItsOwn(t *testing.T) {
	yes, window := true, time.Minute
	given := pictureFlags{Replay: &yes, Window: &window}
	want := PictureConfig{Replay: true, Window: window}
	for flags, of := range map[any]func(*Config) (own, other PictureConfig){
		&upCmd{pictureFlags: given}:     func(c *Config) (own, other PictureConfig) { return c.Up.PictureConfig, c.Origin.PictureConfig },
		&originCmd{pictureFlags: given}: func(c *Config) (own, other PictureConfig) { return c.Origin.PictureConfig, c.Up.PictureConfig },
	} {
		var config Config
		if err := overlay(&config, flags); err != nil {
			t.Fatal(err)
		}
		if own, other := of(&config); own != want || other != (PictureConfig{}) {
			t.Errorf("%T: its picture is %+v, the other one %+v", flags, own, other)
		}
	}
}

func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = path // as it is, dots included
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestThePageIsToldOfAnMPD(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "master.m3u8"), "#EXTM3U\n")
	o, err := origin.Open(dir, "/media/bbb/", &testkit.Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if shown := (PictureConfig{}).shown("", o); shown.DASH != "" || shown.Source != "/media/bbb/master.m3u8" {
		t.Errorf("without one the page is told of %+v", shown)
	}
	write(t, filepath.Join(dir, "master.mpd"), "<MPD/>")
	if shown := (PictureConfig{}).shown("", o); shown.DASH != "/media/bbb/master.mpd" {
		t.Errorf("the page is told of %+v", shown)
	}
	if r := ask(o.Handler(origin.Viewer), "GET", "/media/bbb/master.mpd"); r.Code != 200 || r.Header().Get("Content-Type") != "application/dash+xml" {
		t.Errorf("%d %v", r.Code, r.Header())
	}
}
