package app

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/probe"
)

var errHTTP2Refused = errors.New("as many connections of HTTP/2 are open as may")

// serveHTTP2 is serveTLS, and speaks HTTP/2 with clients that offer nothing else. All others, browsers among them, have a connection
// for each request: a flow that is measured is then a connection. Without a certificate nothing is HTTP/2.
func (s *servers) serveHTTP2(name string, l net.Listener, h http.Handler, certificate *pair, enter func(netip.Addr) (leave func(), ok bool)) {
	if certificate == nil {
		s.serve(name, l, h)
		return
	}
	open := &http2Connections{enter: enter, all: map[net.Conn]*http2Connection{}}
	server := s.server(l, h, nil)
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: probe.HTTP2Streams, MaxReadFrameSize: probe.HTTP2Frame}
	admitted := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		open.changed(conn, state)
		if admitted != nil {
			admitted(conn, state)
		}
	}
	s.run(name, l, open.config(certificate.config()), server)
}

// http2Connections are those of a port.
type http2Connections struct {
	enter func(netip.Addr) (leave func(), ok bool)

	mu  sync.Mutex
	all map[net.Conn]*http2Connection // guarded by mu, by the connection below TLS
}

// http2Connection is what is known of one.
type http2Connection struct {
	leave func()      // gives its place back
	life  *time.Timer // that cuts it
	idle  *time.Timer // that closes it; nil: it never was idle
}

// config is base, and HTTP/2 for those that offer nothing else.
func (o *http2Connections) config(base *tls.Config) *tls.Config {
	alone := base.Clone()
	alone.NextProtos = []string{"h2"}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != "h2" {
			return nil, nil
		}
		if !o.open(hello.Conn) {
			return nil, errHTTP2Refused
		}
		return alone, nil
	}
	return base
}

// open gives a connection its place and its time; false refuses it.
func (o *http2Connections) open(conn net.Conn) bool {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	leave, ok := o.enter(at.Addr())
	if !ok {
		return false
	}
	life := time.AfterFunc(probe.HTTP2Life, func() { _ = conn.Close() })
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[conn] = &http2Connection{leave: leave, life: life}
	return true
}

// changed is for http.Server.ConnState: a connection without a request keeps its place for a short time, and one that is closed gives
// it back.
func (o *http2Connections) changed(conn net.Conn, state http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.all[secure.NetConn()]
	if c == nil {
		return
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	switch state {
	case http.StateIdle: // by TLS: the other side then knows that it was not cut
		c.idle = time.AfterFunc(probe.HTTP2Idle, func() { _ = secure.Close() })
	case http.StateClosed:
		delete(o.all, secure.NetConn())
		c.life.Stop()
		c.leave()
	}
}
