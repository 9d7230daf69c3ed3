package outagebench

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
)

func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

func TestCellsAreAskedForByFailureAndByLine(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Bench.Cases {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
	}
	for set, want := range map[string]int{"refuses": len(lines), falling: len(failures), "all": len(lines) * len(failures)} {
		if got := Bench.Sets[set]; len(got) != want || slices.ContainsFunc(got, func(n string) bool { return !names[n] }) {
			t.Errorf("%s: %v; want %d cases", set, got, want)
		}
	}
}

func TestQueuesHoldARoundTrip(t *testing.T) {
	for _, l := range lines {
		path := l.path()
		for name, d := range map[string]netlab.Link{"down": path.Down, "up": path.Up} {
			if d.Queue < netlab.BDP(d.Rate, l.rtt) {
				t.Errorf("%v, %s: a queue of %d bytes", l, name, d.Queue)
			}
		}
	}
}

func TestWhatIsNotMeasuredIsNotCompared(t *testing.T) {
	a := watched{startup: time.Second, stall: 3 * time.Second, filled: 5 * time.Second, peers: 2e6}
	b := watched{startup: 2 * time.Second, filled: 4 * time.Second}
	v := compare(a, b)
	if v["stall_more"] != 3 || v["startup_more"] != -1 || v["until_10s_more"] != 1 || v["from_peers"] != 2 {
		t.Errorf("%v", v)
	}
	if _, is := v["ahead_at_fall"]; is {
		t.Error("a line that did not fall is compared")
	}
	b.filled = 0
	if _, is := compare(a, b)["until_10s_more"]; is {
		t.Error("a buffer that was never filled is compared")
	}
	a.filled, b.filled = 0, 4*time.Second
	if v := compare(a, b)["until_10s_more"]; v != (a.startup + watchAtMost - b.filled).Seconds() {
		t.Errorf("with Leeway the buffer was never filled, and without it was: %v", v)
	}
	declared := map[string]bool{}
	for _, f := range figures() {
		declared[f.Name] = true
	}
	a.fell, b.fell = true, true
	for name := range compare(a, b) {
		if !declared[name] {
			t.Errorf("%s is not declared", name)
		}
	}
}

func TestTheSameMediaIsComparedWhereTenSecondsJumpByASegment(t *testing.T) {
	without := watched{filled: 9 * time.Second, had: []had{{3000, 4}, {6000, 8}, {9000, 12}, {11_000, 16}}}
	with := watched{filled: 15 * time.Second, had: []had{{3200, 4}, {6200, 8}, {9250, 11.98}, {12_000, 16}, {15_000, 20}}}
	v := compare(with, without)
	if v["until_10s_more"] != 6 || v["same_media_more"] != 0.25 {
		t.Errorf("%v", v)
	}
	with.had = with.had[:2]
	if _, is := compare(with, without)["same_media_more"]; is {
		t.Error("media that the page never had are compared")
	}
	without.filled = 0
	if _, is := compare(with, without)["same_media_more"]; is {
		t.Error("a buffer that was never filled is compared")
	}
}

// behind is a tracker that answers a handshake and says two things.
func behind(t *testing.T, messages ...string) func(context.Context) (net.Conn, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = buffered.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n" + strings.Join(messages, ""))
		_ = buffered.Flush()
		_, _ = io.Copy(io.Discard, conn)
	}))
	t.Cleanup(server.Close)
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
}

func frame(n int) string {
	switch {
	case n < 126:
		return string([]byte{0x81, byte(n)}) + strings.Repeat("x", n)
	case n < 1<<16:
		return string([]byte{0x81, 126, byte(n >> 8), byte(n)}) + strings.Repeat("x", n)
	}
	return string([]byte{0x81, 127, 0, 0, 0, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)}) + strings.Repeat("x", n)
}

func TestDoors(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	const shake = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
	const switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
	for _, n := range []int{5, 300, 70_000} {
		first, second := frame(n), frame(3)
		for kind, want := range map[behavior]string{
			open: switched + first + second, dies: switched + first + second, closes: switched + first,
			forbids: "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", silent: "",
		} {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			proxy := startProxy(listener, kind, engineThere, behind(t, first, second))
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, shake); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
				t.Errorf("behavior %d, %d bytes: %.80q, %v", kind, n, got, err)
			}
			if kind == open || kind == dies || kind == silent {
				proxy.close() // what goes on ends with it
			}
			if rest, _ := io.ReadAll(conn); len(rest) > 0 {
				t.Errorf("behavior %d lets %d bytes more through", kind, len(rest))
			}
			_ = conn.Close()
			proxy.close()
			if c, err := net.Dial("tcp", listener.Addr().String()); err == nil {
				_ = c.Close()
				t.Errorf("behavior %d: a connection after the end is taken", kind)
			}
		}
	}
}

