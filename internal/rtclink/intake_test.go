package rtclink

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/pion/stun/v4"
)

// arrive makes an arrival of packets of one size from one sender.
func arrive(packets ...[]byte) arrival {
	s := &slab{}
	s.refs.Store(1)
	a := arrival{slab: s, size: len(packets[0]), from: netip.MustParseAddrPort("192.0.2.1:5")}
	for _, p := range packets {
		a.n += copy(s.buf[a.n:], p)
	}
	return a
}

func TestDataGoByTheAgentWhichHearsThatTheyCome(t *testing.T) {
	in := newIntake()
	p := newPort(nil, portKey{}, in)
	check := binding(t, stun.ClassRequest, "us:them")
	record := bytes.Repeat([]byte{contentApplication}, len(check))
	for range 3 {
		a := arrive(record, check, record)
		p.push(a, 0, a.n)
		a.slab.release()
	}
	buf := make([]byte, maxDatagram)
	for i := range 6 {
		if n, err := in.Read(buf); err != nil || !bytes.Equal(buf[:n], record) {
			t.Fatalf("record %d: %x, %v", i, buf[:n], err)
		}
	}
	var heard [][]byte
	for q, ok := p.pop(); ok; q, ok = p.pop() {
		heard = append(heard, bytes.Clone(q.data))
		q.release()
	}
	if len(heard) != 4 || !bytes.Equal(heard[0], check) || !bytes.Equal(heard[1], alive) || !bytes.Equal(heard[3], check) {
		t.Errorf("the agent heard %x", heard)
	}
	m := &stun.Message{Raw: alive}
	if err := m.Decode(); err != nil || m.Type != stun.NewType(stun.MethodBinding, stun.ClassIndication) {
		t.Errorf("%s, %v", m.Type, err)
	}
}

func TestAnIntakeCanBeInterruptedAndGoesOn(t *testing.T) {
	leakCheck(t)
	in := newIntake()
	type got struct {
		n   int
		err error
	}
	read := func() <-chan got {
		c := make(chan got, 1)
		go func() {
			n, err := in.Read(make([]byte, 10))
			c <- got{n, err}
		}()
		return c
	}
	c := read()
	_ = in.SetReadDeadline(time.Unix(1, 0))
	if g := wait(t, c, "the interruption"); !errors.Is(g.err, os.ErrDeadlineExceeded) || !isTimeout(g.err) {
		t.Errorf("%d, %v", g.n, g.err)
	}
	a := arrive(make([]byte, 8), make([]byte, 8))
	b := arrive(make([]byte, 20))
	in.put(func(push func(packet)) { a.each(0, a.n, push); b.each(0, b.n, push); push(packet{data: []byte("own")}) })
	if g := wait(t, read(), "the interruption"); g.err == nil {
		t.Error("read although it is interrupted")
	}
	_ = in.SetReadDeadline(time.Time{})
	for _, want := range []got{{8, nil}, {8, nil}, {10, io.ErrShortBuffer}, {3, nil}} {
		if g := wait(t, read(), "a packet"); g != want {
			t.Errorf("%v, expected %v", g, want)
		}
	}
	if a.slab.refs.Load() != 1 || b.slab.refs.Load() != 1 {
		t.Errorf("slabs are held %d and %d times", a.slab.refs.Load(), b.slab.refs.Load())
	}
	in.put(func(push func(packet)) { a.each(0, a.n, push) })
	in.close()
	if g := wait(t, read(), "the end"); !errors.Is(g.err, io.EOF) || a.slab.refs.Load() != 1 {
		t.Errorf("%v; the slab is held %d times", g.err, a.slab.refs.Load())
	}
	in.put(func(push func(packet)) { a.each(0, a.n, push) })
	if a.slab.refs.Load() != 1 {
		t.Error("a closed intake holds a slab")
	}
}

// TestALinkOnItsWayKeepsFewPackets: what comes before the handshake has its way is kept for it. A stranger whose checks are not answered yet
// sends as much as it likes to a link that reads nothing, one packet a slab.
func TestALinkOnItsWayKeepsFewPackets(t *testing.T) {
	in := newIntake()
	defer in.close()
	put := func(n int) (kept int) {
		for range n {
			a := arrive([]byte{contentHandshake})
			in.put(func(push func(packet)) { a.each(0, a.n, push) })
			kept += int(a.slab.refs.Load()) - 1
			a.slab.release()
		}
		return kept
	}
	if kept := put(4 * earlyRecords); kept != earlyRecords {
		t.Errorf("%d slabs are held for a link that does not read", kept)
	}
	if _, err := in.Read(make([]byte, maxDatagram)); err != nil {
		t.Fatal(err)
	}
	if kept := put(4 * earlyRecords); kept != 4*earlyRecords {
		t.Errorf("%d of %d packets are kept for a link that reads", kept, 4*earlyRecords)
	}
}

// TestAnAgentThatDoesNotReadKeepsFewChecks: an agent reads nothing until its link has an answer. A peer that has the offer and does not answer
// sends as many checks as it likes, one a slab.
func TestAnAgentThatDoesNotReadKeepsFewChecks(t *testing.T) {
	m, in := bareMux(), newIntake()
	defer in.close()
	h, err := m.handle("us", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, func() {}, in)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for range 4 * earlyRecords {
		a := arrive(binding(t, stun.ClassRequest, "us:them"))
		m.deliver(a)
		kept += int(a.slab.refs.Load()) - 1
		a.slab.release()
	}
	if kept != earlyRecords {
		t.Errorf("%d slabs are held for an agent that does not read, want %d", kept, earlyRecords)
	}
	if n, _, err := h.ReadFrom(make([]byte, maxDatagram)); err != nil || n == 0 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	a := arrive(binding(t, stun.ClassRequest, "us:them"))
	defer a.slab.release()
	if m.deliver(a); a.slab.refs.Load() != 2 {
		t.Error("an agent that has begun to read does not hear the next check")
	}
}

func TestAQueueIsBounded(t *testing.T) {
	var w waiting
	a := arrive(make([]byte, 8))
	for i := range queueBound + 10 {
		w.push(packet{a.slab, a.slab.buf[:8], netip.AddrPort{}})
		if i%3 == 0 {
			if q, ok := w.pop(); ok {
				q.release()
			}
		}
	}
	for range queueBound {
		w.push(packet{a.slab, a.slab.buf[:8], netip.AddrPort{}})
	}
	if n := int(a.slab.refs.Load()) - 1; n != queueBound {
		t.Errorf("%d packets wait", n)
	}
	w.drop()
	if n := a.slab.refs.Load(); n != 1 {
		t.Errorf("the slab is held %d times", n)
	}
}
