package film

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tiny is a recipe that encodes in well under a second.
func tiny() Recipe {
	r := DefaultRecipe()
	r.Renditions = []Rendition{
		{Name: "90p", Height: 90, Video: 60_000, Audio: 32_000},
		{Name: "120p", Height: 120, Video: 120_000, Audio: 32_000},
	}
	r.Repeat = 3
	return r
}

// testFilm makes four seconds of ffmpeg's test picture with a tone.
func testFilm(t *testing.T, sound bool) string {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("no ffmpeg on PATH (apt-get install ffmpeg)")
	}
	file := filepath.Join(t.TempDir(), "My Film (1).mp4")
	args := []string{"-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=24:duration=4"}
	if sound {
		args = append(args, "-f", "lavfi", "-i", "sine=duration=4", "-shortest")
	}
	args = append(args, "-pix_fmt", "yuv420p", file)
	if out, err := exec.Command("ffmpeg", args...).CombinedOutput(); err != nil {
		t.Fatalf("make a test film: %v: %s", err, out)
	}
	return file
}

func TestPrepareEncodesOnceAndRepeats(t *testing.T) {
	file := testFilm(t, true)
	var lines []string
	o := Options{Cache: t.TempDir(), Recipe: tiny(), Progress: func(f string, a ...any) { lines = append(lines, f) }}
	dir, err := Prepare(t.Context(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	master, err := os.ReadFile(filepath.Join(dir, MasterName))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"90p/index.m3u8", "120p/index.m3u8", `CODECS="avc1.4d401e,mp4a.40.2"`, "AVERAGE-BANDWIDTH=", "RESOLUTION=160x90,"} {
		if !strings.Contains(string(master), want) {
			t.Errorf("master playlist lacks %q:\n%s", want, master)
		}
	}
	media, err := os.ReadFile(filepath.Join(dir, "90p", "index.m3u8"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(media), "#EXTINF:"); n < 3 || n > 4 {
		t.Errorf("4 s three times in segments of 4 s: got %d segments:\n%s", n, media)
	}
	if !strings.Contains(string(media), "#EXT-X-ENDLIST") {
		t.Error("the playlist has no end")
	}
	if len(lines) == 0 {
		t.Error("no progress lines")
	}

	lines = nil
	again, err := Prepare(t.Context(), file, o)
	if err != nil || again != dir || len(lines) != 0 {
		t.Errorf("second time: got %q, %v and %d progress lines, want the cached %q in silence", again, err, len(lines), dir)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Cache, "film", ".making-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPrepareWithoutSound(t *testing.T) {
	dir, err := Prepare(t.Context(), testFilm(t, false), Options{Cache: t.TempDir(), Recipe: tiny()})
	if err != nil {
		t.Fatal(err)
	}
	master, err := os.ReadFile(filepath.Join(dir, MasterName))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(master), "mp4a") {
		t.Errorf("a silent film claims sound:\n%s", master)
	}
}

func TestPrepareErrorsAreSentences(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("no film"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ffmpeg"); err == nil {
		_, err := Prepare(t.Context(), text, Options{Cache: t.TempDir(), Recipe: tiny()})
		if err == nil || !strings.Contains(err.Error(), "holds no video") {
			t.Errorf("a text file: got %v", err)
		}
	}
	if _, err := Prepare(t.Context(), text+".gone", Options{Cache: t.TempDir(), Recipe: tiny()}); err == nil {
		t.Error("a missing file: no error")
	}
}

func TestPrepareCanceledLeavesNothing(t *testing.T) {
	file := testFilm(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	cache := t.TempDir()
	_, err := Prepare(ctx, file, Options{Cache: cache, Recipe: tiny(), Progress: func(string, ...any) { cancel() }})
	if err == nil {
		t.Fatal("no error")
	}
	left, err := os.ReadDir(filepath.Join(cache, "film"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeyDependsOnRecipeAndSource(t *testing.T) {
	a, _ := DefaultRecipe().key("x")
	b, _ := DefaultRecipe().key("y")
	r := DefaultRecipe()
	r.Renditions[0].Video++
	c, _ := r.key("x")
	if a == b || a == c || len(a) != 16 {
		t.Errorf("keys %q %q %q", a, b, c)
	}
}

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{"My Film (1).mp4": "my-film-1", "/a/b/x.mkv": "x", "§§§.mp4": "film"} {
		if got := Slug(in); got != want {
			t.Errorf("Slug(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCacheDir(t *testing.T) {
	env := map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}
	if d, err := CacheDir(func(k string) string { return env[k] }); err != nil || d != "/x/leeway" {
		t.Errorf("got %q, %v", d, err)
	}
	env["XDG_CACHE_HOME"] = ""
	if d, err := CacheDir(func(k string) string { return env[k] }); err != nil || d != "/h/.cache/leeway" {
		t.Errorf("got %q, %v", d, err)
	}
}

func TestCMAFIsPackagedOnceAndNotEncoded(t *testing.T) {
	o := Options{Cache: t.TempDir(), Recipe: tiny()}
	dir, err := Prepare(t.Context(), testFilm(t, true), o)
	if err != nil {
		t.Fatal(err)
	}
	cmaf, err := PrepareCMAF(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	mpd := read(t, cmaf, DASHName)
	if n := strings.Count(mpd, "<Representation "); n != 3 {
		t.Errorf("%d representations, want two of pictures and one of sound:\n%s", n, mpd)
	}
	if n := strings.Count(mpd, "<AdaptationSet "); n != 2 {
		t.Errorf("%d sets, want one of pictures and one of sound:\n%s", n, mpd)
	}
	starts := regexp.MustCompile(`<S t="(\d+)"`).FindAllStringSubmatch(mpd, -1)
	for _, start := range starts {
		if start[1] != "0" {
			t.Errorf("a rendition begins at %s, want all of them at 0:\n%s", start[1], mpd)
		}
	}
	if len(starts) != 3 {
		t.Errorf("%d renditions say when they begin, want 3:\n%s", len(starts), mpd)
	}
	for _, name := range []string{"init-0.mp4", "0-00001.m4s", "1-00003.m4s"} {
		if _, err := os.Stat(filepath.Join(cmaf, name)); err != nil {
			t.Error(err)
		}
	}
	var lines int
	o.Progress = func(string, ...any) { lines++ }
	if again, err := PrepareCMAF(t.Context(), dir, o); err != nil || again != cmaf || lines != 0 {
		t.Errorf("second time: got %q, %v and %d progress lines, want the cached %q in silence", again, err, lines, cmaf)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Cache, "film", ".making-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCMAFListsForHLSWhatItListsForDASH(t *testing.T) {
	for _, sound := range []bool{true, false} {
		o := Options{Cache: t.TempDir(), Recipe: tiny()}
		dir, err := Prepare(t.Context(), testFilm(t, sound), o)
		if err != nil {
			t.Fatal(err)
		}
		cmaf, err := PrepareCMAF(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		master := read(t, cmaf, MasterName)
		for _, want := range []string{`NAME="90p"`, `NAME="120p"`, "RESOLUTION=160x90,", "\nmedia_0.m3u8\n", "\nmedia_1.m3u8\n"} {
			if !strings.Contains(master, want) {
				t.Errorf("sound %v: the master playlist lacks %q:\n%s", sound, want, master)
			}
		}
		if has := strings.Contains(master, `URI="media_2.m3u8"`) && strings.Contains(master, "mp4a") && strings.Contains(master, `AUDIO="sound"`); has != sound {
			t.Errorf("sound %v: the master playlist has it: %v\n%s", sound, has, master)
		}
		// What a rendition takes at most has the sound in it.
		band, sum := regexp.MustCompile(`BANDWIDTH=(\d+),AVERAGE-BANDWIDTH=(\d+)`).FindStringSubmatch(master), 0
		lists := []string{"media_0.m3u8"}
		if sound {
			lists = append(lists, "media_2.m3u8")
		}
		for _, list := range lists {
			m := track{playlist: list}
			if err := m.measure(cmaf); err != nil {
				t.Fatal(err)
			}
			sum += m.peak
		}
		if band == nil || band[1] != strconv.Itoa(sum) {
			t.Errorf("sound %v: %v, want a bandwidth of %d\n%s", sound, band, sum, master)
		}
		media := read(t, cmaf, "media_0.m3u8")
		if !strings.Contains(media, "#EXT-X-PLAYLIST-TYPE:VOD\n") || !strings.Contains(media, "#EXT-X-ENDLIST") || strings.Contains(media, "DATE-TIME") {
			t.Errorf("the playlist of a film that is whole, without dates:\n%s", media)
		}
		segments := regexp.MustCompile(`(?m)^0-\d+\.m4s$`).FindAllString(media, -1)
		if files, _ := filepath.Glob(filepath.Join(cmaf, "0-*.m4s")); len(segments) == 0 || len(files) != len(segments) {
			t.Errorf("%d segments are listed, and %d are there:\n%s", len(segments), len(files), media)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPrepareRemovesWhatEarlierVersionsLeft: of the cache, folders with the suffixes of old forms go; all else stays.
func TestPrepareRemovesWhatEarlierVersionsLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	o := Options{Cache: t.TempDir(), Recipe: tiny(), Progress: func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := o.Recipe.key(fmt.Sprintf("%s %d %d", file, info.Size(), info.ModTime().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	films := filepath.Join(o.Cache, "film")
	stay := []string{key, key + cmafSuffix, "holiday-dash", ".making-dash-1"}
	for _, name := range append(stay, key+"-dash", key+"-cmaf", "0123456789abcdef-dash") {
		if err := os.MkdirAll(filepath.Join(films, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(films, name, MasterName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if dir, err := Prepare(t.Context(), file, o); err != nil || dir != filepath.Join(films, key) {
		t.Fatalf("%s, %v", dir, err)
	}
	left, err := os.ReadDir(films)
	if err != nil || len(left) != len(stay) {
		t.Errorf("%v are left, %v", left, err)
	}
	for _, name := range stay {
		if _, err := os.Stat(filepath.Join(films, name, MasterName)); err != nil {
			t.Error(err)
		}
	}
	if len(said) != 3 || !strings.Contains(said[0], "removed") {
		t.Errorf("said %q", said)
	}
	if _, err := Prepare(t.Context(), file, o); err != nil || len(said) != 3 {
		t.Errorf("a second time it says %q, %v", said[3:], err)
	}
}

// TestAnInstallThatWasCutShortIsNoFFmpeg: npm writes where it installs, and is killed before it has written all of the program.
func TestAnInstallThatWasCutShortIsNoFFmpeg(t *testing.T) {
	tools := t.TempDir()
	t.Setenv("PATH", tools) // npm alone
	npm := func(then string) {
		script := `#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
to="$2/node_modules/@ffmpeg-installer/` + platform() + `"
/bin/mkdir -p "$to"
printf half > "$to/ffmpeg"
` + then
		if err := os.WriteFile(filepath.Join(tools, "npm"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Cache: t.TempDir()}
	npm("kill -9 $$")
	if _, err := o.findFFmpeg(t.Context()); err == nil {
		t.Error("an install that was killed gave no error")
	}
	npm(`printf whole > "$to/ffmpeg"`)
	path, err := o.findFFmpeg(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	npm("exit 1")
	if again, err := o.findFFmpeg(t.Context()); err != nil || again != path {
		t.Errorf("a third time: %s, %v", again, err)
	}
	if text := read(t, filepath.Dir(path), filepath.Base(path)); text != "whole" {
		t.Errorf("ffmpeg is %q", text)
	}
	if left, err := os.ReadDir(o.Cache); err != nil || len(left) != 1 {
		t.Errorf("in the cache are %v, %v", left, err)
	}
}
