// Package testkit has what tests of several rooms need.
package testkit

import (
	"net"
	"net/netip"
	"testing"

	"github.com/pires/go-proxyproto"
)

// Introduction is what a balancer writes for a client, by a version of the PROXY protocol; for none it speaks for itself, which
// only version 2 has.
func Introduction(t testing.TB, version byte, client string, tlvs ...proxyproto.TLV) []byte {
	t.Helper()
	h := &proxyproto.Header{Version: 2, Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC}
	if client != "" {
		from := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client))
		to := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 80), Port: 443}
		if from.IP.To4() == nil {
			to.IP = net.ParseIP("2001:db8::80")
		}
		h = proxyproto.HeaderProxyFromAddrs(version, from, to)
	}
	if len(tlvs) > 0 {
		if err := h.SetTLVs(tlvs); err != nil {
			t.Fatal(err)
		}
	}
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
