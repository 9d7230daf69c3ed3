package netcheck

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/netstat"
)

// secured is served by TLS, with HTTP/2 or without.
func secured(t *testing.T, h http.Handler, http2 bool) *check {
	t.Helper()
	web := httptest.NewUnstartedServer(h)
	web.EnableHTTP2 = http2
	web.StartTLS()
	t.Cleanup(web.Close)
	base, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &check{
		Config: Config{Duration: 1500 * time.Millisecond, Streams: 2, Progress: func(Progress) {}}, phase: Responsiveness,
		server: newServer(base, "", &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}),
	}
	t.Cleanup(c.server.close)
	return c
}

// seen counts requests of a server by what was asked for.
type seen struct {
	http.Handler
	probes, own atomic.Int32 // small answers, and those of them on connections that carry load
	mu          sync.Mutex
	loaded      map[string]bool // guarded by mu: remote addresses of connections that carry load
}

// ServeHTTP implements http.Handler.
func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	switch {
	case !strings.HasSuffix(r.URL.Path, "/small"):
		s.loaded[r.RemoteAddr] = r.ProtoMajor == 2
	case s.loaded[r.RemoteAddr]:
		s.own.Add(1)
	default:
		s.probes.Add(1)
	}
	s.mu.Unlock()
	s.Handler.ServeHTTP(w, r)
}

// paced is a probe server that loads no processor: a download comes in small parts, and an upload is read so.
func paced() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/small") {
			if r.URL.Query().Get("close") == "1" {
				w.Header().Set("Connection", "close")
			}
			_, _ = w.Write(make([]byte, 1))
			return
		}
		part := make([]byte, 16<<10)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			var err error
			if r.Method == http.MethodPost {
				_, err = r.Body.Read(part)
			} else if _, err = w.Write(part); err == nil {
				err = http.NewResponseController(w).Flush()
			}
			select {
			case <-tick.C:
			case <-r.Context().Done():
				err = r.Context().Err()
			}
			if err != nil {
				tick.Stop()
				return
			}
		}
	})
}

// TestResponsivenessAsksOnTheLoad: each way, requests go to new connections and to those that carry load, and a figure comes; also
// where the server takes fewer connections than are wanted.
func TestResponsivenessAsksOnTheLoad(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var work sync.WaitGroup
	for _, d := range []netstat.Direction{netstat.Down, netstat.Up} {
		work.Go(func() {
			s := &seen{Handler: paced(), loaded: map[string]bool{}}
			c := secured(t, s, true)
			rpm, sure, err := c.responds(t.Context(), d)
			if err != nil || rpm <= 0 || sure != netstat.Low { // there is no time for more
				t.Errorf("%s: %v %q %v", d, rpm, sure, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.own.Load() == 0 || s.probes.Load() == 0 || len(s.loaded) != 2 {
				t.Errorf("%s: %d requests on the load, %d beside it, %d connections", d, s.own.Load(), s.probes.Load(), len(s.loaded))
			}
		})
	}
	work.Go(func() { // one more connection is refused: the test goes on with what it has
		var loads atomic.Int32
		h := paced()
		some := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/small") && loads.Add(1) > 1 {
				http.Error(w, "full", http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, r)
		})
		if rpm, _, err := secured(t, some, true).responds(t.Context(), netstat.Down); err != nil || rpm <= 0 || loads.Load() < 2 {
			t.Errorf("%v %v, %d loads", rpm, err, loads.Load())
		}
	})
	work.Wait()
}

// TestConnectionsThatCarryNoLoadYetCount: on a far line a handshake takes longer than an interval, and no answer has come when there are
// as many as may be.
func TestConnectionsThatCarryNoLoadYetCount(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var loads atomic.Int32
	c := secured(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		loads.Add(1)
		http.Error(w, "full", http.StatusServiceUnavailable)
	}), true)
	p := &responding{check: c, direction: netstat.Down}
	for range c.Streams + 2 {
		p.add(t.Context())
	}
	p.work.Wait()
	if n := int(loads.Load()); n != c.Streams {
		t.Errorf("%d connections, want %d", n, c.Streams)
	}
}

// TestResponsivenessEnds with an error where a server has no HTTP/2, refuses the load, or breaks it off.
func TestResponsivenessEnds(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	refuse := func(w http.ResponseWriter, r *http.Request) { http.Error(w, "full", http.StatusTooManyRequests) }
	cut := func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/small") {
			_, _ = w.Write(make([]byte, 1<<10))
			panic(http.ErrAbortHandler)
		}
	}
	for name, c := range map[string]*check{
		"no HTTP/2": secured(t, http.HandlerFunc(refuse), false), "refused": secured(t, http.HandlerFunc(refuse), true), "broken off": secured(t, http.HandlerFunc(cut), true),
	} {
		if rpm, _, err := c.responds(t.Context(), netstat.Down); err == nil {
			t.Errorf("%s: %v", name, rpm)
		}
	}
}

// TestGoodputRestsAsTheDraftHasIt: the moving average is by the time of four intervals from the first on, so that a steady line has come
// to rest with the seventh.
func TestGoodputRestsAsTheDraftHasIt(t *testing.T) {
	var bytes []int64
	var averages []float64
	for n := int64(1); n <= 8; n++ {
		bytes = append(bytes, 1_000_000*n)
		averages = append(averages, movingAverage(bytes))
		if want := min(8e6, 2e6*float64(n)); averages[n-1] != want {
			t.Errorf("after %d intervals %.0f bit/s, want %.0f", n, averages[n-1], want)
		}
		if got := netstat.Stable(averages); got != (n >= 7) {
			t.Errorf("after %d intervals at rest: %v", n, got)
		}
	}
}
