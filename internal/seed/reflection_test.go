package seed_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sdp"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	attackers = 32
	named     = 64 // candidates of each, in its offer and again behind it
	// watched is how long the target counts: a check that is not answered is repeated for 1.4 s.
	watched = 2500 * time.Millisecond
)

// target is a socket that has asked for nothing.
type target struct {
	*net.UDPConn
	packets, bytes, largest int
}

func newTarget(t *testing.T) *target {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadBuffer(4 << 20)
	return &target{UDPConn: conn}
}

func (v *target) count() {
	_ = v.SetReadDeadline(time.Now().Add(watched))
	for b := make([]byte, 2048); ; v.packets++ {
		n, err := v.Read(b)
		if err != nil {
			return
		}
		v.bytes += n
		v.largest = max(v.largest, n)
	}
}

// attack offers links whose addresses are the target's; it returns how many bytes of signals that took.
func attack(t *testing.T, w *world, at netip.AddrPort) (spent int) {
	t.Helper()
	send := func(m *bus.Signal) {
		spent += len(m.SDP) + len(m.Candidate)
		w.toSeed(&bus.SeedDelivery{Kind: bus.KindSignal, Signal: m, Title: w.title(30)})
	}
	for n := range attackers {
		v := w.newViewer(byte(100 + n))
		d := sdp.Description{
			Ufrag: strings.Repeat("/", 32), Password: strings.Repeat("x", 22), Fingerprint: [32]byte{1}, Setup: sdp.ActPass, Mid: "0", MaxMessage: 65535,
		}
		port := at.Port()
		for i := range named {
			d.Candidates = append(d.Candidates, sdp.Candidate{
				Foundation: fmt.Sprint(i), Priority: uint32(i + 1), Addr: at.Addr(), Port: port, Type: sdp.Host,
			})
			port++
		}
		m := v.message("offer")
		m.SDP, m.Plan = d.String(), &signal.Plan{V: 1, Data: 2, Message: 16384}
		send(m)
		for i := range named {
			c := v.message("candidate")
			// Another spelling of the same address.
			c.Candidate = fmt.Sprintf("candidate:x%d 1 UDP 9 ::ffff:%s %d typ srflx raddr 8.8.8.8 rport 1", i, at.Addr(), at.Port())
			send(c)
		}
	}
	return spent
}

func counted(w *world, name, label string) float64 {
	for _, d := range seed.Metrics() {
		if d.Name == name {
			return w.metrics.Value(d, label)
		}
	}
	return -1
}

func newGuardedWorld(t *testing.T, allow ...access.Peer) *world {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	sink := &testkit.Recorder{}
	guard := &rtclink.Guard{Reach: access.Reach{Allow: allow}, Refused: seed.RefusedCandidates(sink), Dropped: seed.DroppedChecks(sink)}
	w := newWorldWith(t, &memoryBus{}, signal.ID{1}, newOrigin(t), rtclink.Config{Listen: "0.0.0.0:0", Loopback: true, Guard: guard}, nil)
	w.metrics = sink
	return w
}

// TestASeedChecksNoRefusedAddress: viewers point at a socket in a refused range; nothing comes there, and a viewer that is in that range and
// reaches the seed is served as ever.
func TestASeedChecksNoRefusedAddress(t *testing.T) {
	w := newGuardedWorld(t)
	v := newTarget(t)
	attack(t, w, v.LocalAddr().(*net.UDPAddr).AddrPort())
	v.count()
	if v.packets > 0 {
		t.Errorf("%d packets of %d bytes came to an address in a refused range", v.packets, v.bytes)
	}
	if n := counted(w, "leeway_seed_refused_candidates_total", "loopback"); n < attackers*named {
		t.Errorf("%v candidates are counted as refused", n)
	}
	w.connect(1, 30)
}

// TestASeedsChecksToAnAddressAreBounded: where the range is allowed, all offers together bring an address 40 checks at once and ten a
// second, each of at most 140 bytes.
func TestASeedsChecksToAnAddressAreBounded(t *testing.T) {
	w := newGuardedWorld(t, access.Peer{Prefix: netip.MustParsePrefix("127.0.0.0/8")})
	v := newTarget(t)
	began := time.Now()
	spent := attack(t, w, v.LocalAddr().(*net.UDPAddr).AddrPort())
	v.count()
	if bound := 41 + int(10*time.Since(began).Seconds()); v.packets == 0 || v.packets > bound || v.largest > 140 || v.bytes > spent/10 {
		t.Errorf("%d bytes of signals brought %d packets of %d bytes, the largest of %d; want at most %d of 140", spent, v.packets, v.bytes, v.largest, bound)
	}
	for name, label := range map[string]string{
		"leeway_seed_refused_candidates_total": "ports", "leeway_seed_dropped_checks_total": "address",
	} {
		if counted(w, name, label) == 0 {
			t.Errorf("%s{%s} is 0", name, label)
		}
	}
	// Viewers of the same address whose own checks come are answered, and theirs are paid for.
	w.connect(1, 30)
	w.connect(2, 30)
}
