package probe

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wsconn"
)

// heard is what a client received.
type heard struct {
	sizes        []int // of binary messages
	bytes        int64
	measurements []measurement
	at           []time.Duration // of the measurements
	end          error
}

// hear reads until the server has closed.
func hear(t *testing.T, b *wsconn.Bulk) (h heard) {
	begin := time.Now()
	for {
		binary, err := b.Next()
		if err != nil {
			h.end = err
			return h
		}
		p, err := io.ReadAll(b)
		if err != nil {
			h.end = err
			return h
		}
		if binary {
			h.sizes, h.bytes = append(h.sizes, len(p)), h.bytes+int64(len(p))
			continue
		}
		var m measurement
		if err := json.Unmarshal(p, &m); err != nil {
			t.Errorf("%q: %v", p, err)
		}
		h.measurements, h.at = append(h.measurements, m), append(h.at, time.Since(begin))
	}
}

// checkMeasurements: the server measures about four times a second, and says what it knows.
func checkMeasurements(t *testing.T, h heard, test string) {
	t.Helper()
	if n := len(h.measurements); n < 20 || n > 80 {
		t.Fatalf("%d measurements", n)
	}
	last := appInfo{}
	for _, m := range h.measurements {
		if m.AppInfo.ElapsedTime < last.ElapsedTime || m.AppInfo.NumBytes < last.NumBytes || m.Test != test || m.Origin != "server" ||
			m.ConnectionInfo.Client != "198.51.100.7:40000" || m.ConnectionInfo.Server != "192.0.2.1:8090" || m.TCPInfo == nil || m.TCPInfo.MinRTT != 10_000 {
			t.Fatalf("%+v", m)
		}
		last = m.AppInfo
	}
}

func TestDownload(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		begin := time.Now()
		b := w.must("/ndt/v7/download")
		h := hear(t, b)
		_ = b.Farewell(closeDone, "", time.Now().Add(time.Second))
		b.Close(false)
		if took := time.Since(begin); h.end != io.EOF || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("ended after %v with %v", took, h.end)
		}
		if h.bytes < 18<<20 {
			t.Errorf("%d bytes", h.bytes)
		}
		sent, size := int64(0), firstMessage
		for i, n := range h.sizes {
			if n != size {
				t.Fatalf("message %d after %d bytes has %d, want %d", i, sent, n, size)
			}
			sent += int64(n)
			size = nextSize(size, sent)
		}
		if size != largestMessage {
			t.Errorf("messages have grown to %d bytes", size)
		}
		checkMeasurements(t, h, "download")
		if last := h.measurements[len(h.measurements)-1]; last.AppInfo.NumBytes != h.bytes {
			t.Errorf("the server counts %d bytes, the client %d", last.AppInfo.NumBytes, h.bytes)
		}
		w.ends(ndt7Download, endComplete, 1)
		if got := w.metrics.Value(mBytes, "down"); got != float64(h.bytes) {
			t.Errorf("%v bytes are counted", got)
		}
		if w.metrics.Value(mRetransmitted) != 7 || w.metrics.Count(mMinRTT, ndt7Download) != 1 {
			t.Error("the last measurement is not counted")
		}
	})
}

// send uploads messages until writing fails, and returns their bytes.
func send(b *wsconn.Bulk, size int, until time.Time) (sent int64) {
	message := make([]byte, size)
	for time.Now().Before(until) {
		if b.Send(true, message) != nil {
			return sent
		}
		sent += int64(size)
	}
	return sent
}

func TestUpload(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		b := w.must("/ndt/v7/upload")
		sent := make(chan int64)
		go func() {
			_ = b.Send(false, []byte(`{"AppInfo":{"ElapsedTime":1,"NumBytes":1}}`))
			_ = b.Send(false, []byte(`{"AppInfo":`))
			n := send(b, 1<<20, time.Now().Add(9500*time.Millisecond))
			_ = b.Farewell(closeDone, "", time.Now().Add(time.Second))
			sent <- n
		}()
		h := hear(t, b)
		n := <-sent
		b.Close(false)
		if h.end != io.EOF || len(h.sizes) > 0 {
			t.Errorf("%v, and %d binary messages", h.end, len(h.sizes))
		}
		checkMeasurements(t, h, "upload")
		w.ends(ndt7Upload, endClient, 1) // before the ten seconds are over
		if got := w.metrics.Value(mBytes, "up"); got != float64(n) {
			t.Errorf("%v bytes are counted, %d were sent", got, n)
		}
		if w.metrics.Value(mReports, "taken") != 1 || w.metrics.Value(mReports, "malformed") != 1 {
			t.Error("reports of the client are not counted")
		}
	})
}

