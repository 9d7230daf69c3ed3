package originhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
)

// TestABodyIsTakenAsItComes: each piece of it before the next one is sent.
func TestABodyIsTakenAsItComes(t *testing.T) {
	taken := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" || r.Header.Get("If-None-Match") != "" || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("asked with %v", r.Header)
		}
		w.Header().Set("ETag", `"one"`)
		for i := range 3 {
			fmt.Fprintf(w, "piece %d", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-taken:
			case <-r.Context().Done():
				return
			}
		}
	})
	c := client(t, Config{Base: s.URL + "/vod"})
	var all bytes.Buffer
	got, err := c.Flow(t.Context(), seed.Fetch{Path: "/a.m4s?v=2", MaxBytes: 1000, Ranged: true, Last: 5, Validator: `"one"`}, func(b []byte) error {
		all.Write(b)
		if all.Len()%7 == 0 {
			taken <- struct{}{}
		}
		return nil
	})
	if err != nil || all.String() != "piece 0piece 1piece 2" || got.ObjectLength != 21 || got.Validator != `"one"` || got.Path != "/a.m4s?v=2" || got.Sized || got.Data != nil {
		t.Errorf("%q, %+v, %v", all.String(), got, err)
	}
}

// TestALengthThatIsSaidAheadIsTold.
func TestALengthThatIsSaidAheadIsTold(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.m4s", time.Time{}, bytes.NewReader(film))
	})
	got, err := client(t, Config{Base: s.URL + "/vod"}).Flow(t.Context(), seed.Fetch{Path: "/a", MaxBytes: int64(len(film))}, func([]byte) error { return nil })
	if err != nil || !got.Sized || got.ObjectLength != int64(len(film)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnOriginsClockIsCompared: what is certain of it, by a Date of whole seconds that has been on its way, and by none that a cache has kept.
func TestAnOriginsClockIsCompared(t *testing.T) {
	for _, c := range []struct {
		origin   time.Duration // its clock is ahead
		age      string
		from, to time.Duration
	}{
		{0, "", 0, 0},
		{9 * time.Second, "", -9 * time.Second, -time.Second},
		{9 * time.Second, "0", -9 * time.Second, -time.Second},
		{-time.Hour, "", time.Hour - 2*time.Second, time.Hour},
		{-time.Hour, "3600", 0, 0},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(c.origin).UTC().Format(http.TimeFormat))
			if c.age != "" {
				w.Header().Set("Age", c.age)
			}
			if r.URL.Path == "/vod/none" {
				http.NotFound(w, r)
			}
		})
		o := client(t, Config{Base: s.URL + "/vod"})
		got, err := o.Flow(t.Context(), seed.Fetch{Path: "/a", MaxBytes: 1}, func([]byte) error { return nil })
		if err != nil || got.Clock < c.from || got.Clock > c.to {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
		_, err = o.Flow(t.Context(), seed.Fetch{Path: "/none", MaxBytes: 1}, func([]byte) error { return nil })
		if f := (*seed.FetchError)(nil); !errors.As(err, &f) || f.Clock < c.from || f.Clock > c.to {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestABodyThatMayNotBePassedOnIsNotTaken, nor one that is none.
func TestABodyThatMayNotBePassedOnIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  seed.Outcome
	}{
		"not there": {http.NotFound, seed.OutcomeNotFound},
		"an error":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, seed.OutcomeServer},
		"not for all": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write(film)
		}, seed.OutcomeRefused},
		"packed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(film)
		}, seed.OutcomeRefused},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:9/x", http.StatusFound)
		}, seed.OutcomeRefused},
		"a part of it":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, seed.OutcomeClient},
		"without its end": {endless, seed.OutcomeRefused},
	} {
		s := serve(t, c.serve)
		_, err := client(t, Config{Base: s.URL + "/vod"}).Flow(t.Context(), seed.Fetch{Path: "/a", MaxBytes: 1 << 20}, func([]byte) error {
			t.Errorf("%s: bytes are taken", name)
			return nil
		})
		if got := outcome(t, err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// endless sends a body that ends with the connection.
func endless(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc")
	_ = conn.Close()
}

// TestABodyThatDoesNotEndIsGivenUp: one that is silent, is cut off, or is too long, and one that is not wanted any more.
func TestABodyThatDoesNotEndIsGivenUp(t *testing.T) {
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		length  string // that the header says
		sends   int
		hangs   bool
		take    error
		silence time.Duration
		want    seed.Outcome
		taken   int
	}{
		"silent":                {"", 100, true, nil, 50 * time.Millisecond, seed.OutcomeTimeout, 100},
		"silent from the first": {"", 0, true, nil, 50 * time.Millisecond, seed.OutcomeTimeout, 0},
		"cut off":               {"200", 100, false, nil, time.Minute, seed.OutcomeNetwork, 100},
		"too long":              {"", 1500, false, nil, time.Minute, seed.OutcomeTooLarge, 1000},
		"too long by its own":   {"1500", 1500, false, nil, time.Minute, seed.OutcomeTooLarge, 1000},
		"not wanted":            {"", 100, true, enough, time.Minute, "", 100},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if c.length != "" {
				w.Header().Set("Content-Length", c.length)
			}
			_, _ = w.Write(film[:c.sends])
			_ = http.NewResponseController(w).Flush()
			if c.hangs {
				<-r.Context().Done()
			}
		})
		one := client(t, Config{Base: s.URL + "/vod"})
		one.silence = c.silence
		taken := 0
		_, err := one.Flow(t.Context(), seed.Fetch{Path: "/a", MaxBytes: 1000}, func(b []byte) error {
			taken += len(b)
			return c.take
		})
		switch {
		case taken != c.taken:
			t.Errorf("%s: %d bytes are taken, want %d", name, taken, c.taken)
		case c.take != nil:
			if err != enough {
				t.Errorf("%s: %v", name, err)
			}
		case outcome(t, err) != c.want:
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case c.silence < time.Minute && !strings.Contains(err.Error(), "sends nothing more"):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestABodyIsReadNoLongerThanItIsWanted: the context ends while the origin keeps the request.
func TestABodyIsReadNoLongerThanItIsWanted(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(film[:10])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := client(t, Config{Base: s.URL + "/vod"}).Flow(ctx, seed.Fetch{Path: "/a", MaxBytes: 1000}, func([]byte) error { cancel(); return nil })
	if outcome(t, err) != seed.OutcomeTimeout {
		t.Error(err)
	}
}
