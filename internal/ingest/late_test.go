package ingest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/ingest"
	"github.com/leeway-video/leeway/internal/packaging"
)

// TestASegmentThatNeverComesIsWaitedForOnce, and not with each playlist that names it: parts come faster than the wait is over.
func TestASegmentThatNeverComesIsWaitedForOnce(t *testing.T) {
	s := newStation(t)
	synctest.Test(t, func(t *testing.T) {
		receiver := ingest.New(s.packager, func(string, *packaging.Plan, error) {})
		put := func(path, text string) time.Duration {
			began, w := time.Now(), httptest.NewRecorder()
			receiver.ServeHTTP(w, httptest.NewRequest(http.MethodPut, path, strings.NewReader(text)))
			if w.Code/100 != 2 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
			return time.Since(began)
		}
		list := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
		for i, c := range []struct {
			there bool
			wait  time.Duration
		}{{false, time.Second}, {true, 0}, {true, 0}, {false, time.Second}, {true, 0}} {
			name := fmt.Sprintf("%d.ts", i)
			if c.there {
				put("/"+name, "x")
			}
			list += "#EXTINF:4,\n" + name + "\n"
			if waited := put("/live.m3u8", list); waited != c.wait {
				t.Errorf("playlist %d waited %v, want %v", i, waited, c.wait)
			}
		}
	})
	if named := s.named("live.m3u8"); len(named) != 3 {
		t.Errorf("the list names %v", named)
	}
}
