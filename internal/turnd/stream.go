package turnd

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	maxFrame     = 1599 // bytes: pion drops packets of 1,600
	writeTimeout = 10 * time.Second
	// deadlinesEvery is how exactly deadlines are kept: setting one with every packet costs more than the packet's copy.
	deadlinesEvery = time.Second
	stunHeader     = 20
	channelHeader  = 4
)

var errFrame = errors.New("turnd: neither STUN nor channel data, or too long, or with too long a nonce")

// stream is a client's connection, TCP or TLS. Read gives one whole frame: pion puts frames together by calling itself
// for every piece of one, on a stack that a sender of single bytes would make grow.
type stream struct {
	net.Conn // raw, or TLS over it
	raw      net.Conn
	server   *Server
	kind     string // "tcp" or "tls"
	in       *bufio.Reader
	expected bool   // a balancer has to name the client; used by the reader alone
	asked    []byte // the latest request, until the next read: of the reader alone

	said atomic.Pointer[net.TCPAddr] // what it said

	client netip.Addr // guarded by Server.mu: the client; not valid until the balancer has named it

	readUntil  time.Time    // only the reader
	writeUntil atomic.Int64 // Unix ns
	closed     sync.Once
}

// Read implements net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	if err := s.extendRead(); err != nil {
		return 0, err
	}
	if s.expected {
		if err := s.introduce(); err != nil {
			return 0, err
		}
	}
	header, err := s.in.Peek(channelHeader)
	if err != nil {
		return 0, err
	}
	n := frameLength(header)
	if n == 0 || n > min(maxFrame, len(p)) {
		return 0, errFrame
	}
	if n, err = io.ReadFull(s.in, p[:n]); err != nil {
		return n, err
	}
	if overlong(p[:n]) {
		return 0, errFrame
	}
	s.asked = request(p[:n])
	return n, nil
}

// frameLength is of the frame that begins so, padding and all; 0: none does.
func frameLength(header []byte) int {
	length := int(binary.BigEndian.Uint16(header[2:4]))
	switch header[0] >> 6 {
	case 0: // STUN
		if length%4 != 0 {
			return 0
		}
		return stunHeader + length
	case 1: // channel data, padded to four bytes on a stream
		return channelHeader + (length+3)&^3
	}
	return 0
}

// extendRead lets the next frame take its time: the first one less than those of a client that is known to speak TURN.
func (s *stream) extendRead() error {
	now := time.Now()
	wait := s.server.cfg.Idle
	if s.readUntil.IsZero() {
		wait = s.server.cfg.FirstFrame
	} else if s.readUntil.Sub(now) > wait-deadlinesEvery {
		return nil
	}
	s.readUntil = now.Add(wait)
	return s.Conn.SetReadDeadline(s.readUntil)
}

// Write implements net.Conn. A client that does not read is cut off: the goroutine that waits here is its allocation's.
func (s *stream) Write(p []byte) (int, error) {
	now := time.Now()
	if until := s.writeUntil.Load(); until-now.UnixNano() < int64(writeTimeout-deadlinesEvery) {
		next := now.Add(writeTimeout)
		if s.writeUntil.CompareAndSwap(until, next.UnixNano()) {
			_ = s.Conn.SetWriteDeadline(next) // of a closed connection: the write says so
		}
	}
	n := len(p)
	if failed(p) {
		p = s.server.refused.answer(p, s.asked, s.RemoteAddr())
	}
	if _, err := s.Conn.Write(p); err != nil {
		_ = s.Close() // half a frame may be out: nothing after it could be read
		return 0, err
	}
	return n, nil
}

// Close implements net.Conn.
func (s *stream) Close() error {
	var err error
	s.closed.Do(func() {
		err = s.raw.Close() // without TLS's farewell, for which a client that does not read would have to be waited for
		s.server.forget(s)
	})
	return err
}

// listener takes clients' connections. Its Accept ends when it is closed, and on nothing less.
type listener struct {
	net.Listener
	server *Server
	kind   string
	tls    *tls.Config // nil: plain TCP
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil: // out of files: some will be free in a moment
			if !sleep.Until(l.server.closing, 100*time.Millisecond) {
				return nil, net.ErrClosed
			}
			continue
		}
		if s := l.server.welcome(conn, l); s != nil {
			return s, nil
		}
		_ = conn.Close()
	}
}
