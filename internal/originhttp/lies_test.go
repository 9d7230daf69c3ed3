package originhttp

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/leeway-video/leeway/internal/seed"
)

// raw is an origin that answers every request with the same bytes and closes the connection.
func raw(t *testing.T, response string) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, response)
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// TestOriginsThatLie: what is certified wrongly is served wrongly by every viewer for hours.
func TestOriginsThatLie(t *testing.T) {
	whole := seed.Fetch{Path: "/a", MaxBytes: 100, Shared: true}
	part := seed.Fetch{Path: "/a", Ranged: true, First: 5, Last: 9, MaxBytes: 100, Shared: true}
	grows := part
	grows.AnyLength = true
	playlist := seed.Fetch{Path: "/a", MaxBytes: 100}
	for _, c := range []struct {
		name, response string
		fetch          seed.Fetch
		want           seed.Outcome
	}{
		{"a body of no length may have been cut off", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n01234", whole, seed.OutcomeRefused},
		{"an old server's too", "HTTP/1.0 200 OK\r\n\r\n01234", whole, seed.OutcomeRefused},
		{"a playlist of no length is not shared", "HTTP/1.0 200 OK\r\n\r\n#EXTM3U", playlist, seed.OutcomeOK},
		{"a body that ends early", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n01234", whole, seed.OutcomeNetwork},
		{"chunks that end early", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n", whole, seed.OutcomeNetwork},
		{"whole chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n\r\n", whole, seed.OutcomeOK},
		{
			"the whole object under the name of a part",
			"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/20\r\nContent-Length: 20\r\n\r\n01234567890123456789", part, seed.OutcomeRefused,
		},
		{
			"more chunks than the part has bytes",
			"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/20\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n567890\r\n0\r\n\r\n", part, seed.OutcomeRefused,
		},
		{"another part", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-8/20\r\nContent-Length: 5\r\n\r\n45678", part, seed.OutcomeRefused},
		{"a part of an object of no length", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/*\r\nContent-Length: 5\r\n\r\n56789", part, seed.OutcomeRefused},
		{"a part of an object that grows", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/*\r\nContent-Length: 5\r\n\r\n56789", grows, seed.OutcomeOK},
		{"another part of one", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-8/*\r\nContent-Length: 5\r\n\r\n45678", grows, seed.OutcomeRefused},
		{"a part of nothing", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/0\r\nContent-Length: 5\r\n\r\n56789", grows, seed.OutcomeRefused},
		{
			"several parts",
			"HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\nContent-Length: 5\r\n\r\n56789", part, seed.OutcomeRefused,
		},
		{"the part", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/20\r\nContent-Length: 5\r\n\r\n56789", part, seed.OutcomeOK},
		{
			"an encoding in a second line",
			"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\n01234", whole, seed.OutcomeRefused,
		},
	} {
		_, err := client(t, Config{Base: raw(t, c.response)}).Get(context.Background(), c.fetch)
		if got := outcome(t, err); got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

// TestQueriesGoOutAsBrowsersWriteThem: a playlist may name a segment with spaces and umlauts in its query.
func TestQueriesGoOutAsBrowsersWriteThem(t *testing.T) {
	asked := ""
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI })
	_, err := client(t, Config{Base: s.URL}).Get(context.Background(), seed.Fetch{Path: "/a.ts?t=a b\u00fc&u=%20'\"x HTTP/1.0", MaxBytes: 10})
	if err != nil || asked != "/a.ts?t=a%20b%C3%BC&u=%20%27%22x%20HTTP/1.0" {
		t.Errorf("asked for %s: %v", asked, err)
	}
}
