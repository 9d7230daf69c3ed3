package tracker

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
)

// admitting is an admission with a clock that the test moves.
func admitting(sessions, perAddress, perSecond int) (a *admission, now *time.Time) {
	at := time.Unix(1_000_000, 0)
	cfg := &Config{
		MaxSessions: sessions, MaxPerAddress: perAddress, ConnectsPerSecond: perSecond, Metrics: metric.Discard,
		Now: func() time.Time { return at },
	}
	return newAdmission(cfg), &at
}

func TestAdmissionIsBoundedInAllAndByAddress(t *testing.T) {
	a, _ := admitting(5, 2, 100)
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	of, _ := a.admit(one)
	a.admit(one)
	if third, reason := a.admit(one); third != nil || reason != "rate" {
		t.Errorf("a third socket of an address: %v %q", third, reason)
	}
	a.leave(of)
	if again, reason := a.admit(one); again == nil {
		t.Errorf("no place after one was given back: %q", reason)
	}
	for i := range 3 {
		a.admit(netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", i)))
	}
	if n := a.count(); n != 5 {
		t.Fatalf("%d sockets, want 5", n)
	}
	if more, reason := a.admit(other); more != nil || reason != "total" {
		t.Errorf("a socket above all: %v %q", more, reason)
	}
}

// TestAnAddressBeginsSoManyAndNoMore: what is begun costs, and comes back with time.
func TestAnAddressBeginsSoManyAndNoMore(t *testing.T) {
	a, now := admitting(1000, 1000, 2)
	from := netip.MustParseAddr("192.0.2.1")
	begun := func() (n int) {
		for a.Knock(from) {
			n++
		}
		return n
	}
	if n := begun(); n != 10 { // five seconds' worth
		t.Errorf("%d at once, want 10", n)
	}
	*now = now.Add(time.Second)
	if n := begun(); n != 2 {
		t.Errorf("%d after a second, want 2", n)
	}
	a.Entered(from)
	a.Entered(from)
	if n := begun(); n != 1 {
		t.Errorf("%d after two places were given back but for a part, want 1", n)
	}
	*now = now.Add(time.Hour)
	if n := begun(); n != 10 {
		t.Errorf("%d after an hour, want 10", n)
	}
}

// TestRequestsPayForTheirConnections: a client that asks for anything over a new connection each time has hands shaken with it so often.
func TestRequestsPayForTheirConnections(t *testing.T) {
	a, now := admitting(1000, 1000, 20)
	from := netip.MustParseAddr("192.0.2.1")
	asked := func() (n int) {
		for ; n < 1_000_000 && a.Knock(from); n++ {
			a.Entered(from)
		}
		return n
	}
	if n := asked(); n < 99*keptPart || n > 100*keptPart {
		t.Errorf("%d at once, want %d", n, 100*keptPart)
	}
	*now = now.Add(time.Second)
	if n := asked(); n < 19*keptPart || n > 21*keptPart {
		t.Errorf("%d in a second, want %d", n, 20*keptPart)
	}
}

// TestAnOffenceIsPaidFor: a session that was ended for what it did costs a second's worth, and the debt has a bound.
func TestAnOffenceIsPaidFor(t *testing.T) {
	a, now := admitting(1000, 1000, 2)
	from := netip.MustParseAddr("192.0.2.1")
	of, _ := a.admit(from)
	for range 100 {
		a.offended(of)
	}
	*now = now.Add(time.Second)
	if a.Knock(from) {
		t.Error("a second pays the debt and nothing else")
	}
	*now = now.Add(500 * time.Millisecond)
	if !a.Knock(from) {
		t.Error("the debt of a second lasts longer")
	}
}

// TestNetworksOfIPv6AreBoundedTogether: a /64 is an address, and the /48 around it has sixteen times what one may.
func TestNetworksOfIPv6AreBoundedTogether(t *testing.T) {
	a, _ := admitting(1000, 2, 1000)
	taken := 0
	for net := range 40 {
		for host := range 3 {
			if of, _ := a.admit(netip.MustParseAddr(fmt.Sprintf("2001:db8:7:%x::%x", net, host+1))); of != nil {
				taken++
			}
		}
	}
	if want := 2 * wideShare; taken != want {
		t.Errorf("%d sockets of one /48, want %d", taken, want)
	}
	if of, _ := a.admit(netip.MustParseAddr("2001:db8:8::1")); of == nil {
		t.Error("another /48 pays for it")
	}
}

// TestOnePrefixLeavesHalfOfTheSockets: sixteen times what an address may have is more than a tracker has, by the defaults.
func TestOnePrefixLeavesHalfOfTheSockets(t *testing.T) {
	for _, c := range []struct{ sessions, perAddress, want int }{{200, 20, 100}, {200, 150, 150}} {
		a, _ := admitting(c.sessions, c.perAddress, 1000)
		taken := 0
		for host := range 2 * c.sessions {
			if of, _ := a.admit(netip.MustParseAddr(fmt.Sprintf("2001:db8:7:%x::1", host))); of != nil {
				taken++
			}
		}
		if taken != c.want {
			t.Errorf("%d of %d sockets are one /48's, want %d", taken, c.sessions, c.want)
		}
		if of, reason := a.admit(netip.MustParseAddr("192.0.2.1")); of == nil {
			t.Errorf("another address is refused: %q", reason)
		}
	}
}

// TestOnePrefixDoesNotFillTheMemoryOfAddresses: a /48 has 65,536 networks. Those that come when it may begin nothing any more are not known, and
// where there is no room for one, it shares what the /48 has left.
func TestOnePrefixDoesNotFillTheMemoryOfAddresses(t *testing.T) {
	a, now := admitting(100, 100, 2)
	of := func(net int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:7:%x::1", net)) }
	begun := 0
	for net := range 1000 {
		if a.Knock(of(net)) {
			begun++
		}
	}
	if most := 10 * wideShare; begun != most || len(a.addresses) > most+1 {
		t.Errorf("%d begun, want %d; %d addresses are known", begun, most, len(a.addresses))
	}
	if of, reason := a.admit(netip.MustParseAddr("192.0.2.1")); of == nil {
		t.Errorf("another is refused: %q", reason)
	}
	for i := range 400 {
		a.Knock(netip.MustParseAddr(fmt.Sprintf("198.51.%d.%d", i/200, i%200)))
	}
	if n := len(a.addresses); n != 400 {
		t.Fatalf("%d addresses are known, want four for each session", n)
	}
	*now = now.Add(time.Second)
	late := of(2000)
	if place, reason := a.admit(late); place == nil {
		t.Errorf("a late one of the prefix is refused: %q", reason)
	} else if a.leave(place); place.sockets != 0 {
		t.Errorf("%d sockets are left of none", place.sockets)
	}
	begun = 0
	for a.Knock(late) {
		begun++
	}
	a.Entered(late)
	a.Entered(late)
	if left := 2*wideShare - 1; begun != left || !a.Knock(late) || a.Knock(late) {
		t.Errorf("%d begun, want %d, and one more for the two that were given back", begun, left)
	}
}

// TestAddressesAreForgottenOnceThatMakesNoDifference: and known as long as they have sockets or a budget that is not whole.
func TestAddressesAreForgottenOnceThatMakesNoDifference(t *testing.T) {
	a, now := admitting(4, 4, 2)
	stays, _ := a.admit(netip.MustParseAddr("192.0.2.1"))
	for i := range 40 {
		a.Knock(netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", i)))
	}
	if n := len(a.addresses); n != 16 {
		t.Errorf("%d addresses are known, want four for each session", n)
	}
	a.forget(*now)
	if n := len(a.addresses); n != 16 {
		t.Errorf("%d are known while their budgets are not whole", n)
	}
	*now = now.Add(time.Minute)
	a.forget(*now)
	if n := len(a.addresses); n != 1 {
		t.Errorf("%d are known, want the one with a socket", n)
	}
	a.leave(stays)
	a.forget(*now)
	if n := len(a.addresses); n != 0 {
		t.Errorf("%d are known without a socket", n)
	}
}
