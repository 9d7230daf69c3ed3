package netlab

import (
	"net/netip"
	"testing"
	"time"
)

// Two labs live side by side in one process with the same names, addresses and ports; neither hears of the other, and
// each keeps its own account.
func TestTwoLabsAtOnce(t *testing.T) {
	type half struct {
		lab  *Lab
		a, b socket
	}
	var halves [2]half
	for i := range halves {
		lab, a, b, _ := pair(t, Both(Link{Delay: 2 * time.Millisecond}))
		at := netip.AddrPortFrom(b.Addr(), 4600)
		conn, err := b.ListenPacket(t.Context(), "udp4", at.String())
		if err != nil {
			t.Fatalf("lab %d: %v", i+1, err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		halves[i] = half{lab, udp(t, a), udp(t, b)}
	}
	if halves[0].b.addr().Addr() != halves[1].b.addr().Addr() {
		t.Fatalf("the labs have addresses of their own: %v and %v; this shows nothing", halves[0].b.addr(), halves[1].b.addr())
	}
	const packets = 5
	to := halves[0].b.addr()
	for n := range packets {
		halves[0].a.send(to, n, 500)
	}
	for n := range packets {
		if got, ok := halves[0].b.receive(10 * time.Second); !ok || got.from != halves[0].a.addr() {
			t.Fatalf("packet %d: %+v, came %v", n, got, ok)
		}
	}
	for i, want := range []uint64{packets, 0} {
		r, err := halves[i].lab.Report()
		if err != nil {
			t.Fatal(err)
		}
		if r.Packets != want {
			t.Errorf("lab %d carried %d packets, want %d", i+1, r.Packets, want)
		}
	}
}
