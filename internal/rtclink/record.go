package rtclink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// datagrams is what records travel over: an ICE connection.
type datagrams interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// records is the connection that SCTP runs over: a message is the payload of one record. Read belongs to one goroutine.
type records struct {
	conn datagrams
	sealer
	opener opener
	begin  func() ([][]byte, error) // waits for the handshake to let go of conn; returns what came meanwhile
	stop   func()                   // ends that waiting
	idle   func()                   // called by Read: what was read before has been dealt with, and may have ended a message

	// Of the reading goroutine.
	early  [][]byte
	rest   []byte // of the datagram that is being read
	unread unread
	more   bool // what was read last may have ended a message
}

var _ net.Conn = (*records)(nil)

func newRecords(conn datagrams, k *keys, begin func() ([][]byte, error), stop, idle func()) *records {
	return &records{
		conn: conn, begin: begin, stop: stop, idle: idle,
		sealer: sealer{out: conn, key: k.write, iv: k.writeIV, sequence: firstSequence},
		opener: opener{key: k.read, iv: k.readIV},
	}
}

// Read returns the payload of one record. Records that are forged, repeated or of the handshake are passed over;
// the other side's alert that it closes is io.EOF.
func (r *records) Read(p []byte) (int, error) {
	if r.more {
		r.more = false
		r.idle()
	}
	if r.begin != nil {
		giveBack(p[min(maxDatagram, len(p)):]) // SCTP reads to the same 8 KiB as long as it lives
		var err error
		if r.early, err = r.begin(); err != nil {
			return 0, err
		}
		r.begin = nil // and with it what the handshake held
		r.stop()
	}
	for {
		for len(r.rest) >= recordHeader {
			record := r.next()
			if n, got, err := r.open(p, record); got || err != nil {
				return n, err
			}
		}
		if len(r.early) > 0 {
			r.rest, r.early = r.early[0], r.early[1:]
			continue
		}
		n, err := r.conn.Read(p)
		switch {
		case errors.Is(err, io.ErrShortBuffer):
			continue
		case err != nil:
			return 0, err
		}
		// Almost always a datagram is one record, which is decrypted where it is.
		if r.rest = p[:n]; n >= recordHeader && recordHeader+int(binary.BigEndian.Uint16(p[recordHeader-2:])) < n {
			r.rest = bytes.Clone(r.rest)
		}
	}
}

// next cuts the first record off rest; nil and an empty rest when that is malformed.
func (r *records) next() []byte {
	n := recordHeader + int(binary.BigEndian.Uint16(r.rest[recordHeader-2:]))
	if n > len(r.rest) {
		r.rest = nil
		return nil
	}
	record := r.rest[:n]
	r.rest = r.rest[n:]
	return record
}

// open hands on what a record carries; got says that it was application data.
func (r *records) open(p, record []byte) (n int, got bool, err error) {
	plain, content, ok := r.opener.open(p, record)
	switch {
	case !ok:
	case content == contentApplication:
		r.more = r.unread.more(plain)
		return len(plain), len(plain) > 0, nil
	case content == contentAlert && len(plain) == 2 && (plain[0] == alertFatal || plain[1] == alertCloseNotify):
		return 0, false, io.EOF
	}
	return 0, false, nil
}

// Close tells the other side and ends Read.
func (r *records) Close() error {
	if !r.sealer.close() {
		return nil
	}
	r.stop()
	return r.conn.SetReadDeadline(time.Unix(1, 0))
}

// LocalAddr implements net.Conn.
func (r *records) LocalAddr() net.Addr { return r.conn.LocalAddr() }

// RemoteAddr implements net.Conn.
func (r *records) RemoteAddr() net.Addr { return r.conn.RemoteAddr() }

// SetDeadline implements net.Conn.
func (r *records) SetDeadline(t time.Time) error { return r.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (r *records) SetReadDeadline(t time.Time) error { return r.conn.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn; a write waits for the socket at most.
func (r *records) SetWriteDeadline(time.Time) error { return nil }
