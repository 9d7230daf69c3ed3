package wsconn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/leeway-video/leeway/internal/access"
)

const (
	introductionV1    = 107     // bytes at most, by the protocol
	introductionV2    = 16      // bytes, and what their last two say
	maxIntroductionV2 = 2 << 10 // addresses, and what a balancer tells beside them
)

var errIntroduction = errors.New("wsconn: the balancer said nothing by the PROXY protocol, or something else")

// readIntroduction reads the PROXY header that a balancer begins a connection with, version 1 or 2, and not a byte more: what
// follows is TLS's. The client is not valid where the balancer speaks for itself, as it does to see whether we are there.
func readIntroduction(r io.Reader) (client netip.AddrPort, err error) {
	b := make([]byte, len(proxyproto.SIGV2), introductionV1)
	if _, err := io.ReadFull(r, b); err != nil {
		return client, err
	}
	if bytes.Equal(b, proxyproto.SIGV2) {
		b, err = readV2(r, b)
	} else {
		b, err = readV1(r, b)
	}
	if err != nil {
		return client, err
	}
	h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(b)))
	switch {
	case err != nil:
		return client, fmt.Errorf("%w: %w", errIntroduction, err)
	case h.Command.IsLocal() || h.TransportProtocol.IsUnspec():
		return client, nil
	}
	from, _, ok := h.TCPAddrs()
	if ok {
		client = from.AddrPort()
		client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
	}
	if !client.IsValid() {
		return client, errIntroduction
	}
	return client, nil
}

func readV2(r io.Reader, b []byte) ([]byte, error) {
	signature := len(b)
	b = b[:introductionV2]
	if _, err := io.ReadFull(r, b[signature:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(b[introductionV2-2:]))
	if n > maxIntroductionV2 {
		return nil, fmt.Errorf("%w: %d bytes", errIntroduction, n)
	}
	b = append(b, make([]byte, n)...)
	_, err := io.ReadFull(r, b[introductionV2:])
	return b, err
}

// readV1 reads a line, byte by byte, for nothing behind it may be taken.
func readV1(r io.Reader, b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte("PROXY ")) {
		return nil, errIntroduction
	}
	for b[len(b)-1] != '\n' {
		if len(b) == introductionV1 {
			return nil, errIntroduction
		}
		b = b[:len(b)+1]
		if _, err := io.ReadFull(r, b[len(b)-1:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// counts says under what a socket counts: a proxy's under nothing, for many stand behind it.
func (s *stay) counts(trusted bool) {
	s.trusted, s.network = trusted, netip.Prefix{}
	if trusted {
		return
	}
	// Who has a /48 has as many networks as he wants; the door is wide enough for all who are honest in one.
	if s.network = access.Wide(s.from); !s.network.IsValid() {
		s.network = access.Network(s.from)
	}
}

// introduce has a socket count as its client's from now on; false says that there are too many of that one's.
func (d *Door) introduce(s *Socket, client netip.AddrPort) bool {
	trusted := d.cfg.Trusted(client.Addr())
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.state != silent {
		return true // it has lost its place, and hears of it
	}
	d.discount(s)
	s.from, s.client, s.introduced = client.Addr(), client, true
	s.counts(trusted)
	d.from[s.network]++
	return trusted || d.from[s.network] <= d.cfg.MaxPendingPerAddress
}

// misled ends a connection whose balancer did not say whose it is: in time, or in a way that is understood.
func (s *Socket) misled(err error) {
	if errors.Is(err, errIntroduction) {
		s.refuse("proxy")
		return
	}
	_ = s.Close()
}

// RemoteAddr implements net.Conn: the client, where a balancer has said who it is.
func (s *Socket) RemoteAddr() net.Addr {
	if s.client.IsValid() {
		return net.TCPAddrFromAddrPort(s.client)
	}
	return s.TCPConn.RemoteAddr()
}
