package rtclink

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/sdp"
)

func TestCandidatesOfALinkAreBounded(t *testing.T) {
	refused := map[string]int{}
	g := &Guard{Refused: func(reason string) { refused[reason]++ }}
	g.complete()
	a := &admission{guard: g}
	at := func(addr string, port uint16) bool {
		return a.admits(sdp.Candidate{Addr: netip.MustParseAddr(addr), Port: port})
	}
	for i, c := range []struct {
		addr string
		port uint16
		want bool
	}{
		{"8.8.8.8", 1, true}, {"8.8.8.8", 2, true}, {"8.8.8.8", 3, false}, {"8.8.8.8", 1, true}, // one that is known costs nothing
		{"10.96.0.10", 53, false}, {"169.254.169.254", 80, false}, {"192.168.1.1", 80, false}, {"fd00::1", 80, false},
	} {
		if at(c.addr, c.port) != c.want {
			t.Errorf("%d: %+v does not hold", i, c)
		}
	}
	for i := range 20 {
		if got := at(fmt.Sprintf("9.0.0.%d", i), 1); got != (i < maxCandidates-2) {
			t.Errorf("address %d: %v", i, got)
		}
	}
	if refused[RefusedPorts] != 1 || refused[RefusedNumber] != 6 || refused["private"] != 3 || refused["metadata"] != 1 {
		t.Errorf("%v", refused)
	}
	if !a.admits(sdp.Candidate{Name: "x.local", Port: 1}) {
		t.Error("a name counts, which is not looked up")
	}
	if !(&admission{}).admits(sdp.Candidate{Addr: netip.MustParseAddr("127.0.0.1"), Port: 1}) {
		t.Error("a host without a guard refuses")
	}
}

// TestChecksArePaidFor: to where nothing came from a link sends few checks, whatever their targets, and to where something came as
// many bytes as came.
func TestChecksArePaidFor(t *testing.T) {
	g := &Guard{}
	g.complete()
	p := newPort(&mux{guard: g}, portKey{}, nil)
	to := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{9, 0, byte(i >> 8), byte(i)}), 1)
	}
	for i := range 2 * linkChecks {
		want := ""
		if i >= linkChecks {
			want = DroppedLink
		}
		if got := p.checks(to(i), 100); got != want {
			t.Fatalf("check %d: %q, want %q", i, got, want)
		}
	}
	p.receive(to(0), 150)
	if got := []string{p.checks(to(0), 100), p.checks(to(0), 100), p.checks(to(1), 100)}; got[0] != "" || got[1] != DroppedLink || got[2] != DroppedLink {
		t.Errorf("%q", got)
	}
	for i := range 1000 { // many addresses pay: few are remembered
		p.receive(to(i), 1<<20)
	}
	if n := len(p.ledger.credits); n != maxCreditors {
		t.Errorf("%d creditors", n)
	}
	paid := 0
	for p.checks(to(mostOwned-1), 100) == "" {
		paid++
	}
	if paid != maxCredit/100 {
		t.Errorf("%d checks are paid for", paid)
	}
}

// TestChecksToOneAddressAreBounded: many links share what one address is sent, and all addresses what is sent in all.
func TestChecksToOneAddressAreBounded(t *testing.T) {
	g := &Guard{}
	g.complete()
	now := time.Unix(1000, 0)
	sent := func(to netip.Addr) (n int, reason string) {
		for {
			if reason = g.takes(to, now); reason != "" {
				return n, reason
			}
			n++
		}
	}
	one := netip.MustParseAddr("2606:4700::1")
	if n, reason := sent(one); n != targetBurst || reason != DroppedAddress {
		t.Errorf("%d, %s", n, reason)
	}
	if n, reason := sent(netip.MustParseAddr("2606:4700::2")); n != 0 || reason != DroppedAddress {
		t.Errorf("another address of the same network: %d, %s", n, reason)
	}
	now = now.Add(3 * time.Second)
	if n, _ := sent(one); n != 3*targetRate {
		t.Errorf("%d after three seconds", n)
	}
	total, reason := 0, ""
	for i := 0; reason != DroppedTotal && i < 1000; i++ {
		var n int
		n, reason = sent(netip.AddrFrom4([4]byte{9, 0, byte(i >> 8), byte(i)}))
		total += n
	}
	if total > totalRate || reason != DroppedTotal {
		t.Errorf("%d in all, %s", total, reason)
	}
}
