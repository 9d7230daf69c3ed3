package rtclink

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"go.uber.org/goleak"
)

func TestAProbeRingsTheBellAndNothingElse(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h, err := Listen(Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if all := h.Announced(); len(all) != 1 || all[0] != h.Addr() {
		t.Errorf("a host on %v is announced as %v", h.Addr(), all)
	}
	key, rung := strings.Repeat("k", 32), make(chan struct{}, 8)
	h.Expect(key, func() { rung <- struct{}{} })
	for _, k := range []string{strings.Repeat("x", 32), key[1:], key + "k", "", key} { // in order, for one socket sends to another on one machine
		if err := Probe(h.Addr(), k); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-rung:
	case <-time.After(10 * time.Second):
		t.Fatal("no packet came")
	}
	// A stranger that sends it gets no answer, and what comes behind it gets its own alone.
	conn, err := net.Dial("udp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(key+":somebody"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := conn.Write(m.Raw); err != nil {
			t.Fatal(err)
		}
		<-rung
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1500)); err == nil {
		t.Errorf("%d bytes came back", n)
	}
	if len(rung) > 0 {
		t.Error("a key that is none rang")
	}
}

func TestAnnouncedAddressesComeFirst(t *testing.T) {
	h, err := Listen(Config{Listen: "127.0.0.1:0", Announce: []netip.Addr{netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("2001:db8::5")}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	port := h.Addr().Port()
	all := h.Announced()
	if len(all) != 2 || all[0].String() != netip.AddrPortFrom(netip.MustParseAddr("203.0.113.5"), port).String() || all[1].Port() != port {
		t.Errorf("%v", all)
	}
}

// stunServer answers binding requests as if they came from elsewhere, all but the first so many.
func stunServer(t *testing.T, seen netip.AddrPort, silent int) string {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		for b := make([]byte, 1500); ; {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if silent--; silent >= 0 {
				continue
			}
			request := &stun.Message{Raw: b[:n]}
			if request.Decode() != nil {
				continue
			}
			_, _ = conn.WriteToUDPAddrPort([]byte("rubbish"), from)
			wrong, _ := stun.Build(stun.TransactionID, stun.BindingSuccess, &stun.XORMappedAddress{IP: net.IPv4(192, 0, 2, 1), Port: 1})
			_, _ = conn.WriteToUDPAddrPort(wrong.Raw, from)
			answer, _ := stun.Build(stun.NewTransactionIDSetter(request.TransactionID), stun.BindingSuccess,
				&stun.XORMappedAddress{IP: seen.Addr().AsSlice(), Port: int(seen.Port())})
			_, _ = conn.WriteToUDPAddrPort(answer.Raw, from)
		}
	}()
	return conn.LocalAddr().String()
}

func TestMapped(t *testing.T) {
	seen := netip.MustParseAddrPort("203.0.113.5:4600")
	for _, silent := range []int{0, 1} {
		got, err := Mapped(t.Context(), "127.0.0.1:0", stunServer(t, seen, silent))
		if err != nil || len(got) != 1 || got[0] != seen {
			t.Errorf("seen as %v, %v", got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, server := range []string{stunServer(t, seen, 1000), "", "127.0.0.1:nothing", "[::1]:3478"} {
		if got, err := Mapped(ctx, "127.0.0.1:0", server); err == nil {
			t.Errorf("%q sees %v", server, got)
		}
	}
}
