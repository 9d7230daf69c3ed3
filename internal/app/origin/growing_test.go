package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
)

// channel publishes a stream in parts of an origin with real sockets.
type channel struct {
	*testing.T
	origin *Server
	client *http.Client
	url    string
}

func newChannel(t *testing.T) *channel {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	o, err := Open(t.TempDir(), "/media/live/", &testkit.Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	server := httptest.NewServer(o.Handler(Viewer))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &channel{t, o, &http.Client{Transport: transport}, server.URL + "/media/live/"}
}

func (c *channel) publish(file, text string) {
	c.Helper()
	if folder, _, is := strings.Cut(file, "/"); is {
		if err := c.origin.Root.MkdirAll(folder, 0o755); err != nil {
			c.Fatal(err)
		}
	}
	if err := c.origin.Root.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	if err := c.origin.Published(file); err != nil {
		c.Fatal(err)
	}
}

// list publishes a playlist. A request waits for three of its target durations.
func (c *channel) list() {
	c.publish("low/index.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:20\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n#EXT-X-MEDIA-SEQUENCE:6\n#EXTINF:2,\nlive-6.m4s\n#EXT-X-PART:DURATION=0.5,URI=\"live-7.0.m4s\"\n")
}

func (c *channel) ask(ctx context.Context, method, file string) *http.Response {
	c.Helper()
	q, err := http.NewRequestWithContext(ctx, method, c.url+file, nil)
	if err != nil {
		c.Fatal(err)
	}
	r, err := c.client.Do(q)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = r.Body.Close() })
	return r
}

// reads checks that so much of an answer is there.
func (c *channel) reads(r *http.Response, want string) {
	c.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.Body, got); err != nil || string(got) != want {
		c.Fatalf("%q, %v; want %q", got, err, want)
	}
}

func (c *channel) ends(r *http.Response, want error) {
	c.Helper()
	if rest, err := io.ReadAll(r.Body); len(rest) > 0 || !errors.Is(err, want) {
		c.Errorf("then %q, %v; want %v", rest, err, want)
	}
}

// waits waits until so many requests wait.
func (c *channel) waits(want int64) {
	c.Helper()
	testkit.Eventually(c.T, fmt.Sprintf("%d requests wait", want), func() bool {
		c.origin.reloads.mu.Lock()
		defer c.origin.reloads.mu.Unlock()
		all, _ := c.origin.reloads.waiting.Taken()
		return all == want
	})
}

// TestASegmentIsSentAsItGrows: to each reader what is there, at once, and each part when it is published. One that leaves is no matter.
func TestASegmentIsSentAsItGrows(t *testing.T) {
	c := newChannel(t)
	c.publish("low/live-7.0.m4s", "first ")
	c.list()
	c.publish("low/live-7.1.m4s", "second ")
	leaving, leave := context.WithCancel(t.Context())
	readers := []*http.Response{c.ask(t.Context(), http.MethodGet, "low/live-7.m4s"), c.ask(t.Context(), http.MethodGet, "low/live-7.m4s"), c.ask(leaving, http.MethodGet, "low/live-7.m4s")}
	for _, r := range readers {
		if r.StatusCode != 200 || r.ContentLength != -1 || r.Header.Get("Content-Type") != "video/iso.segment" || r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("ETag") != "" {
			t.Errorf("%s, %d bytes, %v", r.Status, r.ContentLength, r.Header)
		}
		c.reads(r, "first second ")
	}
	c.waits(3)
	leave()
	c.waits(2)
	c.publish("low/live-7.2.m4s", "third")
	late := c.ask(t.Context(), http.MethodGet, "low/live-7.m4s")
	readers = append(readers[:2], late)
	c.reads(late, "first second ")
	for _, r := range readers {
		c.reads(r, "third")
	}
	c.waits(3)
	c.publish("low/live-7.m4s", "first second third")
	for _, r := range readers {
		c.ends(r, nil)
	}
	c.waits(0)
	whole := c.ask(t.Context(), http.MethodGet, "low/live-7.m4s")
	if whole.ContentLength != 18 || whole.Header.Get("ETag") == "" {
		t.Errorf("when it is complete: %d bytes, %v", whole.ContentLength, whole.Header)
	}
}

