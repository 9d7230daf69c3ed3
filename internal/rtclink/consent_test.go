package rtclink

import (
	"bytes"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// settled waits until a link's agent has gone.
func settled(t testing.TB, l transfer.Link) *consent {
	t.Helper()
	late, every := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer every.Stop()
	for {
		if c := l.(*Link).way.settled.Load(); c != nil && l.(*Link).agent.Load() == nil {
			return c
		}
		select {
		case <-every.C:
		case <-late:
			t.Fatal("the link keeps its agent")
		}
	}
}

func TestASettledLinkGoesOn(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, func(c *Config) { c.SocketPerLink = true })
	a, b := newEnd(), newEnd()
	got := make(chan []byte, 1)
	b.data = func(m []byte) { got <- bytes.Clone(m) }
	connect(t, viewer, seed, a, b)
	settled(t, a.link)
	settled(t, b.link)
	a.link.SendControl([]byte("there"))
	if m := wait(t, b.control, "a control message"); string(m) != "there" {
		t.Errorf("%q", m)
	}
	b.link.SendControl([]byte("back"))
	wait(t, a.control, "a control message")
	if full := bytes.Repeat([]byte("d"), a.link.MaxMessage()); !a.link.SendData(full) || !bytes.Equal(wait(t, got, "data"), full) {
		t.Error("data did not arrive")
	}
	if err := a.link.AddCandidate(transfer.Candidate{Candidate: "candidate:1 1 udp 1 192.0.2.1 5 typ host"}); err != nil || a.link.Path() != transfer.Direct {
		t.Errorf("%v, path %s", err, a.link.Path())
	}
	port := strconv.Itoa(int(seed.Addr().Port()))
	if _ = a.link.AddCandidate(transfer.Candidate{Candidate: "candidate:1 1 udp 1 127.0.0.1 " + port + " typ relay raddr 192.0.2.1 rport 9"}); a.link.Path() != transfer.Relay {
		t.Errorf("path %s, and the other side is a relay", a.link.Path())
	}
	a.link.Close(peer.CloseIdle, []byte("bye"))
	if m := wait(t, b.control, "the farewell"); string(m) != "bye" {
		t.Errorf("farewell %q", m)
	}
	wait(t, b.closed, "the other side's close")
	<-b.link.Done()
	m := seed.socket.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ports)+len(m.owners) > 0 {
		t.Errorf("%d ports and %d addresses are left", len(m.ports), len(m.owners))
	}
}

func TestALinkKeepsTheAgentWhoseChecksAreWanted(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, func(c *Config) { c.Keepalive = time.Second })
	a, b := newEnd(), newEnd()
	connect(t, viewer, seed, a, b)
	settled(t, b.link)
	if l := a.link.(*Link); l.agent.Load() == nil || l.timer != nil {
		t.Error("the agent is gone, or will go")
	}
}

func TestASettledLinkIsGivenUpWhenNothingComes(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, nil)
	a, b := newEnd(), newEnd()
	connect(t, viewer, seed, a, b)
	c := settled(t, a.link)
	a.link.(*Link).mourn()
	if a.link.(*Link).closing.Load() {
		t.Fatal("a link that lives is given up")
	}
	before := steady(time.Now().Add(-LostAfter))
	c.heard.Store(before)
	b.link.SendControl([]byte("alive"))
	wait(t, a.control, "a control message")
	if c.heard.Load() == before {
		t.Error("what came is not noted")
	}
	c.heard.Store(before)
	a.link.(*Link).mourn()
	if r := wait(t, a.closed, "the end"); r != peer.CloseFailed {
		t.Errorf("closed: %s", r)
	}
}

// check makes a request of the other side's agent.
func check(user, password string, options ...stun.Setter) []byte {
	all := append([]stun.Setter{stun.TransactionID, stun.BindingRequest, stun.NewUsername(user)}, options...)
	return stun.MustBuild(append(all, stun.NewShortTermIntegrity(password), stun.Fingerprint)...).Raw
}

