package netlab

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Hosts reach each other by IPv6 over the same lines, and one that has nothing else does not get anywhere by IPv4.
func TestIPv6(t *testing.T) {
	const delay = 10 * time.Millisecond
	lab := newLab(t, Options{IPv6: true})
	core := lab.Router("core")
	both, _ := lab.Attach("both", core, Both(Link{Delay: delay / 2}))
	only, line := lab.Attach("only", core, Both(Link{Delay: delay / 2}))
	only.OnlyIPv6()
	start(t, lab)
	if only.Addr() != only.Addr6() || both.Addr() == both.Addr6() || !both.Addr().Is4() {
		t.Fatalf("addresses %v and %v, %v and %v", only.Addr(), only.Addr6(), both.Addr(), both.Addr6())
	}
	listener, err := both.Listen(t.Context(), "tcp", netip.AddrPortFrom(both.Addr6(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if n, _ := transfer(t, only, listener, 10*time.Millisecond); n == 0 {
		t.Error("TCP does not get through")
	}
	before, err := lab.Report()
	if err != nil {
		t.Fatal(err)
	}
	sender := udp(t, only)
	conn, err := both.ListenPacket(t.Context(), "udp6", netip.AddrPortFrom(both.Addr6(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	receiver := socket{conn.(*net.UDPConn), t}
	defer receiver.Close()
	sent := time.Now()
	sender.send(receiver.addr(), 1, 100)
	if err := receiver.SetReadDeadline(sent.Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 2048)
	n, from, err := receiver.ReadFromUDPAddrPort(payload)
	if err != nil || from != sender.addr() || n != 72 {
		t.Fatalf("%d bytes from %v: %v", n, from, err)
	}
	if took := time.Since(sent); took < delay {
		t.Errorf("%v on a way of %v", took, delay)
	}
	after, err := lab.Report()
	if err != nil {
		t.Fatal(err)
	}
	if up := after.Directions[line.Up.Name].Delivered - before.Directions[line.Up.Name].Delivered; up == 0 {
		t.Error("the line carried nothing")
	}
	if after.Unrouted > 0 {
		t.Errorf("%d packets went nowhere", after.Unrouted)
	}
	if c, err := only.DialContext(t.Context(), "tcp", netip.AddrPortFrom(both.Addr(), 1).String()); err == nil {
		_ = c.Close()
		t.Error("a host without IPv4 got to an IPv4 address")
	}
}
