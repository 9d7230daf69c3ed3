package originhttp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/viewer"
)

// fetched is what a player's Get told.
type fetched struct {
	viewer.Fetched
	err  error
	last int64
}

// wait asks and waits for the answer.
func wait(t *testing.T, p *Player, f viewer.Fetch) fetched {
	t.Helper()
	got, last := make(chan fetched, 1), int64(0)
	p.Get(f, func(n int64) { last = n }, func(r viewer.Fetched, err error) { got <- fetched{r, err, last} })
	select {
	case f := <-got:
		return f
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
		panic("unreachable")
	}
}

func TestPlayerFetches(t *testing.T) {
	defer goleak.VerifyNone(t)
	body := bytes.Repeat([]byte("segment "), 40_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/chunked":
			_, _ = w.Write(body[:100_000])
			w.(http.Flusher).Flush()
			_, _ = w.Write(body[100_000:])
		case "/whole":
			_, _ = w.Write(body) // ignores Range
		case "/gone":
			http.Error(w, "gone", http.StatusGone)
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(body[:10])
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
		}
	}))
	defer server.Close()
	p := NewPlayer(nil)
	defer p.Close()
	for _, path := range []string{"/a", "/chunked", "/moved"} {
		got := wait(t, p, viewer.Fetch{URL: server.URL + path})
		if got.err != nil || !bytes.Equal(got.Data, body) || got.Transfer <= 0 || got.last < 100_000 {
			t.Errorf("%s: %v, %d bytes in %v, last progress %d", path, got.err, len(got.Data), got.Transfer, got.last)
		}
		if path == "/moved" && !strings.HasSuffix(got.URL, "/there") {
			t.Errorf("moved to %s", got.URL)
		}
	}
	got := wait(t, p, viewer.Fetch{URL: server.URL + "/a", Ranged: true, First: 8, Last: 15})
	if got.err != nil || string(got.Data) != "segment " {
		t.Errorf("a range: %q %v", got.Data, got.err)
	}
	for path, want := range map[string]string{"/gone": "status 410", "/cut": "EOF", "/whole": "status 200"} {
		if got := wait(t, p, viewer.Fetch{URL: server.URL + path, Ranged: path == "/whole", Last: 7}); got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, got.err, want)
		}
	}
}

// TestPlayerTakesNoMoreThanItMay: an origin that sends a playlist without an end costs no more memory than one of the longest.
func TestPlayerTakesNoMoreThanItMay(t *testing.T) {
	defer goleak.VerifyNone(t)
	const most = 1 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte("#EXTINF:4,\na.ts\n"), 4096)
		switch r.URL.Path {
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/announced":
			w.Header().Set("Content-Length", strconv.Itoa(most+1))
			_, _ = w.Write(chunk)
		case "/longest":
			_, _ = w.Write(make([]byte, most/2))
			w.(http.Flusher).Flush()
			_, _ = w.Write(make([]byte, most/2))
		}
	}))
	defer server.Close()
	p := NewPlayer(nil)
	defer p.Close()
	for _, path := range []string{"/endless", "/announced"} {
		if got := wait(t, p, viewer.Fetch{URL: server.URL + path, MaxBytes: most}); !errors.Is(got.err, viewer.ErrTooLarge) || got.last > most || got.Data != nil {
			t.Errorf("%s: %v, %d bytes were taken", path, got.err, got.last)
		}
	}
	if got := wait(t, p, viewer.Fetch{URL: server.URL + "/longest", MaxBytes: most}); got.err != nil || len(got.Data) != most {
		t.Errorf("as many as it may: %d bytes, %v", len(got.Data), got.err)
	}
}

func TestPlayerIsCanceledAndDialsAsItIsTold(t *testing.T) {
	defer goleak.VerifyNone(t)
	begun := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	dialed := false
	p := NewPlayer(func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed = true
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	got := make(chan error, 1)
	cancel := p.Get(viewer.Fetch{URL: server.URL}, func(int64) {}, func(_ viewer.Fetched, err error) { got <- err })
	<-begun
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) || !dialed {
		t.Errorf("canceled: %v, dialed %v", err, dialed)
	}
	p.Get(viewer.Fetch{URL: server.URL}, func(int64) {}, func(_ viewer.Fetched, err error) { got <- err })
	<-begun
	p.Close() // waits for what is on its way
	if err := <-got; err == nil {
		t.Error("closed, and goes on")
	}
}

// TestPlayerHearsOfASegmentAsItComes: the origin makes the rest once the player has the beginning.
func TestPlayerHearsOfASegmentAsItComes(t *testing.T) {
	defer goleak.VerifyNone(t)
	body := bytes.Repeat([]byte("segment "), 40_000)
	heard, begun := 0, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body[:100_000])
		w.(http.Flusher).Flush()
		select {
		case <-begun:
			_, _ = w.Write(body[100_000:])
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	p := NewPlayer(nil)
	defer p.Close()
	got := wait(t, p, viewer.Fetch{URL: server.URL, Growing: &viewer.Growing{Plays: time.Second, Heard: func(b []byte, unshared bool) {
		if !bytes.HasPrefix(body[heard:], b) || !unshared {
			t.Errorf("other bytes at %d, or that they are not to be stored is not said", heard)
		}
		was := heard
		if heard += len(b); was < 100_000 && heard >= 100_000 {
			close(begun)
		}
	}}})
	if got.err != nil || !bytes.Equal(got.Data, body) || heard < 100_000 {
		t.Errorf("%v, %d bytes, %d heard", got.err, len(got.Data), heard)
	}
}
