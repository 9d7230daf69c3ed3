package wsconn

import (
	"net/http"
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
	if was := p.through(a, now); was != busy || len(p.room) != 1 {
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

// served are sockets of one address whose requests are there.
func served(t *testing.T, p *places, n int, now time.Time) (all []*Socket) {
	t.Helper()
	for range n {
		s := caller("192.0.2.1")
		if _, evicted, _ := p.enter(s, now); evicted != nil || !p.speaks(s) {
			t.Fatal("no place")
		}
		p.begin(s, now)
		p.follow(s, http.StateActive, now)
		p.through(s, now)
		all = append(all, s)
	}
	return all
}

// TestTheLongestIdleMakesRoom: not one that has been asked for something since, and only where there is no other place.
func TestTheLongestIdleMakesRoom(t *testing.T) {
	p, now := placesOf(AdmissionConfig{MaxOpen: 3}), time.Unix(1000, 0)
	all := served(t, p, 3, now)
	for i, s := range all {
		p.follow(s, http.StateIdle, now.Add(time.Duration(i)*time.Second))
	}
	p.follow(all[0], http.StateActive, now.Add(time.Minute))
	p.follow(all[0], http.StateIdle, now.Add(time.Minute))
	for _, want := range []*Socket{all[1], all[2], all[0]} {
		if reason, evicted, wait := p.enter(caller("198.51.100.1"), now); reason != "" || evicted != want || wait != 0 || p.open != 3 {
			t.Fatalf("%q, the longest idle: %v, wait %v, %d open", reason, evicted == want, wait, p.open)
		}
		if was := p.left(want); was != away || p.open != 3 {
			t.Errorf("its end counts, from state %d: %d open", was, p.open)
		}
	}
	if reason, _, _ := p.enter(caller("198.51.100.1"), now); reason != "total" {
		t.Errorf("none is idle, and one more is let in: %q", reason)
	}
}

// TestARequestWithoutAnEndMakesRoom: of a client that does not send its body, or does not read. A WebSocket, which goes on for as long, does not.
func TestARequestWithoutAnEndMakesRoom(t *testing.T) {
	p, now := placesOf(AdmissionConfig{MaxOpen: 3}), time.Unix(1000, 0)
	all := served(t, p, 3, now)
	p.follow(all[0], http.StateHijacked, now)
	p.follow(all[2], http.StateActive, now.Add(time.Second))
	late := now.Add(longestRequest)
	if reason, _, _ := p.enter(caller("198.51.100.1"), late.Add(-1)); reason != "total" {
		t.Errorf("a request lost its connection before its time: %q", reason)
	}
	if reason, evicted, _ := p.enter(caller("198.51.100.1"), late); reason != "" || evicted != all[1] {
		t.Errorf("%q, the longest request: %v", reason, evicted == all[1])
	}
	if reason, _, _ := p.enter(caller("198.51.100.1"), late); reason != "total" {
		t.Errorf("a shorter one, or a socket, lost its connection: %q", reason)
	}
	if was := p.left(all[2]); was != asking || p.asking.n != 0 || p.open != 2 {
		t.Errorf("one that is closed left from state %d: %d asking, %d open", was, p.asking.n, p.open)
	}
	p.follow(all[2], http.StateClosed, late)
	if all[2].state != away || p.left(all[0]) != through || p.open != 1 {
		t.Errorf("in state %d after its end, %d open", all[2].state, p.open)
	}
}

// TestTheRequestsOfOneAddressAreBounded: a client that begins requests and ends none has so many connections that are asking. One that
// asks for nothing, or has become a WebSocket, does not count.
func TestTheRequestsOfOneAddressAreBounded(t *testing.T) {
	p, now := placesOf(AdmissionConfig{MaxOpen: 100, MaxPendingPerAddress: 3}), time.Unix(1000, 0)
	all := served(t, p, 3, now)
	from := all[0].from.String()
	refused := func(of string) bool {
		s := caller(of)
		reason, _, _ := p.enter(s, now)
		p.left(s)
		return reason == "half-open"
	}
	if !refused(from) || refused("198.51.100.1") {
		t.Error("a fourth request of the address came in, or one of another did not")
	}
	p.follow(all[0], http.StateIdle, now)
	if refused(from) {
		t.Error("a connection that asks for nothing counts")
	}
	p.follow(all[0], http.StateActive, now)
	p.follow(all[1], http.StateHijacked, now)
	p.left(all[2])
	if p.from[all[0].network] != 1 || refused(from) {
		t.Errorf("%d of the address are asking; one is", p.from[all[0].network])
	}
	p.left(all[0])
	p.left(all[1])
	if len(p.from) != 0 || p.open != 0 {
		t.Errorf("%d addresses are remembered, %d sockets open", len(p.from), p.open)
	}
}
