package rtclink

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/leeway-video/leeway/internal/transfer"
)

// gateway is a NAT with one host behind it, which reaches one host outside: it sends to inside what is for that one.
type gateway struct {
	t       *testing.T
	inside  *net.UDPConn
	far     *net.UDPAddr                // outside
	near    atomic.Pointer[net.UDPAddr] // the host behind
	mapping atomic.Pointer[net.UDPConn] // that packets go out by
	running sync.WaitGroup
}

func newGateway(t *testing.T, far *Host) *gateway {
	g := &gateway{t: t, inside: udp(t), far: net.UDPAddrFromAddrPort(far.Addr())}
	g.rebind()
	g.running.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := g.inside.ReadFromUDP(buf)
			if err != nil {
				return
			}
			g.near.Store(from)
			_, _ = g.mapping.Load().WriteTo(buf[:n], g.far)
		}
	})
	t.Cleanup(func() {
		_ = g.inside.Close()
		_ = g.mapping.Load().Close()
		g.running.Wait()
	})
	return g
}

// rebind forgets the mapping and makes another, at another port.
func (g *gateway) rebind() {
	conn := udp(g.t)
	old := g.mapping.Swap(conn)
	if old != nil {
		_ = old.Close()
	}
	g.running.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			if near := g.near.Load(); near != nil {
				_, _ = g.inside.WriteTo(buf[:n], near)
			}
		}
	})
}

// between has the ends of a link meet through the gateway, of which one is behind.
func (g *gateway) between(behind, outside *end) {
	behind.rewrite = func(string) (string, bool) { return "", false } // its checks show where it is
	at := g.inside.LocalAddr().(*net.UDPAddr)
	outside.rewrite = func(c string) (string, bool) {
		fields := strings.Fields(c)
		fields[4], fields[5] = at.IP.String(), strconv.Itoa(at.Port)
		return strings.Join(fields, " "), true
	}
}

// quietSince has a settled link believe that nothing has come for so long.
func quietSince(l transfer.Link, d time.Duration) {
	l.(*Link).way.settled.Load().heard.Store(steady(time.Now().Add(-d)))
}

// A NAT forgets its mapping while a link over it is open and settled on both sides, which then go on as before.
func TestALinkOutlivesTheMappingOfItsNAT(t *testing.T) {
	for _, c := range []struct {
		name   string
		offers bool // the end that is behind a NAT
		told   bool // it is told that nothing comes that should, and does not wait to notice
	}{
		{"the offerer is behind", true, false}, {"the answerer is behind", false, false},
		{"the offerer is told", true, true}, {"the answerer is told", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			viewer, seed := listen(t, nil), listen(t, nil)
			v, s := newEnd(), newEnd()
			g := newGateway(t, seed)
			g.between(v, s)
			if c.offers {
				connect(t, viewer, seed, v, s)
			} else {
				connect(t, seed, viewer, s, v)
			}
			settled(t, v.link)
			before := *settled(t, s.link).to.Load()
			g.rebind()
			quiet, ask := checkAfter, v.link.(*Link).mourn
			if c.told {
				quiet, ask = goneAfter, v.link.(*Link).Check
			}
			quietSince(v.link, quiet)
			quietSince(s.link, quiet)
			ask()
			// Both say something until both have heard: what went to the old address is sent again by SCTP.
			s.link.SendControl([]byte("from outside"))
			v.link.SendControl([]byte("from behind"))
			if m := wait(t, v.control, "what was said outside"); string(m) != "from outside" {
				t.Errorf("%q", m)
			}
			if m := wait(t, s.control, "what was said behind"); string(m) != "from behind" {
				t.Errorf("%q", m)
			}
			now := *s.link.(*Link).way.settled.Load().to.Load()
			if want := g.mapping.Load().LocalAddr().(*net.UDPAddr).AddrPort(); now == before || now.Port() != want.Port() {
				t.Errorf("packets went to %v and go to %v, the mapping is %v", before, now, want)
			}
			outside := &s.link.(*Link).sender
			outside.mu.Lock()
			defer outside.mu.Unlock()
			if !outside.flight.moved {
				t.Error("what is in flight goes by the way that was left")
			}
		})
	}
}

// The other side's relay is its own to keep up: a link that began by way of it is settled as any other, and goes where the
// other side nominates, past the relay too.
func TestALinkLeavesTheOtherSidesRelay(t *testing.T) {
	leakCheck(t)
	viewer, seed := listen(t, nil), listen(t, nil)
	v, s := newEnd(), newEnd()
	g := newGateway(t, seed)
	g.between(v, s)
	mapped := g.mapping.Load().LocalAddr().(*net.UDPAddr).Port
	v.rewrite = func(string) (string, bool) {
		return "candidate:1 1 udp 16777215 127.0.0.1 " + strconv.Itoa(mapped) + " typ relay raddr 192.0.2.1 rport 9", true
	}
	connect(t, viewer, seed, v, s)
	settled(t, v.link)
	settled(t, s.link)
	if path := s.link.Path(); path != transfer.Relay {
		t.Errorf("path %s, and the other side is at its relay", path)
	}
	g.rebind()
	v.link.(*Link).Check()
	v.link.SendControl([]byte("from behind"))
	if m := wait(t, s.control, "what was said behind"); string(m) != "from behind" {
		t.Errorf("%q", m)
	}
	s.link.SendControl([]byte("from outside"))
	if m := wait(t, v.control, "what was said outside"); string(m) != "from outside" {
		t.Errorf("%q", m)
	}
	if path := s.link.Path(); path != transfer.Direct {
		t.Errorf("path %s, and the other side has left its relay", path)
	}
}

// An end that was not answered from an address does not go there, whatever came from it.
func TestOnlyAnAnswerMovesALink(t *testing.T) {
	m := testMux(t)
	if _, err := m.handle("us", m.addrs[0], func() {}, newIntake()); err != nil {
		t.Fatal(err)
	}
	first, second := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
	moved := 0
	c := &consent{ufrag: "us", user: "us:them", password: "ours", request: "them:us", theirs: "theirs", moved: func() { moved++ }}
	c.to.Store(&first)
	m.settle(c)
	p := c.port.Load()
	c.take(p, check("us:them", "ours", ice.AttrControlled(1)), second)
	c.ask(p, first) // as it does each second
	q := c.tried.Load()
	if q == nil || q.to != second || c.heard.Load() != 0 || moved > 0 {
		t.Fatalf("asked %+v, heard at %d, moved %d times", q, c.heard.Load(), moved)
	}
	answer := func(id [stun.TransactionIDSize]byte, password string) []byte {
		return stun.MustBuild(stun.NewTransactionIDSetter(id), stun.BindingSuccess, stun.NewShortTermIntegrity(password), stun.Fingerprint).Raw
	}
	c.take(p, answer(q.id, "guessed"), second)
	c.take(p, answer([stun.TransactionIDSize]byte{1}, "theirs"), second)
	c.take(p, answer(q.id, "theirs"), first)
	if moved > 0 || c.heard.Load() != 0 {
		t.Fatal("it moved for what answers nothing")
	}
	c.take(p, answer(q.id, "theirs"), second)
	if moved != 1 || *c.to.Load() != second || c.heard.Load() == 0 || c.tried.Load() != nil {
		t.Errorf("moved %d times, to %v", moved, *c.to.Load())
	}
	c.take(p, answer(q.id, "theirs"), second) // again
	if moved != 1 {
		t.Error("an answer counts twice")
	}
}
