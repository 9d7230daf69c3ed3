package wsconn

import (
	"net/netip"
	"testing"
	"time"
)

func placesOf(cfg AdmissionConfig) *places {
	cfg.complete()
	return newPlaces(&cfg)
}

// caller is a socket from an address, as the admission counts it before it gives it a place.
func caller(address string) *Socket {
	s := &Socket{}
	s.from = netip.MustParseAddr(address)
	s.counts(false)
	return s
}

// TestAPlaceIsLostToTheNextAfterPatience: the socket that has been silent for longest gives up its place, and none before its time.
func TestAPlaceIsLostToTheNextAfterPatience(t *testing.T) {
	p, now := placesOf(AdmissionConfig{MaxPending: 2, MaxPendingPerAddress: 2, Patience: time.Second}), time.Unix(1000, 0)
	first, second, third := caller("192.0.2.1"), caller("192.0.2.65"), caller("198.51.100.1")
	for i, s := range []*Socket{first, second} {
		if reason, evicted, wait := p.enter(s, now.Add(time.Duration(i)*100*time.Millisecond)); reason != "" || evicted != nil || wait != 0 {
			t.Fatalf("socket %d: %q, evicted %v, wait %v", i, reason, evicted != nil, wait)
		}
	}
	if _, evicted, wait := p.enter(third, now.Add(400*time.Millisecond)); evicted != nil || wait != 600*time.Millisecond {
		t.Errorf("before its time: evicted %v, wait %v", evicted != nil, wait)
	}
	if reason, evicted, wait := p.enter(third, now.Add(time.Second)); reason != "" || evicted != first || wait != 0 {
		t.Errorf("after Patience: %q, the first evicted: %v, wait %v", reason, evicted == first, wait)
	}
	if p.speaks(first) || p.left(first) != away || p.open != 2 || p.oldest() != second {
		t.Errorf("the evicted socket goes on, or counts: %d open", p.open)
	}
}

// TestBusyPlacesAreFew: a socket that speaks waits until one of those that are busy is through, or has had its time.
func TestBusyPlacesAreFew(t *testing.T) {
	p, now := placesOf(AdmissionConfig{MaxBusy: 1, Patience: time.Second}), time.Unix(1000, 0)
	a, b := caller("192.0.2.1"), caller("198.51.100.1")
	for _, s := range []*Socket{a, b} {
		if _, _, wait := p.enter(s, now); wait != 0 || !p.speaks(s) {
			t.Fatal("no place")
		}
	}
	if gone, evicted, wait := p.begin(a, now); gone || evicted != nil || wait > 0 || a.state != busy {
		t.Fatalf("the first is in state %d", a.state)
	}
	if gone, evicted, wait := p.begin(b, now); gone || evicted != nil || wait != time.Second || b.state != spoken {
		t.Errorf("a second is in state %d, wait %v", b.state, wait)
	}
	if was := p.through(a); was != busy || len(p.room) != 1 {
		t.Errorf("through from state %d, %d told of the room", was, len(p.room))
	}
	if _, _, wait := p.begin(b, now); wait > 0 || b.state != busy {
		t.Errorf("after the first is through the second is in state %d", b.state)
	}
	if was := p.left(a); was != through || p.open != 1 {
		t.Errorf("a socket that was through left from state %d, %d open", was, p.open)
	}
	if p.left(b); p.open != 0 || len(p.from) != 0 || p.busy.n != 0 {
		t.Errorf("%d open, %d networks and %d busy are left of none", p.open, len(p.from), p.busy.n)
	}
}

// TestAnIntroducedSocketCountsAsItsClients: the balancer's network is free again, and the client's has its bound.
func TestAnIntroducedSocketCountsAsItsClients(t *testing.T) {
	p, now := placesOf(AdmissionConfig{MaxPendingPerAddress: 1}), time.Unix(1000, 0)
	client := netip.MustParseAddrPort("203.0.113.9:5000")
	a, b := caller("192.0.2.1"), caller("192.0.2.1")
	for i, s := range []*Socket{a, b} {
		if reason, _, _ := p.enter(s, now); reason != "" {
			t.Fatalf("socket %d is refused: %s", i, reason)
		}
		if within := p.introduce(s, client); within != (i == 0) || s.from != client.Addr() {
			t.Errorf("socket %d of its client: within the bound %v, counts as %v", i, within, s.from)
		}
	}
	if n := p.from[a.network]; n != 2 || len(p.from) != 1 {
		t.Errorf("%d of the client's network, %d networks", n, len(p.from))
	}
}
