package app

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/stun/v4"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestUpAnswersSTUN: an up that other machines reach tells viewers of a STUN server of its own, by the name that they call it, and answers
// there; it gives no allocation. One on loopback has none.
func TestUpAnswersSTUN(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	cert, key := writePair(t, dir, "film.test")
	film := testkit.TinyFilm(t)
	r := startUp(t, "--media", film, "--listen", "0.0.0.0:0", "--open", "--tls-cert", cert, "--tls-key", key)
	found := regexp.MustCompile(`\n  stun     (\S+)/udp\n`).FindStringSubmatch(r.out.String())
	if found == nil {
		t.Fatalf("no STUN server in\n%s", r.out)
	}
	_, port, err := net.SplitHostPort(found[1])
	if err != nil {
		t.Fatal(err)
	}
	d := websocket.Dialer{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is the test's
		NetDialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(at)
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}
	welcome, ok := greetingBy(t, d, "wss"+strings.TrimPrefix(r.page, "https")+"/", r.page, "").(*signal.Welcome)
	if !ok || len(welcome.ICEServers) != 1 || !slices.Equal(welcome.ICEServers[0].URLs, []string{"stun:film.test:" + port}) || welcome.ICEServers[0].Username != "" {
		t.Errorf("viewers are told %+v", welcome)
	}

	conn, err := net.Dial("udp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	binding := askSTUN(t, conn, stun.MustBuild(stun.TransactionID, stun.BindingRequest))
	var seen stun.XORMappedAddress
	if err := seen.GetFrom(binding); err != nil || binding.Type != stun.BindingSuccess {
		t.Fatalf("%v: %v", binding.Type, err)
	}
	if own := netip.MustParseAddrPort(conn.LocalAddr().String()); seen.Port != int(own.Port()) || !seen.IP.Equal(own.Addr().AsSlice()) {
		t.Errorf("seen at %v, is at %v", seen, own)
	}
	allocate := stun.MustBuild(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassRequest),
		stun.RawAttribute{Type: stun.AttrRequestedTransport, Length: 4, Value: []byte{17, 0, 0, 0}})
	if refused := askSTUN(t, conn, allocate); refused.Type.Class != stun.ClassErrorResponse {
		t.Errorf("an allocation: %v", refused)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}

	alone := startUp(t, "--media", film)
	if strings.Contains(alone.out.String(), "stun") {
		t.Errorf("on loopback:\n%s", alone.out)
	}
	if err := alone.stop(); err != nil {
		t.Error(err)
	}
}

// askSTUN sends a request until it has an answer.
func askSTUN(t *testing.T, conn net.Conn, request *stun.Message) *stun.Message {
	t.Helper()
	b := make([]byte, 1500)
	for range 20 {
		if _, err := conn.Write(request.Raw); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		n, err := conn.Read(b)
		answer := &stun.Message{Raw: b[:n]}
		if err == nil && answer.Decode() == nil && answer.TransactionID == request.TransactionID {
			return answer
		}
	}
	t.Fatal("no answer")
	return nil
}
