package probe

import (
	"bytes"
	"encoding/json"
	"errors"
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

func TestHTTP(t *testing.T) {
	inBubble(t, Config{Version: "1.2.3"}, func(t *testing.T, w *world) {
		r, got, err := w.request("GET", "/probe/v1/download?bytes=300000", nil)
		if err != nil || len(got) != 300_000 || r.ContentLength != 300_000 || r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("download: %d bytes, %v", len(got), err)
		}
		if bytes.Count(got, got[:16]) != 1 {
			t.Error("the bytes repeat")
		}
		begin := time.Now()
		if _, got, err = w.request("GET", "/probe/v1/download", nil); err != nil || len(got) < 18<<20 || time.Since(begin) > 11*time.Second {
			t.Errorf("endless download: %d bytes after %v, %v", len(got), time.Since(begin), err)
		}
		w.ends(httpDownload, endComplete, 2)
		for _, bad := range []string{"0", "-1", "x", "1099511627777"} {
			if r, _, err := w.request("GET", "/probe/v1/download?bytes="+bad, nil); err != nil || r.StatusCode != 400 {
				t.Errorf("bytes=%s: %v", bad, err)
			}
		}
		var result struct {
			Bytes   int64 `json:"bytes"`
			Elapsed int64 `json:"elapsed_us"`
		}
		_, got, err = w.request("POST", "/probe/v1/upload", bytes.NewReader(make([]byte, 4<<20)))
		if json.Unmarshal(got, &result) != nil || err != nil || result.Bytes != 4<<20 || result.Elapsed < 1_900_000 || result.Elapsed > 2_100_000 {
			t.Errorf("upload of 4 MiB in 2 s: %s, %v", got, err)
		}
		w.ends(httpUpload, endComplete, 1)
		_, got, err = w.request("GET", "/probe/v1/info", nil)
		var i info
		if json.Unmarshal(got, &i) != nil || err != nil || i.Version != "1.2.3" || i.Client != "198.51.100.7" || i.Limits.Tests != 16 {
			t.Errorf("info: %s, %v", got, err)
		}
		if r, _, err = w.request("OPTIONS", "/probe/v1/upload", nil); err != nil || r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Methods") == "" {
			t.Errorf("preflight: %v", err)
		}
		if r, _, err = w.request("GET", "/", nil); err != nil || r.StatusCode != 404 {
			t.Errorf("elsewhere: %v", err)
		}
	})
}

// drip gives a byte a second, without end.
type drip struct{}

func (drip) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	return 1, nil
}

// TestEndlessBodies: a body that does not end has a result after 13 seconds.
func TestEndlessBodies(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		begin := time.Now()
		_, got, err := w.request("POST", "/probe/v1/upload", drip{})
		if took := time.Since(begin); took > 14*time.Second || err == nil && !strings.Contains(string(got), `"bytes":1`) {
			t.Errorf("after %v: %s, %v", took, got, err)
		}
		w.ends(httpUpload, endTimeout, 1)
		w.rate = 1 << 10
		if _, got, err = w.request("GET", "/probe/v1/download?bytes=100000000", nil); err == nil {
			t.Errorf("a slow download has ended well with %d bytes", len(got))
		}
		w.ends(httpDownload, endTimeout, 1)
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

// TestMemoryOfAddressesIsBounded: a flood of addresses shares what those before have left.
func TestMemoryOfAddressesIsBounded(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		flood(t, w.server, maxNetworks+100)
		if n := w.server.bytes.Len(); n != maxNetworks {
			t.Errorf("%d networks are remembered", n)
		}
	})
}

func TestAServerNeedsASocket(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a server without WebSockets was made")
	}
}
