package originhttp

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leeway-video/leeway/internal/viewer"
)

// TestAPlayersConnectionsAreGivenUpWhenTheOtherEndIsSilent reads the setting back: bench nat shows what it is for.
func TestAPlayersConnectionsAreGivenUpWhenTheOtherEndIsSilent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }))
	defer server.Close()
	var dialed *net.TCPConn
	p := NewPlayer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		dialed, _ = conn.(*net.TCPConn)
		return conn, err
	})
	defer p.Close()
	got := make(chan error, 1)
	p.Get(viewer.Fetch{URL: server.URL}, func(int64) {}, func(_ viewer.Fetched, err error) { got <- err })
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	raw, err := dialed.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var ms int
	if e := raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if int64(ms) != silentFor.Milliseconds() {
		t.Errorf("given up after %d ms", ms)
	}
}
