package rtclink

import (
	"net"
	"testing"

	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// nominates says whether a packet asks to settle on its pair of addresses.
func nominates(b []byte) bool {
	m := &stun.Message{Raw: append([]byte(nil), b...)}
	return isSTUN(b) && m.Decode() == nil && m.Contains(stun.AttrUseCandidate)
}

// TestALinkOpensBeforeAPairIsAgreedOn loses every request to settle on a pair: the one that works carries the link.
func TestALinkOpensBeforeAPairIsAgreedOn(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, nil)
	lost := make(chan struct{}, 1)
	path := newLossyPath(t, net.UDPAddrFromAddrPort(seed.Addr()), func(b []byte) bool {
		if !nominates(b) {
			return false
		}
		select {
		case lost <- struct{}{}:
		default:
		}
		return true
	})
	t.Cleanup(path.close)
	a, b := newEnd(), newEnd()
	a.rewrite = func(string) (string, bool) { return "", false } // the viewer is heard through the path only
	b.rewrite = path.through
	connect(t, viewer, seed, a, b)
	a.link.SendControl([]byte("hello"))
	if m := wait(t, b.control, "a control message"); string(m) != "hello" {
		t.Errorf("%q", m)
	}
	wait(t, lost, "the viewer's agent to settle on a pair")
	if p := a.link.Path(); p != "direct" {
		t.Errorf("path %q", p)
	}
	if rtt := a.link.(*Link).flight.baseRTT(); rtt <= 0 {
		t.Errorf("a first round-trip time of %s", rtt)
	}
}

// TestADescriptionCarriesTheMachinesAddresses: the rest, of which there is none here, and the end of them go by events.
func TestADescriptionCarriesTheMachinesAddresses(t *testing.T) {
	leakCheck(t)
	h := listen(t, nil)
	own := make(chan string, 8)
	e := newEnd()
	e.peer = newEnd()
	e.rewrite = func(c string) (string, bool) { own <- c; return c, true }
	l, offer, err := h.Offer(e)
	if err != nil {
		t.Fatal(err)
	}
	d, err := sdp.Parse(offer.SDP)
	if err != nil || len(d.Candidates) != 1 || !d.Addressed() {
		t.Errorf("%v, %+v", err, d)
	}
	select {
	case c := <-own:
		t.Errorf("%q goes by an event too", c)
	default:
	}
	l.Close(peer.CloseIdle, nil)
	<-l.Done()
}

// TestADescriptionIsAddressed by an address, not by a name.
func TestADescriptionIsAddressed(t *testing.T) {
	for _, c := range []struct {
		candidates []string
		want       bool
	}{
		{nil, false},
		{[]string{"candidate:1 1 udp 2113937151 8a5e9c2d-0000-4000-8000-000000000000.local 50000 typ host"}, false},
		{[]string{"candidate:1 1 udp 2113937151 x.local 50000 typ host", "candidate:2 1 udp 2113937151 198.51.100.7 50000 typ host"}, true},
		{[]string{"candidate:1 1 udp 1 2001:db8::1 50000 typ srflx"}, true},
		{[]string{"candidate:1 1"}, false},
	} {
		d := &sdp.Description{}
		for _, text := range c.candidates {
			if one, ok := sdp.ParseCandidate(text); ok {
				d.Candidates = append(d.Candidates, one)
			}
		}
		if got := d.Addressed(); got != c.want {
			t.Errorf("%q: %v", c.candidates, got)
		}
	}
}

// TestWhichEndIsTheClient: the one that answers is where both ends are of this package and it has an address to send to. A browser
// that offers begins the handshake itself.
func TestWhichEndIsTheClient(t *testing.T) {
	leakCheck(t)
	offerer, answerer := listen(t, nil), listen(t, nil)
	for _, c := range []struct {
		name  string
		offer func(*sdp.Description)
		want  sdp.Setup
	}{
		{"ours, with an address", func(*sdp.Description) {}, sdp.Active},
		{"ours, without an address", func(d *sdp.Description) { d.Candidates = nil }, sdp.Passive},
		{"a browser's, with an address", func(d *sdp.Description) { d.Init = nil }, sdp.Passive},
		{"a browser's, without an address", func(d *sdp.Description) { d.Init, d.Candidates = nil, nil }, sdp.Passive},
		{"of one that wants to be the client", func(d *sdp.Description) { d.Setup = sdp.Active }, sdp.Passive},
		{"of one that wants to be the server", func(d *sdp.Description) { d.Setup, d.Init = sdp.Passive, nil }, sdp.Active},
	} {
		a, b := newEnd(), newEnd()
		a.peer, b.peer = b, a
		l, offer, err := offerer.Offer(a)
		if err != nil {
			t.Fatal(err)
		}
		d, err := sdp.Parse(offer.SDP)
		if err != nil {
			t.Fatal(err)
		}
		c.offer(d)
		offer.SDP = d.String()
		other, answer, err := answerer.Answer(offer, b)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got, err := sdp.Parse(answer.SDP); err != nil || got.Setup != c.want {
			t.Errorf("%s: the answer is %s (%v), want %s", c.name, got.Setup, err, c.want)
		}
		other.Close(peer.CloseIdle, nil)
		l.Close(peer.CloseIdle, nil)
		<-l.Done()
		<-other.(*Link).Done()
	}
}
