package rtclink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pion/dtls/v3"
)

// earlyRecords bounds how many datagrams are kept before the handshake reads, how many of application data while it ends, and how many of ICE
// wait for the agent.
const earlyRecords = 64

// shakeHands makes keys with the other side over conn, whose certificate must have the fingerprint.
func (h *Host) shakeHands(ctx context.Context, conn net.PacketConn, client bool, fingerprint [32]byte) (*dtls.Conn, error) {
	peer, err := h.identity.Handshake(ctx, conn, path, client, fingerprint,
		dtls.WithCipherSuites(dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256), dtls.WithLoggerFactory(h.loggers))
	if err != nil {
		return nil, fmt.Errorf("rtclink: %w", err)
	}
	return peer, nil
}

// handshake makes keys with the other side, and the records that they are for.
func (h *Host) handshake(ctx context.Context, conn datagrams, client bool, fingerprint [32]byte, idle func()) (*records, error) {
	f := &flights{conn: conn, handed: make(chan struct{})}
	peer, err := h.shakeHands(ctx, f, client, fingerprint)
	if err != nil {
		return nil, err
	}
	state, _ := peer.ConnectionState()
	k, err := keysOf(state)
	if err != nil {
		_ = peer.Close()
		return nil, fmt.Errorf("rtclink: %w", err)
	}
	f.finish(client)
	ctx, stop := context.WithCancel(ctx) // a link may end before the handshake lets go
	return newRecords(conn, k, func() ([][]byte, error) { return f.take(ctx, peer) }, stop, idle), nil
}

// path is where a handshake sends to: the ICE agent knows where that is.
var path net.Addr = &net.UDPAddr{}

// flights is what a handshake runs over: conn, less the application data, which it keeps. When the handshake is over and
// cannot be needed again, it lets go of conn: a client at once; a server when the first application data shows that
// its last flight has arrived, for until then it may have to send that again.
type flights struct {
	conn   datagrams
	handed chan struct{} // closed when the handshake reads no more

	mu    sync.Mutex
	done  bool     // guarded by mu: both sides have the keys, as far as this one knows
	kick  bool     // guarded by mu: reading was interrupted to let go
	over  bool     // guarded by mu: handed is closed
	early [][]byte // guarded by mu
}

var _ net.PacketConn = (*flights)(nil)

// finish says that the handshake has succeeded.
func (f *flights) finish(client bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	if !f.over && (client || len(f.early) > 0) {
		f.kick = true
		_ = f.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// take waits until conn is free, ends the handshake's machinery and returns the application data that came meanwhile.
func (f *flights) take(ctx context.Context, peer *dtls.Conn) ([][]byte, error) {
	select {
	case <-f.handed:
	case <-ctx.Done():
		_ = f.conn.SetReadDeadline(time.Unix(1, 0))
	}
	f.mu.Lock()
	f.over = true
	early := f.early
	f.early = nil
	f.mu.Unlock()
	_ = peer.Close() // f is mute now
	return early, ctx.Err()
}

// ReadFrom implements net.PacketConn.
func (f *flights) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, err := f.conn.Read(p)
		f.mu.Lock()
		application := err == nil && n > 0 && p[0] == contentApplication
		if application && len(f.early) < earlyRecords {
			f.early = append(f.early, append([]byte(nil), p[:n]...))
		}
		if f.done && !f.over && (application || f.kick && isTimeout(err)) {
			f.over = true
			_ = f.conn.SetReadDeadline(time.Time{})
			close(f.handed)
		}
		over := f.over
		f.mu.Unlock()
		switch {
		case over:
			return 0, nil, net.ErrClosed
		case application:
			continue
		case err != nil:
			return 0, nil, err
		}
		return n, path, nil
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// WriteTo implements net.PacketConn.
func (f *flights) WriteTo(p []byte, _ net.Addr) (int, error) {
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	if over || usesOurs(p) {
		return len(p), nil // the handshake's farewell (the link goes on), or a number that is not its own
	}
	return f.conn.Write(p)
}

// usesOurs says whether a datagram has a record of epoch 1 with a number that is ours to give out. A server sends its last
// flight again, under new numbers, for every handshake message that comes until the first application data do, forged
// ones too: the keys are the same, and two records of one number would have one nonce, which gives AES-GCM away.
func usesOurs(datagram []byte) bool {
	for len(datagram) >= recordHeader {
		if binary.BigEndian.Uint64(datagram[3:]) >= 1<<48|firstSequence {
			return true
		}
		datagram = datagram[min(len(datagram), recordHeader+int(binary.BigEndian.Uint16(datagram[recordHeader-2:]))):]
	}
	return false
}

// SetReadDeadline implements net.PacketConn.
func (f *flights) SetReadDeadline(t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.kick {
		return nil
	}
	return f.conn.SetReadDeadline(t)
}

// Close implements net.PacketConn; conn is not the handshake's to close.
func (f *flights) Close() error { return nil }

// LocalAddr implements net.PacketConn.
func (f *flights) LocalAddr() net.Addr { return f.conn.LocalAddr() }

// SetDeadline implements net.PacketConn.
func (f *flights) SetDeadline(t time.Time) error { return f.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn.
func (f *flights) SetWriteDeadline(time.Time) error { return nil }
