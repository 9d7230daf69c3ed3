package ingest

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/packaging"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
)

// gated is an upload whose body ends when its gate is closed. begun is closed when it is read.
type gated struct {
	io.Reader
	begun, gate chan struct{}
	once        sync.Once
}

func (g *gated) Read(b []byte) (int, error) {
	g.once.Do(func() { close(g.begun) })
	<-g.gate
	return g.Reader.Read(b)
}

func newRoot(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func newPackager(t *testing.T, root *os.Root) *packaging.Packager {
	t.Helper()
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := packaging.New(packaging.Settings{Site: rules, Key: testkit.PackagerKey(t), Root: root, Path: "/live/", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAPlaylistThatIsDeletedStaysSo: a packager that ends does not wait for the answer to its last playlist before it deletes that.
func TestAPlaylistThatIsDeletedStaysSo(t *testing.T) {
	for name, published := range map[string]bool{"the first version": false, "another version": true} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(t)
			p := newPackager(t, root)
			v := New(p, func(string, *packaging.Plan, error) {})
			answer := func(method string, body io.Reader) int {
				w := httptest.NewRecorder()
				v.ServeHTTP(w, httptest.NewRequest(method, "/live.m3u8", body))
				return w.Code
			}
			const text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
			if published {
				answer(http.MethodPut, strings.NewReader(text))
			}
			g := &gated{Reader: strings.NewReader(text), begun: make(chan struct{}), gate: make(chan struct{})}
			var both sync.WaitGroup
			both.Go(func() { answer(http.MethodPut, g) })
			<-g.begun
			both.Go(func() {
				if got := answer(http.MethodDelete, nil); got != http.StatusNoContent {
					t.Errorf("answered %d", got)
				}
			})
			for waiting := 0; waiting < 2; runtime.Gosched() {
				v.mu.Lock()
				waiting = v.publishing["live.m3u8"].waiting
				v.mu.Unlock()
			}
			close(g.gate)
			both.Wait()
			if names, err := fs.ReadDir(root.FS(), "."); err != nil || len(names) > 0 {
				t.Errorf("what is left of a playlist that was deleted: %v, %v", names, err)
			}
		})
	}
}

// TestTwoReceiversOfOneFolderWriteFilesOfTheirOwn: in containers each of them is process 1, and has begun to count.
func TestTwoReceiversOfOneFolderWriteFilesOfTheirOwn(t *testing.T) {
	root := newRoot(t)
	type upload struct {
		*gated
		text   string
		answer chan int
	}
	var uploads []upload
	for _, text := range []string{"first", "the other"} {
		p := newPackager(t, root)
		v := New(p, func(_ string, _ *packaging.Plan, err error) { t.Error(err) })
		u := upload{&gated{Reader: strings.NewReader(text), begun: make(chan struct{}), gate: make(chan struct{})}, text, make(chan int, 1)}
		go func() {
			w := httptest.NewRecorder()
			v.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/1.ts", u.gated))
			u.answer <- w.Code
		}()
		<-u.begun
		uploads = append(uploads, u)
	}
	for _, u := range uploads {
		close(u.gate)
		if code := <-u.answer; code != http.StatusCreated {
			t.Errorf("%q: %d", u.text, code)
		}
		if there, err := root.ReadFile("1.ts"); err != nil || string(there) != u.text {
			t.Errorf("%q, %v after the upload of %q", there, err, u.text)
		}
	}
}
