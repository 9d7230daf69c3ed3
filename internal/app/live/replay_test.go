package live_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/app/live"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store takes what is pushed, and is the client's transport: no socket is needed.
type store struct {
	mu    sync.Mutex
	files map[string]string // guarded by mu
	fails bool              // guarded by mu
}

func newStore() *store { return &store{files: map[string]string{}} }

func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := httptest.NewRecorder()
	file := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case s.fails:
		http.Error(w, "the disk is full", http.StatusInternalServerError)
	case r.Method == http.MethodPut:
		s.files[file] = string(body)
	case s.files[file] == "":
		http.NotFound(w, r)
	default:
		delete(s.files, file)
	}
	return w.Result(), nil
}

func (s *store) target() live.Target {
	return live.Target{Base: "http://ingest.test/", Client: &http.Client{Transport: s}}
}

func (s *store) file(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[name]
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files)
}

func (s *store) read(t *testing.T, file string) *playlist.Media {
	t.Helper()
	text := s.file(file)
	_, media, err := playlist.Read([]byte(text))
	if err != nil || media == nil {
		t.Fatalf("%s: %v\n%s", file, err, text)
	}
	return media
}

// film has two renditions of five segments of 2 s; the last one has 1 s.
func film() fstest.MapFS {
	files := fstest.MapFS{"master.m3u8": {Data: []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nlow/index.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2000\nhigh/index.m3u8\n")}}
	for _, name := range []string{"low", "high"} {
		list := "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
		for i := range 5 {
			seconds := 2
			if i == 4 {
				seconds = 1
			}
			list += fmt.Sprintf("#EXTINF:%d,\nseg-%d.ts\n", seconds, i)
			files[fmt.Sprintf("%s/seg-%d.ts", name, i)] = &fstest.MapFile{Data: []byte(fmt.Sprint(name, i))}
		}
		files[name+"/index.m3u8"] = &fstest.MapFile{Data: []byte(list + "#EXT-X-ENDLIST\n")}
	}
	return files
}

// TestReplay looks at a stream once a second, for four rounds of its film.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := live.OpenReplay(film())
		if err != nil {
			t.Fatal(err)
		}
		r.Window = 6 * time.Second
		s := newStore()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx, s.target()) }()
		synctest.Wait()
		last := int64(0)
		for range 36 {
			for _, name := range []string{"low", "high"} {
				last = look(t, s, name, last)
			}
			if n := s.count(); n > 3+2*8 {
				t.Errorf("%d files are there", n)
			}
			sleep.For(t.Context(), time.Second)
			synctest.Wait()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// look checks one playlist against the clock, and returns its last number.
func look(t *testing.T, s *store, name string, last int64) int64 {
	t.Helper()
	media := s.read(t, name+"/index.m3u8")
	if !media.Live || len(media.Segments) != 3 || media.Target != 2*time.Second {
		t.Fatalf("%+v", media)
	}
	for i, one := range media.Segments {
		number := media.Sequence + int64(i)
		if want := fmt.Sprint(name, number%5); s.file(name+"/"+one.URI) != want || one.URI != fmt.Sprintf("live-%d.ts", number) {
			t.Errorf("segment %d is %q in %s, want %q", number, s.file(name+"/"+one.URI), one.URI, want)
		}
	}
	end := media.Segments[2].At.Add(time.Duration(media.Segments[2].Duration * float64(time.Second)))
	if late := time.Since(end); late < 0 || late >= 2*time.Second {
		t.Errorf("the stream ends %v ago", late)
	}
	if media.Sequence+2 < last {
		t.Errorf("number %d came after %d", media.Sequence+2, last)
	}
	breaks := strings.Count(s.file(name+"/index.m3u8"), "#EXT-X-DISCONTINUITY\n")
	if wraps := (media.Sequence+2)/5 - (media.Sequence-1)/5; int64(breaks) != wraps {
		t.Errorf("%d discontinuities, the film begins %d times", breaks, wraps)
	}
	return media.Sequence + 2
}

// TestReplaysOfOneFilmAgree: also one that starts later.
func TestReplaysOfOneFilmAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stores []*store
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			r, err := live.OpenReplay(film())
			if err != nil {
				t.Fatal(err)
			}
			s := newStore()
			stores = append(stores, s)
			wg.Go(func() {
				if err := r.Run(ctx, s.target()); err != nil {
					t.Error(err)
				}
			})
			sleep.For(t.Context(), 17*time.Second+time.Millisecond)
			synctest.Wait()
		}
		if a, b := stores[0].file("low/index.m3u8"), stores[1].file("low/index.m3u8"); a != b || a == "" {
			t.Errorf("%s\n%s", a, b)
		}
		cancel()
		wg.Wait()
	})
}

// TestReplayIsLate: nothing is published while the source is late, and all of it once it is not.
func TestReplayIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := live.OpenReplay(film())
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		late := time.Duration(0)
		r.Late = func() time.Duration { mu.Lock(); defer mu.Unlock(); return late }
		set := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); late = d }
		s := newStore()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx, s.target()) }()
		behind := func() time.Duration {
			synctest.Wait()
			media := s.read(t, "low/index.m3u8")
			return time.Since(media.Segments[len(media.Segments)-1].At)
		}
		sleep.For(t.Context(), 20*time.Second)
		if d := behind(); d >= 4*time.Second+lookSlack {
			t.Errorf("%v behind before it is late", d)
		}
		set(5 * time.Second)
		sleep.For(t.Context(), 10*time.Second)
		if d := behind(); d < 5*time.Second || d >= 9*time.Second+lookSlack {
			t.Errorf("%v behind while it is 5 s late", d)
		}
		set(0)
		sleep.For(t.Context(), lookSlack)
		if d := behind(); d >= 4*time.Second+lookSlack {
			t.Errorf("%v behind after it was late", d)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

const lookSlack = 200 * time.Millisecond

func TestReplaySaysWhatItCannotPush(t *testing.T) {
	r, err := live.OpenReplay(film())
	if err != nil {
		t.Fatal(err)
	}
	s := newStore()
	s.fails = true
	err = r.Run(t.Context(), s.target())
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Error(err)
	}
}

func TestReplaySaysWhatItCannotReplay(t *testing.T) {
	for want, change := range map[string]func(fstest.MapFS){
		"file does not exist":         func(f fstest.MapFS) { delete(f, "high/index.m3u8") },
		"has no end":                  func(f fstest.MapFS) { replace(f, "low/index.m3u8", "#EXT-X-ENDLIST\n", "") },
		"files of their own":          func(f fstest.MapFS) { replace(f, "low/index.m3u8", "seg-2.ts", "#EXT-X-BYTERANGE:10@0\nseg-2.ts") },
		"cut at the same places":      func(f fstest.MapFS) { replace(f, "high/index.m3u8", "#EXTINF:1,\nseg-4.ts\n", "") },
		"is no master playlist":       func(f fstest.MapFS) { f["master.m3u8"] = f["low/index.m3u8"] },
		"is not in the film's folder": func(f fstest.MapFS) { replace(f, "low/index.m3u8", "seg-2.ts", "../../etc/passwd") },
		"the playlist has no segments": func(f fstest.MapFS) {
			f["low/index.m3u8"] = &fstest.MapFile{Data: []byte("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-ENDLIST\n")}
		},
	} {
		f := film()
		change(f)
		if _, err := live.OpenReplay(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
}

func replace(f fstest.MapFS, file, old, with string) {
	f[file] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(f[file].Data), old, with))}
}
