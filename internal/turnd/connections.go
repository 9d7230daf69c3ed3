package turnd

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"

	"github.com/leeway-video/leeway/internal/wire/proxy"
)

var errClient = errors.New("turnd: a balancer's client may have no more connections")

// welcome makes a stream of a connection, or nil where it may not come in.
func (s *Server) welcome(conn net.Conn, l *listener) *stream {
	at, ok := place(conn.RemoteAddr())
	if !ok {
		return nil
	}
	client, expected := at.Addr(), s.cfg.Introduces(at.Addr())
	if expected {
		client = netip.Addr{}
	}
	if !s.cfg.Policy.Connect(client, l.kind) {
		return nil
	}
	c := &stream{raw: conn, Conn: conn, server: s, client: client, expected: expected, kind: l.kind}
	if l.tls != nil {
		c.Conn = tls.Server(conn, l.tls)
	}
	c.in = bufio.NewReaderSize(c.Conn, 4<<10)
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.streams[c] = struct{}{}
		s.gone.Add(1)
	}
	s.mu.Unlock()
	if closed {
		s.cfg.Policy.Disconnect(client, c.kind)
		return nil
	}
	return c
}

// introduce reads the PROXY header of a balancer's connection. It is the first read of the connection, before TLS.
func (s *stream) introduce() error {
	s.expected = false
	client, err := proxy.Read(s.raw)
	if errors.Is(err, proxy.ErrHeader) {
		s.server.cfg.Policy.Misled()
	}
	if err != nil || !client.IsValid() { // the balancer's own: it looks whether we are there
		return err
	}
	s.server.mu.Lock()
	_, open := s.server.streams[s]
	may := open && s.server.cfg.Policy.Introduce(client.Addr())
	if may {
		s.client = client.Addr()
	}
	s.server.mu.Unlock()
	switch {
	case !open:
		return net.ErrClosed
	case !may:
		return errClient
	}
	s.said.Store(net.TCPAddrFromAddrPort(client))
	return nil
}

// RemoteAddr implements net.Conn: the client, if a balancer has named it.
func (s *stream) RemoteAddr() net.Addr {
	if client := s.said.Load(); client != nil {
		return client
	}
	return s.raw.RemoteAddr()
}

// forget notes that a stream has ended.
func (s *Server) forget(c *stream) {
	s.mu.Lock()
	delete(s.streams, c)
	client := c.client
	s.mu.Unlock()
	s.cfg.Policy.Disconnect(client, c.kind)
	s.gone.Done()
}
