package access

import (
	"net/netip"
	"testing"
)

func TestNetworks(t *testing.T) {
	for text, want := range map[string][2]string{
		"192.0.2.7":          {"192.0.2.7/32", "192.0.2.7/32"},
		"::ffff:192.0.2.7":   {"192.0.2.7/32", "192.0.2.7/32"},
		"2001:db8:1:2:3::4":  {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"fe80::1%eth0":       {"fe80::/64", "fe80::/48"},
		"2001:db8:1:ffff::1": {"2001:db8:1:ffff::/64", "2001:db8:1::/48"},
	} {
		a := netip.MustParseAddr(text)
		if got := [2]string{Network(a).String(), Customer(a).String()}; got != want {
			t.Errorf("%s counts under %v, want %v", text, got, want)
		}
	}
	if Network(netip.Addr{}).IsValid() || Customer(netip.Addr{}).IsValid() || Wide(netip.MustParseAddr("192.0.2.7")).IsValid() {
		t.Error("no address has a network")
	}
}