// TestTheNextSegmentsAreWaitedFor: a player asks for them by the clock, and may be early by what encoding and signing took. Shaka asks for
// one when the first part of the one before is due. What comes later is not there.
func TestTheNextSegmentsAreWaitedFor(t *testing.T) {
	c := newChannel(t)
	c.publish("low/live-6.0.m4s", "before")
	c.list()
	c.publish("low/live-6.m4s", "before")
	got := make(chan *http.Response, 1)
	go func() { got <- c.ask(t.Context(), http.MethodGet, "low/live-7.m4s") }()
	c.waits(1)
	for _, file := range []string{"low/live-10.m4s", "low/live-5.m4s", "high/live-7.m4s", "low/header.mp4"} {
		if r := c.ask(t.Context(), http.MethodGet, file); r.StatusCode != 404 {
			t.Errorf("%s: %s", file, r.Status)
		}
	}
	early := make(chan *http.Response, 1)
	go func() { early <- c.ask(t.Context(), http.MethodGet, "low/live-8.m4s") }()
	c.waits(2)
	c.publish("low/live-7.0.m4s", "first ")
	r := <-got
	c.reads(r, "first ")
	if head := c.ask(t.Context(), http.MethodHead, "low/live-7.m4s"); head.StatusCode != 200 {
		t.Errorf("HEAD: %s", head.Status)
	}
	c.publish("low/live-7.m4s", "first ")
	c.ends(r, nil)
	c.publish("low/live-8.0.m4s", "next")
	c.reads(<-early, "next")
}

// TestWhatIsNotAllBreaksOff: a client does not take it for the segment.
func TestWhatIsNotAllBreaksOff(t *testing.T) {
	c := newChannel(t)
	c.publish("low/live-7.0.m4s", "first ")
	c.list()
	r := c.ask(t.Context(), http.MethodGet, "low/live-7.m4s")
	c.reads(r, "first ")
	c.origin.reloads.came("low/live-7.1.m4s") // and it is gone
	c.ends(r, io.ErrUnexpectedEOF)
}

func TestTheStreamsClock(t *testing.T) {
	c := newChannel(t)
	r := c.ask(t.Context(), http.MethodGet, ClockName)
	text, err := io.ReadAll(r.Body)
	at, wrong := time.Parse(time.RFC3339, string(text))
	if age := time.Since(at); err != nil || wrong != nil || age < -time.Second || age > 5*time.Second || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%q, %v, %v, %v", text, err, wrong, r.Header)
	}
}

// TestAnMPDIsPublished: it lists nothing that is waited for.
func TestAnMPDIsPublished(t *testing.T) {
	newChannel(t).publish("manifest.mpd", "<MPD/>")
}

// TestGrowingSegmentsAreBounded: how long one is waited for, and how many requests wait.
func TestGrowingSegmentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reloads
		r.listed("index.m3u8", published(t, 7, 1))
		r.came("live-7.0.m4s")
		follow := func(file string) (done bool, err error) {
			return r.follow(t.Context(), addressOf(1), file, func(int) error { return nil })
		}
		begin := time.Now()
		if done, err := follow("live-7.m4s"); !done || !errors.Is(err, errNoMore) || time.Since(begin) != reloadTargets*2*time.Second {
			t.Errorf("one that grows no more: %v, %v after %v", done, err, time.Since(begin))
		}
		begin = time.Now()
		if done, err := follow("live-8.m4s"); done || err != nil || time.Since(begin) != reloadTargets*2*time.Second {
			t.Errorf("one that does not begin: %v, %v after %v", done, err, time.Since(begin))
		}
		var wg sync.WaitGroup
		for range maxReloadsOne {
			wg.Go(func() { _, _ = follow("live-7.m4s") })
		}
		synctest.Wait()
		begin = time.Now()
		if done, err := follow("live-7.m4s"); !done || !errors.Is(err, errNoMore) || time.Since(begin) > 0 {
			t.Errorf("one too many: %v, %v after %v", done, err, time.Since(begin))
		}
		other := make(chan error, 1)
		go func() {
			_, err := r.follow(t.Context(), netip.Addr{}, "live-7.m4s", func(int) error { return nil })
			other <- err
		}()
		synctest.Wait()
		r.came("live-7.1.m4s")
		r.came("live-7.m4s")
		wg.Wait()
		if err := <-other; err != nil {
			t.Errorf("another client: %v", err)
		}
		// A reader that was not woken before the next one began is answered with the file.
		go func() {
			_, err := follow("live-8.m4s")
			other <- err
		}()
		synctest.Wait()
		r.mu.Lock()
		r.grew("live-9.0.m4s")
		r.tell()
		r.mu.Unlock()
		if err := <-other; err != nil {
			t.Errorf("one that is over: %v", err)
		}
		if all, _ := r.waiting.Taken(); all != 0 {
			t.Errorf("%d wait still", all)
		}
	})
}

func TestSeries(t *testing.T) {
	for file, want := range map[string]string{
		"low/live-7.2.m4s": "low/live- 7 2 true", "low/live-7.m4s": "low/live- 7 -1 true", "header-7.mp4": " 0 0 false",
		"live.m4s": " 0 0 false", "7.m4s": " 0 0 false", "live-9999999999999999999.m4s": " 0 0 false", "live-7.2.m4s.leeway": " 0 0 false",
	} {
		of, number, part, ok := series(file)
		if got := fmt.Sprint(of, " ", number, " ", part, " ", ok); got != want {
			t.Errorf("%s: %s; want %s", file, got, want)
		}
	}
}
