package probe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

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
