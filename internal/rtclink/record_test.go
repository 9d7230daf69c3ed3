package rtclink

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// wire is one end of a datagram path in memory, which a test can listen in on and change.
type wire struct {
	net.Conn
	mu   sync.Mutex
	sent [][]byte
	edit func([]byte) [][]byte // nil passes on
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.sent = append(w.sent, bytes.Clone(p))
	out := [][]byte{p}
	if w.edit != nil {
		out = w.edit(bytes.Clone(p))
	}
	w.mu.Unlock()
	for _, b := range out {
		if _, err := w.Conn.Write(b); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// wires joins two sockets of loopback.
func wires(t *testing.T) (a, b *wire) {
	t.Helper()
	x, y := udp(t), udp(t)
	joined := func(c *net.UDPConn, to net.Addr) *wire {
		_ = c.Close()
		d, err := net.DialUDP("udp4", c.LocalAddr().(*net.UDPAddr), to.(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return &wire{Conn: d}
	}
	ax, by := x.LocalAddr(), y.LocalAddr()
	return joined(x, by), joined(y, ax)
}

func testHost(t *testing.T) *Host {
	t.Helper()
	return listen(t, func(c *Config) { c.SocketPerLink = true })
}

// shake makes records over two wires; the server's come once the client has said something.
func shake(t *testing.T, client, server *wire) (c, s *records) {
	t.Helper()
	ch, sh := testHost(t), testHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() {
		var err error
		s, err = sh.handshake(ctx, server, false, ch.identity.Fingerprint, func() {})
		done <- err
	}()
	c, err := ch.handshake(ctx, client, true, sh.identity.Fingerprint, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(t, done, "the server"); err != nil {
		t.Fatal(err)
	}
	return c, s
}

func expect(t *testing.T, r *records, want string) {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		buf := make([]byte, 4096)
		n, err := r.Read(buf)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(buf[:n])
	}()
	if g := wait(t, got, want); g != want {
		t.Fatalf("read %q, expected %q", g, want)
	}
}

func say(t *testing.T, r *records, what string) {
	t.Helper()
	if _, err := r.Write([]byte(what)); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsCrossAfterAHandshake(t *testing.T) {
	leakCheck(t)
	cw, sw := wires(t)
	c, s := shake(t, cw, sw)
	say(t, c, "first")
	expect(t, s, "first")
	say(t, s, "back")
	expect(t, c, "back")
	for range 200 {
		say(t, c, "more")
		expect(t, s, "more")
	}
	for _, b := range cw.sent {
		if bytes.Contains(b, []byte("first")) {
			t.Error("plain text on the wire")
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 100)); !errors.Is(err, io.EOF) {
		t.Errorf("after the other side's close: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("written after close: %v", err)
	}
	_ = s.Close()
}

func TestAServerWhoseLastFlightIsLostSendsItAgain(t *testing.T) {
	leakCheck(t)
	cw, sw := wires(t)
	lost := 0
	sw.edit = func(b []byte) [][]byte {
		if b[0] == 20 && lost < 1 { // change cipher spec begins the last flight
			lost++
			return nil
		}
		return [][]byte{b}
	}
	c, s := shake(t, cw, sw)
	if lost == 0 {
		t.Fatal("nothing was lost")
	}
	say(t, c, "through")
	expect(t, s, "through")
	_ = c.Close()
	_ = s.Close()
}

func TestForgedAndRepeatedRecordsArePassedOver(t *testing.T) {
	leakCheck(t)
	cw, sw := wires(t)
	c, s := shake(t, cw, sw)
	say(t, c, "one")
	expect(t, s, "one")
	cw.mu.Lock()
	cw.edit = func(b []byte) [][]byte {
		bad := bytes.Clone(b)
		bad[len(bad)-1] ^= 1
		later := bytes.Clone(b)
		binary.BigEndian.PutUint64(later[3:], 1<<48|1<<40) // a number that it was not sealed with
		joined := append(bytes.Clone(bad), b...)           // two records in one datagram
		return [][]byte{bad, later, {}, {23}, b[:20], joined, b, b}
	}
	cw.mu.Unlock()
	say(t, c, "two")
	expect(t, s, "two")
	say(t, c, "three")
	expect(t, s, "three") // not "two" again
	_ = c.Close()
	_ = s.Close()
}

func TestAnotherCertificateThanSignaledEndsTheHandshake(t *testing.T) {
	leakCheck(t)
	cw, sw := wires(t)
	ch, sh := testHost(t), testHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := sh.handshake(ctx, sw, false, [32]byte{1}, func() {})
		done <- err
	}()
	_, err := ch.handshake(ctx, cw, true, sh.identity.Fingerprint, func() {})
	if serverErr := wait(t, done, "the server"); !errors.Is(serverErr, webrtcend.ErrFingerprint) {
		t.Errorf("server: %v, client: %v", serverErr, err)
	}
}

// TestRecordsAreDTLS: the other end is pion's, which reads what we write and the other way round.
func TestRecordsAreDTLS(t *testing.T) {
	leakCheck(t)
	for _, client := range []bool{true, false} {
		ours, theirs := wires(t)
		h, p := testHost(t), testHost(t)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		pc := &flights{conn: theirs, handed: make(chan struct{})} // never finished: it stays the handshake's
		got := make(chan string, 1)
		var conn *dtls.Conn
		go func() {
			certificate := dtls.WithCertificates(p.identity.Certificate)
			srtp := dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM)
			var err error
			if client {
				conn, err = dtls.ServerWithOptions(pionWire{pc}, theirs.RemoteAddr(), certificate, srtp, dtls.WithClientAuth(dtls.RequireAnyClientCert), dtls.WithInsecureSkipVerify(true))
			} else {
				conn, err = dtls.ClientWithOptions(pionWire{pc}, theirs.RemoteAddr(), certificate, srtp, dtls.WithInsecureSkipVerify(true))
			}
			if err == nil {
				err = conn.HandshakeContext(ctx)
			}
			if err == nil {
				_, err = conn.Write([]byte("from pion"))
			}
			buf := make([]byte, 100)
			n := 0
			if err == nil {
				n, err = conn.Read(buf)
			}
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(buf[:n])
		}()
		r, err := h.handshake(ctx, ours, client, p.identity.Fingerprint, func() {})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, r, "from pion")
		say(t, r, "to pion")
		if g := wait(t, got, "pion"); g != "to pion" {
			t.Errorf("client %v: pion read %q", client, g)
		}
		_ = r.Close()
		_ = conn.Close()
		cancel()
	}
}

// pionWire hands pion everything, application data too.
type pionWire struct{ *flights }

func (w pionWire) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := w.conn.Read(p)
	return n, w.conn.RemoteAddr(), err
}

func (w pionWire) Close() error { return w.conn.SetReadDeadline(time.Unix(1, 0)) }

// TestNoRecordNumberIsUsedTwice: a stranger that can send to a server before the client's first data has it repeat its last flight as
// often as it likes.
func TestNoRecordNumberIsUsedTwice(t *testing.T) {
	ours, _ := wires(t)
	f := &flights{conn: ours}
	record := func(epoch, number uint64) []byte {
		b := binary.BigEndian.AppendUint64([]byte{contentHandshake, 0xfe, 0xfd}, epoch<<48|number)
		return append(b, 0, 2, 1, 2)
	}
	for i, c := range []struct {
		datagram []byte
		passes   bool
	}{
		{record(0, 1000), true},
		{record(1, firstSequence-1), true},
		{record(1, firstSequence), false},
		{append(record(0, 5), record(1, 1<<40)...), false},
		{record(0, 5)[:14], true}, // no whole record
	} {
		if n, err := f.WriteTo(c.datagram, nil); err != nil || n != len(c.datagram) {
			t.Errorf("%d: wrote %d, %v", i, n, err)
		}
		if passed := len(ours.sent) > 0; passed != c.passes {
			t.Errorf("%d: passed %v", i, passed)
		}
		ours.sent = nil
	}
}

func TestReplayWindow(t *testing.T) {
	var w replayWindow
	for _, c := range []struct {
		number uint64
		fresh  bool
	}{{5, true}, {5, false}, {4, true}, {4, false}, {100, true}, {37, true}, {36, false}, {37, false}, {99, true}, {100, false}, {1 << 40, true}, {100, false}} {
		if got := w.fresh(c.number); got != c.fresh {
			t.Errorf("%d: fresh %v", c.number, got)
		} else if got {
			w.take(c.number)
		}
	}
}
