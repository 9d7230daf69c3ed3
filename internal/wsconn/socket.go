package wsconn

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/wire/proxy"
)

// Socket is a TCP connection that came through Admission. Under TLS it can be asked to give nothing, so that it shows what TLS
// has left, and waited for without a reader above it.
type Socket struct {
	*net.TCPConn
	admission *Admission
	dry       bool        // used by the reader only
	inside    atomic.Bool // its request is there, or it is closed: work on it is not wasted
	turn      atomic.Bool // to work on its handshake is its own
	stay
}

// first waits for the first byte and hands the socket in.
func (s *Socket) first() {
	_ = s.SetReadDeadline(time.Now().Add(s.admission.cfg.Silence))
	if !s.introduced {
		// A balancer may say whose a connection is before that one says anything.
		if client, err := proxy.Read(s.TCPConn); err != nil {
			s.misled(err)
			return
		} else if client.IsValid() && !s.admission.places.introduce(s, client) {
			s.refuse("half-open")
			return
		}
	}
	if !s.waits() {
		_ = s.Close()
		return
	}
	if !s.admission.places.speaks(s) {
		return
	}
	if !s.trusted && !s.admission.cfg.Knock(s.from) {
		s.refuse("rate")
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	select {
	case s.admission.in <- s:
	case <-s.admission.quit:
		_ = s.Close()
	}
}

// waits returns when there is something to read; false says that nothing will be.
func (s *Socket) waits() bool {
	raw, _ := waitable(s)
	if raw == nil {
		return true
	}
	asked := false
	return raw.Read(func(fd uintptr) bool {
		woken := asked
		asked = true
		return woken || readable(fd)
	}) == nil
}

// errDry is what a dry socket reads. TLS takes what is temporary for no reason to fail.
var errDry net.Error = dryError{}

type dryError struct{}

func (dryError) Error() string   { return "wsconn: nothing there yet" }
func (dryError) Timeout() bool   { return true }
func (dryError) Temporary() bool { return true }

// Read implements net.Conn.
func (s *Socket) Read(b []byte) (int, error) {
	if s.dry {
		return 0, errDry
	}
	if s.inside.Load() {
		return s.TCPConn.Read(b)
	}
	s.rest()
	n, err := s.TCPConn.Read(b)
	s.work()
	return n, err
}

// Write implements net.Conn.
func (s *Socket) Write(b []byte) (int, error) {
	s.rest() // what comes after the last words of a handshake is little, or nothing
	return s.TCPConn.Write(b)
}

// work waits for a turn. Another goroutine may end it at any time.
func (s *Socket) work() {
	if s.inside.Load() || !s.admission.handshakes.acquire() {
		return
	}
	if s.turn.Swap(true) { // of another goroutine of this connection
		s.admission.handshakes.release()
	}
	if s.inside.Load() {
		s.rest()
	}
}

// rest ends a turn, if there is one.
func (s *Socket) rest() {
	if s.turn.Load() && s.turn.Swap(false) {
		s.admission.handshakes.release()
	}
}

// without calls f while the socket gives nothing.
func (s *Socket) without(f func() bool) bool {
	s.dry = true
	defer func() { s.dry = false }()
	return f()
}

// Close implements net.Conn.
func (s *Socket) Close() error {
	if was := s.admission.places.left(s); was != away && was < through { // it asked for nothing
		s.admission.cfg.Refused("half-open")
	}
	return s.end()
}

func (s *Socket) end() error {
	s.inside.Store(true)
	s.rest()
	return s.TCPConn.Close()
}

// refuse ends a connection that has a place.
func (s *Socket) refuse(reason string) {
	s.admission.places.left(s)
	s.reset()
	s.admission.cfg.Refused(reason)
}

// reset ends a connection without farewell: the system keeps nothing of it either.
func (s *Socket) reset() {
	_ = s.SetLinger(0)
	_ = s.end()
}

// misled ends a connection whose balancer did not say whose it is: in time, or in a way that is understood.
func (s *Socket) misled(err error) {
	if errors.Is(err, proxy.ErrHeader) {
		s.refuse("proxy")
		return
	}
	_ = s.Close()
}

// RemoteAddr implements net.Conn: the client that a balancer named, if one did.
func (s *Socket) RemoteAddr() net.Addr {
	if s.client.IsValid() {
		return net.TCPAddrFromAddrPort(s.client)
	}
	return s.TCPConn.RemoteAddr()
}
