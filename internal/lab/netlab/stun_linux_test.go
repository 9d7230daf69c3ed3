package netlab

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pion/stun/v4"
)

// A client that is not ours learns the address that the world sees: its own, and behind a NAT the gateway's.
func TestSTUNTellsTheOutsideAddress(t *testing.T) {
	home := newHome(t, GatewayConfig{NAT: PortRestricted})
	server, err := home.outside.ListenUDP()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- ServeSTUN(server) }()
	for _, c := range []struct {
		from *Host
		want netip.Addr
	}{{home.one, home.gateway.Addr()}, {home.elsewhere, home.elsewhere.Addr()}} {
		if got := askSTUN(t, c.from, server.LocalAddr().(*net.UDPAddr)); got != c.want {
			t.Errorf("%s looks like %v, was told %v", c.from.Name(), c.want, got)
		}
	}
	_ = server.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func askSTUN(t *testing.T, from *Host, server *net.UDPAddr) netip.Addr {
	t.Helper()
	socket := udp(t, from)
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest)
	if _, err := socket.WriteToUDP(request.Raw, server); err != nil {
		t.Fatal(err)
	}
	response := &stun.Message{Raw: make([]byte, 0, 512)}
	if err := socket.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := response.ReadFrom(socket); err != nil {
		t.Fatal(err)
	}
	var mapped stun.XORMappedAddress
	if err := mapped.GetFrom(response); err != nil {
		t.Fatal(err)
	}
	if response.TransactionID != request.TransactionID {
		t.Error("the answer is to another request")
	}
	return netip.MustParseAddr(mapped.IP.String())
}

func TestOnlyBindingRequestsAreAnswered(t *testing.T) {
	from := netip.MustParseAddrPort("198.18.0.1:5000")
	good := stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw
	for name, request := range map[string][]byte{
		"nothing": nil, "short": good[:stunHeader-1], "a response": slices.Concat([]byte{1, 1}, good[2:]),
		"no cookie": slices.Concat(good[:4], []byte{1, 2, 3, 4}, good[8:]),
	} {
		if got := bindingAnswer(request, from); got != nil {
			t.Errorf("%s: answered %x", name, got)
		}
	}
	if bindingAnswer(good, from) == nil {
		t.Error("a request was not answered")
	}
	if bindingAnswer(good, netip.MustParseAddrPort("[2001:db8::1]:5000")) != nil {
		t.Error("a lab has no IPv6, and the answer no room for it")
	}
}

func FuzzBindingAnswer(f *testing.F) {
	f.Add(stun.MustBuild(stun.TransactionID, stun.BindingRequest).Raw)
	f.Fuzz(func(t *testing.T, request []byte) {
		answer := bindingAnswer(request, netip.MustParseAddrPort("198.18.0.1:5000"))
		if answer == nil {
			return
		}
		if err := (&stun.Message{Raw: answer}).Decode(); err != nil {
			t.Errorf("%x: the answer cannot be read: %v", request, err)
		}
	})
}
