// Package proxy reads what a balancer of TCP says before a client's own bytes: a header of the PROXY protocol, version 1 or 2.
package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

const (
	lengthV1 = 107     // bytes at most, by the protocol
	lengthV2 = 16      // bytes, and what their last two say
	maxV2    = 2 << 10 // addresses, and what a balancer tells beside them
)

// ErrHeader is what Read returns for bytes that are no header. Other errors are the reader's: the connection ended, or time was up.
var ErrHeader = errors.New("proxy: the balancer said nothing by the PROXY protocol, or something else")

// Read reads the header that a balancer begins a connection with, and not a byte more: what follows is the client's. The client is
// not valid where the balancer speaks for itself, as it does to see whether we are there.
func Read(r io.Reader) (client netip.AddrPort, err error) {
	b := make([]byte, len(proxyproto.SIGV2), lengthV1)
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
		return client, fmt.Errorf("%w: %w", ErrHeader, err)
	case h.Command.IsLocal() || h.TransportProtocol.IsUnspec():
		return client, nil
	}
	from, _, ok := h.TCPAddrs()
	if ok {
		client = from.AddrPort()
		client = netip.AddrPortFrom(client.Addr().Unmap(), client.Port())
	}
	if !client.IsValid() {
		return client, ErrHeader
	}
	return client, nil
}

func readV2(r io.Reader, b []byte) ([]byte, error) {
	signature := len(b)
	b = b[:lengthV2]
	if _, err := io.ReadFull(r, b[signature:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(b[lengthV2-2:]))
	if n > maxV2 {
		return nil, fmt.Errorf("%w: %d bytes", ErrHeader, n)
	}
	b = append(b, make([]byte, n)...)
	_, err := io.ReadFull(r, b[lengthV2:])
	return b, err
}

// readV1 reads a line, byte by byte, for nothing behind it may be taken.
func readV1(r io.Reader, b []byte) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte("PROXY ")) {
		return nil, ErrHeader
	}
	for b[len(b)-1] != '\n' {
		if len(b) == lengthV1 {
			return nil, ErrHeader
		}
		b = b[:len(b)+1]
		if _, err := io.ReadFull(r, b[len(b)-1:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}
