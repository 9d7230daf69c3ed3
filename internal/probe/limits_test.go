package probe

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wsconn"
)

// TestTestsAtATimeAreBounded: an address has so many, and all have so many; an end makes room.
func TestTestsAtATimeAreBounded(t *testing.T) {
	inBubble(t, Config{MaxTests: 3, MaxPerAddress: 2}, func(t *testing.T, w *world) {
		first, second := w.must("/ndt/v7/upload"), w.must("/ndt/v7/upload")
		if _, err := w.open("/ndt/v7/upload"); err == nil || !strings.Contains(err.Error(), "429") {
			t.Errorf("a third test of one address: %v", err)
		}
		if r, _, err := w.request("GET", "/probe/v1/download?bytes=1", nil); err != nil || r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
			t.Errorf("an HTTP test beside them: %v", err)
		}
		w.from = "198.51.100.8"
		third := w.must("/ndt/v7/upload")
		w.from = "198.51.100.9"
		if _, err := w.open("/ndt/v7/upload"); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("a fourth test: %v", err)
		}
		if w.server.Ready() == nil {
			t.Error("a full server is ready")
		}
		for _, b := range []*wsconn.Bulk{first, second, third} {
			b.Close(true)
		}
		w.ends(ndt7Upload, endClient, 3)
		w.must("/ndt/v7/upload").Close(true)
		if w.server.Ready() != nil || w.metrics.Value(mRefused, refusedAddress) != 2 || w.metrics.Value(mRefused, refusedTotal) != 1 {
			t.Error("refusals are not counted, or there is no room again")
		}
		w.server.ended.Wait()
	})
}

// TestBytesOfADay: an address that has used up its bytes is refused, also in the middle of a test, and has some again later.
func TestBytesOfADay(t *testing.T) {
	const day = 4 << 20
	inBubble(t, Config{DailyBytes: day}, func(t *testing.T, w *world) {
		b := w.must("/ndt/v7/download")
		h := hear(t, b)
		b.Close(false)
		if h.bytes < day/2 || h.bytes > day {
			t.Errorf("%d bytes of %d", h.bytes, day)
		}
		w.ends(ndt7Download, endBytes, 1)
		up := w.must("/ndt/v7/upload")
		go send(up, 1<<16, time.Now().Add(time.Minute))
		if h := hear(t, up); !errors.Is(h.end, io.EOF) {
			t.Errorf("an upload beyond the budget ends with %v", h.end)
		}
		up.Close(false)
		w.ends(ndt7Upload, endBytes, 1)
		for n := 0; ; n++ {
			if r, _, err := w.request("GET", "/probe/v1/small", nil); err != nil {
				t.Fatal(err)
			} else if r.StatusCode == http.StatusTooManyRequests {
				break
			} else if n > 4096 {
				t.Fatal("requests cost nothing")
			}
		}
		w.from = "198.51.100.8"
		if r, got, err := w.request("GET", "/probe/v1/download?bytes=1000", nil); err != nil || r.StatusCode != 200 || len(got) != 1000 {
			t.Errorf("another address: %d bytes, %v", len(got), err)
		}
		w.from = "198.51.100.7"
		<-time.After(12 * time.Hour)
		if r, got, err := w.request("GET", "/probe/v1/download?bytes=1000000", nil); err != nil || r.StatusCode != 200 || len(got) != 1_000_000 {
			t.Errorf("half a day later: %d bytes, %v", len(got), err)
		}
	})
}

// TestEachRequestIsPaidFor: what is refused, is not there, or is a page, costs as well.
func TestEachRequestIsPaidFor(t *testing.T) {
	inBubble(t, Config{DailyBytes: 4 * startCost}, func(t *testing.T, w *world) {
		page := Page(w.server, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		for i, ask := range []struct {
			method, path string
			answered     int
		}{
			{"OPTIONS", "/probe/v1/upload", 4 * startCost / smallCost},
			{"GET", "/nothing", 4 * startCost / smallCost},
			{"POST", "/probe/v1/small", 4 * startCost / smallCost},
			{"POST", "/probe/v1/quality?dscp=x", 4 * startCost / smallCost},
			{"GET", "/ndt/v7/download", 4 * startCost / smallCost},
			{"GET", "/probe/v1/download?bytes=0", 4 * startCost / smallCost},
			{"GET", "/probe/v1/info", 4 * startCost / smallCost},
			{"GET", "/check", 2},
		} {
			h := http.Handler(w.server)
			if ask.path == "/check" {
				h = page
			}
			answered := 0
			for ; answered < 1000; answered++ {
				r := httptest.NewRequest(ask.method, ask.path, nil)
				r.RemoteAddr = fmt.Sprintf("198.51.100.%d:4000", 10+i)
				told := httptest.NewRecorder()
				if h.ServeHTTP(told, r); told.Code == http.StatusTooManyRequests {
					break
				}
			}
			if answered != ask.answered {
				t.Errorf("%s %s: %d are answered, want %d", ask.method, ask.path, answered, ask.answered)
			}
		}
	})
}

func TestTokens(t *testing.T) {
	authorize := func(token string) error {
		if token != "good" {
			return errors.New("it has run out")
		}
		return nil
	}
	inBubble(t, Config{Authorize: authorize}, func(t *testing.T, w *world) {
		for path, want := range map[string]string{"": "401", "?access_token=bad": "403"} {
			if _, err := w.open("/ndt/v7/download" + path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", path, err)
			}
			for _, other := range []string{"/probe/v1/download", "/probe/v1/small", "/probe/v1/info"} {
				if r, _, err := w.request("GET", other+path, nil); err != nil || r.Status[:3] != want {
					t.Errorf("%s%s: %v", other, path, err)
				}
			}
		}
		w.must("/ndt/v7/download?access_token=good").Close(true)
		if r, got, err := w.request("GET", "/probe/v1/small", nil, "Authorization", "Bearer good"); err != nil || r.StatusCode != 200 || len(got) != 1 {
			t.Errorf("a good token: %v", err)
		}
		if got := w.metrics.Value(mRefused, refusedToken); got != 8 {
			t.Errorf("%v refused", got)
		}
		w.server.ended.Wait()
	})
}

// TestMemoryOfAddressesIsBounded: a flood of addresses shares what those before have left.
func TestMemoryOfAddressesIsBounded(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		flood(t, w.server, maxNetworks+100)
		if n := w.server.bytes.Len(); n != maxNetworks {
			t.Errorf("%d networks are remembered", n)
		}
	})
}
