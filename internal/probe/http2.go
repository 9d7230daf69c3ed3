package probe

import (
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

// Bounds of connections of HTTP/2. Such a connection carries many requests, and much that is no request and costs no bytes of a day. So
// there are few of them, each pays as a test when it begins, and none lives for long.
const (
	maxHTTP2           = 256
	maxHTTP2PerAddress = 32

	// HTTP2Life is how long a connection lives: a client of the responsiveness draft takes 20 s for a direction.
	HTTP2Life = 30 * time.Second
	// HTTP2Idle is how long one without a request lives. Clients of the draft that make a connection for each of their probes do not
	// close them: without this an address has used up its places after some seconds, and no further probe is answered.
	HTTP2Idle = 2 * time.Second
	// HTTP2Streams is how many requests of a connection are under way at a time.
	HTTP2Streams = 32
	// HTTP2Frame is the largest frame taken, bytes: the smallest bound that HTTP/2 allows. Each connection has a buffer of that size.
	HTTP2Frame = 16 << 10
)

// EnterHTTP2 gives a connection of HTTP/2 its place, before its handshake, and charges its address for it. leave gives the place back.
// false refuses the connection.
func (s *Server) EnterHTTP2(client netip.Addr) (leave func(), ok bool) {
	network := access.Network(client)
	if !s.charge(network, startCost) {
		s.Refused(refusedBytes)
		return nil, false
	}
	s.mu.Lock()
	reason := refusedDraining
	if !s.draining {
		reason = placeOf(&s.http2, network)
	}
	s.mu.Unlock()
	if reason != "" {
		s.Refused(reason)
		return nil, false
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.http2.Give(network, 1)
	}), true
}

// placeOf takes a place for a network, or says why there is none.
func placeOf(places *access.Shares, network netip.Prefix) (reason string) {
	switch all, one := places.Full(network, 1); {
	case all:
		return refusedTotal
	case one:
		return refusedAddress
	}
	places.Take(network, 1)
	return ""
}
