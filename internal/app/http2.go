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
		s.serve(name, l, h, nil)
		return
	}
	open := &http2Connections{enter: enter, all: map[net.Conn]func(){}}
	server := s.server(l, h, nil)
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: probe.HTTP2Streams, MaxReadFrameSize: probe.HTTP2Frame}
	server.ConnState = open.changed
	s.run(name, l, open.config(certificate.config()), server)
}

// http2Connections are those of a port.
type http2Connections struct {
	enter func(netip.Addr) (leave func(), ok bool)

	mu  sync.Mutex
	all map[net.Conn]func() // guarded by mu: what ends the bookkeeping of a connection below TLS
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
	o.all[conn] = func() {
		life.Stop()
		leave()
	}
	return true
}

// changed is for http.Server.ConnState: it says of each connection that it is closed, once.
func (o *http2Connections) changed(conn net.Conn, state http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok || state != http.StateClosed {
		return
	}
	o.mu.Lock()
	end := o.all[secure.NetConn()]
	delete(o.all, secure.NetConn())
	o.mu.Unlock()
	if end != nil {
		end()
	}
}
