package rtclink

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
)

// plain is a link's connection with Config.PionRecords: pion keeps what it made keys with, and writes and reads the records too. It
// costs more than records (docs/decisions/0011) and is the way back from them.
type plain struct {
	*dtls.Conn
	idle func() // called by Read: what was read before has been dealt with
	more bool   // of the reading goroutine: something was
}

var _ net.Conn = (*plain)(nil)

// Read returns the payload of one record.
func (p *plain) Read(b []byte) (int, error) {
	if p.more {
		p.more = false
		p.idle()
	}
	n, err := p.Conn.Read(b)
	p.more = n > 0
	return n, err
}

// packets is what pion's DTLS runs over: a link's way.
type packets struct {
	conn   datagrams
	closed atomic.Bool
}

var _ net.PacketConn = (*packets)(nil)

// ReadFrom implements net.PacketConn.
func (p *packets) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.conn.Read(b)
	if p.closed.Load() {
		return 0, nil, net.ErrClosed
	}
	return n, path, err
}

// WriteTo implements net.PacketConn.
func (p *packets) WriteTo(b []byte, _ net.Addr) (int, error) { return p.conn.Write(b) }

// Close ends reading; the way is not DTLS's to close.
func (p *packets) Close() error {
	p.closed.Store(true)
	return p.conn.SetReadDeadline(time.Unix(1, 0))
}

// LocalAddr implements net.PacketConn.
func (p *packets) LocalAddr() net.Addr { return p.conn.LocalAddr() }

// SetDeadline implements net.PacketConn.
func (p *packets) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn. The way knows no time that is to come; a handshake that takes too long ends with its
// context.
func (p *packets) SetReadDeadline(t time.Time) error {
	if p.closed.Load() || !t.IsZero() && t.After(time.Now()) {
		return nil
	}
	return p.conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.PacketConn.
func (p *packets) SetWriteDeadline(time.Time) error { return nil }

// secure makes the connection of a link over conn: records of ours, or pion's where the host is configured so.
func (h *Host) secure(ctx context.Context, conn datagrams, client bool, fingerprint [32]byte, idle func()) (net.Conn, error) {
	if !h.cfg.PionRecords {
		return h.handshake(ctx, conn, client, fingerprint, idle)
	}
	peer, err := h.shakeHands(ctx, &packets{conn: conn}, client, fingerprint)
	if err != nil {
		return nil, err
	}
	return &plain{Conn: peer, idle: idle}, nil
}