func TestASettledLinkAnswersChecksAndFollowsNominations(t *testing.T) {
	leakCheck(t)
	m := testMux(t)
	h, err := m.handle("us", m.addrs[0], func() {}, newIntake())
	if err != nil {
		t.Fatal(err)
	}
	first, second := udp(t), udp(t)
	at := func(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }
	moved := make(chan struct{}, 8)
	c := &consent{ufrag: "us", user: "us:them", password: "ours", controlled: true, moved: func() { moved <- struct{}{} }}
	to := at(first)
	c.to.Store(&to)
	if !m.settle(c) {
		t.Fatal("the port is not there")
	}
	m.RemoveConnByUfrag("us") // as the agent does when it closes
	_ = h.Close()
	nominate := []stun.Setter{ice.UseCandidate()}
	buf := make([]byte, 2048)
	// What must not be answered comes first: the answer to the last is the first that is read.
	for _, bad := range [][]byte{
		check("us:them", "guessed", nominate...), check("us:others", "ours", nominate...),
		check("us:them", "ours", ice.AttrControlled(1)), []byte("\x00\x01\x00\x00\x21\x12\xa4\x42 cut"),
	} {
		_, _ = second.WriteTo(bad, m.conn.LocalAddr())
	}
	for i, options := range [][]stun.Setter{{ice.AttrControlling(1)}, append(nominate, ice.AttrControlling(1))} {
		request := check("us:them", "ours", options...)
		_, _ = second.WriteTo(request, m.conn.LocalAddr())
		_ = second.SetReadDeadline(time.Now().Add(patience))
		n, err := second.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		answer := &stun.Message{Raw: bytes.Clone(buf[:n])}
		var mapped stun.XORMappedAddress
		if err := answer.Decode(); err != nil || answer.Type != stun.BindingSuccess || !bytes.Equal(answer.TransactionID[:], request[8:20]) {
			t.Fatalf("%v, %s", err, answer)
		}
		if err := mapped.GetFrom(answer); err != nil || mapped.Port != int(at(second).Port()) {
			t.Errorf("%v, %s", err, mapped)
		}
		if stun.NewShortTermIntegrity("ours").Check(answer) != nil || stun.Fingerprint.Check(answer) != nil {
			t.Error("the answer proves nothing")
		}
		if i == 0 && *c.to.Load() != at(first) {
			t.Error("moved without a nomination")
		}
	}
	wait(t, moved, "the word that it moved")
	if _, err := c.Write([]byte("data")); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(buf); err != nil || string(buf[:n]) != "data" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	m.end(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ports)+len(m.owners) > 0 || len(moved) > 0 {
		t.Errorf("%d ports and %d addresses are left, moved %d times more", len(m.ports), len(m.owners), len(moved))
	}
}

func TestAnEndThatNominatesFollowsNoOther(t *testing.T) {
	m := testMux(t)
	if _, err := m.handle("us", m.addrs[0], func() {}, newIntake()); err != nil {
		t.Fatal(err)
	}
	c := &consent{ufrag: "us", user: "us:them", password: "ours"}
	c.heard.Store(steady(time.Now().Add(-time.Millisecond)))
	before := c.heard.Load()
	to := netip.MustParseAddrPort("192.0.2.1:5")
	c.to.Store(&to)
	m.settle(c)
	c.take(c.port.Load(), check("us:them", "ours", ice.UseCandidate(), ice.AttrControlled(1)), netip.MustParseAddrPort("127.0.0.1:9"))
	if c.heard.Load() == before || *c.to.Load() != to || c.asked.Load() != nil || c.tried.Load() != nil {
		t.Errorf("heard at %d, at %s", c.heard.Load(), c.to.Load())
	}
	c.heard.Store(0)
	c.take(c.port.Load(), check("us:them", "ours", ice.AttrControlling(1)), to)
	if c.heard.Load() != 0 {
		t.Error("a check in this side's own role counts")
	}
}

// TestALinkIsNotSilentForAClockThatIsSet: what is noted of a check is a moment of the clock that nothing sets.
func TestALinkIsNotSilentForAClockThatIsSet(t *testing.T) {
	m := testMux(t)
	if _, err := m.handle("us", m.addrs[0], func() {}, newIntake()); err != nil {
		t.Fatal(err)
	}
	c := &consent{ufrag: "us", user: "us:them", password: "ours", controlled: true, moved: func() {}}
	to := netip.MustParseAddrPort("127.0.0.1:9")
	c.to.Store(&to)
	m.settle(c)
	before := steady(time.Now())
	c.take(c.port.Load(), check("us:them", "ours", ice.AttrControlling(1)), to)
	if heard, now := c.heard.Load(), steady(time.Now()); heard < before || heard > now {
		t.Errorf("heard at %d, between %d and %d", heard, before, now)
	}
}

func FuzzConsent(f *testing.F) {
	f.Add(check("us:them", "ours", ice.UseCandidate()))
	f.Add(check("us:them", "guessed"))
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		f.Fatal(err)
	}
	m, err := newMux(conn, []net.Addr{conn.LocalAddr()}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = m.Close() })
	p := newPort(m, portKey{"us", false}, newIntake())
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &consent{ufrag: "us", user: "us:them", password: "ours", controlled: true, moved: func() {}}
		to := netip.MustParseAddrPort("127.0.0.1:9")
		c.to.Store(&to)
		raw := bytes.Clone(b)
		c.take(p, b, netip.MustParseAddrPort("127.0.0.1:10"))
		if !bytes.Equal(b, raw) {
			t.Error("it changed what it was given")
		}
		if m := (&stun.Message{Raw: raw}); c.heard.Load() != 0 && (m.Decode() != nil || stun.NewShortTermIntegrity("ours").Check(m) != nil) {
			t.Errorf("%x counts", b)
		}
	})
}