// TestTheTrackersCopyOfTheEngine: a page whose engine is missing asks its tracker for it, which must not have it either.
func TestTheTrackersCopyOfTheEngine(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, c := range []struct {
		e       engine
		address string
		want    string
	}{
		{engineThere, "/leeway-0.1.0-engine.js?abc", "HTTP/1.1 101"}, {engineMissing, "/", "HTTP/1.1 101"},
		{engineMissing, "/leeway-0.1.0-engine.js?abc", "HTTP/1.1 404"}, {engineSlow, "/", "HTTP/1.1 101"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		proxy := startProxy(listener, open, c.e, behind(t, frame(3)))
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET "+c.address+" HTTP/1.1\r\nHost: x\r\n\r\n")
		got := make([]byte, len(c.want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
			t.Errorf("engine %d, %s: %q, %v", c.e, c.address, got, err)
		}
		_ = conn.Close()
		proxy.close()
	}
}

func TestPageHasItsTagAndItsEngine(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	server := func(name string) (address string) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "<head>"+name+r.URL.Path)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	film, scripts := server("film"), server("scripts")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct {
		tracker, path string
		engine        engine
		status        int
		has, hasNot   string
	}{
		{"ws://127.0.0.1:8090/", "/", engineThere, 200, `data-tracker="ws://127.0.0.1:8090/"`, "scripts"},
		{"", "/", engineThere, 200, "film/", "data-tracker"},
		{"", "/media/a.ts", engineMissing, 200, "film/media/a.ts", "script"},
		{"", "/leeway.js", engineMissing, 200, "scripts/leeway.js", "film"},
		{"", "/leeway-1-engine.js?t", engineThere, 200, "scripts/leeway-1-engine.js", "film"},
		{"", "/leeway-1-engine.js?t", engineMissing, 404, "", "engine.js"},
	} {
		front := httptest.NewServer(newPage((&net.Dialer{}).DialContext, film, scripts, c.tracker, c.engine))
		r, err := client.Get(front.URL + c.path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		front.Close()
		if r.StatusCode != c.status || !strings.Contains(string(b), c.has) || strings.Contains(string(b), c.hasNot) {
			t.Errorf("%s: %d, %.300q", c.path, r.StatusCode, b)
		}
	}
}

// wire takes what is sent.
type wire struct {
	transfer.Link
	data, control [][]byte
	done          chan struct{}
}

func (w *wire) SendControl(b []byte)              { w.control = append(w.control, bytes.Clone(b)) }
func (w *wire) SendData(b []byte) bool            { w.data = append(w.data, bytes.Clone(b)); return true }
func (w *wire) Done() <-chan struct{}             { return w.done }
func (w *wire) Accept(transfer.Description) error { return nil }
func (w *wire) Answer(transfer.Description, transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return w, transfer.Description{}, nil
}

type wires struct{ last *wire }

func (w *wires) Offer(viewer.LinkSettings, transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	return w.last, transfer.Description{}, nil
}

func (w *wires) Answer(viewer.LinkSettings, transfer.Description, transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return w.last, transfer.Description{}, nil
}

// drains counts.
type drains struct {
	transfer.LinkEvents
	n atomic.Int64
}

func (d *drains) Drain() { d.n.Add(1) }

func TestSlowPeersSendAKilobyteASecond(t *testing.T) {
	for _, offered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			under, events := &wire{done: make(chan struct{})}, &drains{}
			links := slowLinks{&wires{under}}
			var link transfer.Link
			if offered {
				link, _, _ = links.Offer(viewer.LinkSettings{}, events)
			} else {
				link, _, _ = links.Answer(viewer.LinkSettings{}, transfer.Description{}, events)
			}
			message := make([]byte, slowRate/2)
			if !link.SendData(message) || link.SendData(message) {
				t.Fatal("the first is refused, or the second goes at once")
			}
			sleep.For(t.Context(), 499*time.Millisecond)
			synctest.Wait()
			if events.n.Load() != 0 || link.SendData(message) {
				t.Error("it is faster")
			}
			sleep.For(t.Context(), time.Millisecond)
			synctest.Wait()
			if events.n.Load() == 0 || !link.SendData(message) || len(under.data) != 2 {
				t.Errorf("it does not go on: %d drains, %d messages", events.n.Load(), len(under.data))
			}
			close(under.done)
			before := events.n.Load()
			link.SendData(message)
			sleep.For(t.Context(), time.Minute)
			synctest.Wait()
			if events.n.Load() != before {
				t.Error("a link that is closed drains")
			}
		})
	}
}

func TestASilentSeedSaysHelloAlone(t *testing.T) {
	under := &wire{}
	link, _, _ := muted{under}.Answer(transfer.Description{}, nil)
	link.SendControl([]byte("hello"))
	link.SendControl([]byte("have"))
	if !link.SendData([]byte("piece")) || len(under.data) != 0 || len(under.control) != 1 || string(under.control[0]) != "hello" {
		t.Errorf("%q, %q", under.control, under.data)
	}
}
