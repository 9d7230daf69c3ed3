package probe

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// TestSmallEndsItsConnection: a browser measures handshakes, which it makes only where the last connection has ended.
func TestSmallEndsItsConnection(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		conn, err := w.dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for _, ask := range []struct {
			path string
			ends bool
		}{{"/probe/v1/small", false}, {"/probe/v1/small?close=0", false}, {"/probe/v1/small?close=1", true}} {
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: probe.test\r\n\r\n", ask.path); err != nil {
				t.Fatal(err)
			}
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(r.Body); len(body) != 1 || err != nil || r.Close != ask.ends {
				t.Errorf("%s: %d bytes, %v, ends %v", ask.path, len(body), err, r.Close)
			}
			_ = r.Body.Close()
			if got := r.Header.Get("Access-Control-Expose-Headers"); got != "Retry-After" {
				t.Errorf("exposed headers: %q", got)
			}
		}
		if _, err := in.ReadByte(); err != io.EOF {
			t.Errorf("after the last answer: %v", err)
		}
	})
}