// TestTheServerEndsAnUpload: after ten seconds it closes; a client that goes on is cut three seconds later.
func TestTheServerEndsAnUpload(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		inBubble(t, Config{}, func(t *testing.T, w *world) {
			begin := time.Now()
			b := w.must("/ndt/v7/upload")
			closed := make(chan time.Duration, 1)
			go func() {
				hear(t, b)
				closed <- time.Since(begin)
				if !stubborn {
					b.Close(false)
				}
			}()
			send(b, 1<<16, begin.Add(time.Minute))
			if at := <-closed; at < 10*time.Second || at > 10500*time.Millisecond {
				t.Errorf("the server closed after %v", at)
			}
			w.ends(ndt7Upload, endComplete, 1)
			if took := time.Since(begin); took > 13500*time.Millisecond || stubborn && took < 13*time.Second {
				t.Errorf("over after %v", took)
			}
			b.Close(false)
		})
	}
}

// TestEndlessTests: a client that reads nothing, or says nothing, holds its place for 13 seconds.
func TestEndlessTests(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		begin := time.Now()
		deaf, mute := w.must("/ndt/v7/download"), w.must("/ndt/v7/upload")
		go hear(t, mute)
		w.server.ended.Wait()
		if took := time.Since(begin); took < 10*time.Second || took > 13500*time.Millisecond {
			t.Errorf("over after %v", took)
		}
		w.ends(ndt7Download, endTimeout, 1)
		w.ends(ndt7Upload, endComplete, 1) // it heard the server's close and did not answer
		deaf.Close(false)
		mute.Close(false)
	})
}

func TestWhatAClientMustNotSend(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		send func(b *wsconn.Bulk)
	}{
		"a binary message in a download": {"/ndt/v7/download", func(b *wsconn.Bulk) { _ = b.Send(true, make([]byte, 2048)) }},
		"a message below 1 KiB":          {"/ndt/v7/upload", func(b *wsconn.Bulk) { _ = b.Send(true, make([]byte, 1023)) }},
		"a message above 16 MiB":         {"/ndt/v7/upload", func(b *wsconn.Bulk) { _ = b.Send(true, make([]byte, MaxMessage+1)) }},
		"a report of 64 KiB":             {"/ndt/v7/upload", func(b *wsconn.Bulk) { _ = b.Send(false, make([]byte, maxReport)) }},
		"more than 200 reports": {"/ndt/v7/upload", func(b *wsconn.Bulk) {
			for range maxReports + 1 {
				_ = b.Send(false, []byte("{}"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, w *world) {
				w.rate = 64 << 20
				b := w.must(c.path)
				done := make(chan heard)
				go func() { done <- hear(t, b) }()
				c.send(b)
				<-done
				b.Close(false)
				kind := ndt7Upload
				if strings.HasSuffix(c.path, "download") {
					kind = ndt7Download
				}
				w.ends(kind, endProtocol, 1)
			})
		})
	}
}

func TestHandshakes(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		for _, path := range []string{"/ndt/v7/download?a=%zz", "/ndt/v7/download?" + strings.Repeat("a=b&", 1100)} {
			if _, err := w.open(path); err == nil || !strings.Contains(err.Error(), "400") {
				t.Errorf("%.40s: %v", path, err)
			}
		}
		for _, path := range []string{"/ndt/v7/download", "/ndt/v7/upload"} {
			if r, _, err := w.request("GET", path, nil); err != nil || r.StatusCode != http.StatusBadRequest {
				t.Errorf("%s without a WebSocket: %v", path, err)
			}
		}
		b, err := w.open("/ndt/v7/download?client_name=test&client_version=1")
		if err != nil {
			t.Fatal(err)
		}
		b.Close(true)
		w.ends(ndt7Download, endClient, 1)
		if got := w.metrics.Value(mRefused, refusedProtocol); got != 4 {
			t.Errorf("%v refused", got)
		}
	})
}

// TestDrain: a server that ends takes no new tests, waits for those that run, and cuts them when its time is over.
func TestDrain(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		b := w.must("/ndt/v7/download")
		end := make(chan heard)
		go func() { end <- hear(t, b) }()
		ctx, cancel := contextOf(t, 3*time.Second)
		defer cancel()
		begin := time.Now()
		drained := make(chan time.Duration)
		go func() {
			w.server.Drain(ctx)
			drained <- time.Since(begin)
		}()
		<-time.After(time.Second)
		if _, err := w.open("/ndt/v7/download"); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("a test at a server that ends: %v", err)
		}
		if w.server.Ready() == nil {
			t.Error("a server that ends is ready")
		}
		if took := <-drained; took < 3*time.Second || took > 3500*time.Millisecond {
			t.Errorf("drained after %v", took)
		}
		if h := <-end; h.bytes == 0 || h.end == io.EOF {
			t.Errorf("cut with %v after %d bytes", h.end, h.bytes)
		}
		b.Close(false)
		w.ends(ndt7Download, endDraining, 1)
	})
}

func TestAServerNeedsASocket(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a server without WebSockets was made")
	}
}
