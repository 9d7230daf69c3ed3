package loadgen

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// maxFrame bounds what is taken from a tracker.
const maxFrame = 1 << 20

// maskKey masks what a session sends: the tracker has the work of it, and the driver need not draw any.
var maskKey = [4]byte{0x5a, 0xc3, 0x17, 0x88}

const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// socket is a client's WebSocket that costs the driver little: one buffer for reading, frames taken where they are in it.
type socket struct {
	conn  net.Conn
	in    []byte // read, in[taken:] not yet taken
	taken int
}

// dial connects and shakes hands.
func dial(ctx context.Context, cfg Config, from netip.Addr) (*socket, error) {
	d := net.Dialer{Timeout: 30 * time.Second}
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	conn, err := d.DialContext(ctx, "tcp", cfg.Address.String())
	if err != nil {
		return nil, err
	}
	if cfg.TLS != nil {
		secure := tls.Client(conn, cfg.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		conn = secure
	}
	s := &socket{conn: conn}
	if err := s.upgrade(ctx, cfg); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

func (s *socket) upgrade(ctx context.Context, cfg Config) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	request := "GET " + cfg.Path + " HTTP/1.1\r\nHost: " + cfg.Address.String() +
		"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: bGVld2F5IGxvYWQgZHJpdg==\r\n"
	if cfg.Protocol == Native {
		request += "Sec-WebSocket-Protocol: " + string(Native) + "\r\n"
	}
	if _, err := io.WriteString(s.conn, request+"\r\n"); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s.conn, 512)
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("the server answered %s instead of a WebSocket", response.Status)
	}
	s.in, _ = r.Peek(r.Buffered())
	return nil
}

// next returns the payload of the next frame, good until the next call, and whether another one is there already.
func (s *socket) next() (op byte, payload []byte, more bool, err error) {
	for {
		if op, payload, size, err := frame(s.in[s.taken:]); err != nil {
			return 0, nil, false, err
		} else if size > 0 {
			s.taken += size
			_, _, following, _ := frame(s.in[s.taken:])
			return op, payload, following > 0, nil
		}
		s.in = append(s.in[:0], s.in[s.taken:]...)
		s.taken = 0
		if len(s.in)+512 > cap(s.in) {
			s.in = append(make([]byte, 0, 2*cap(s.in)+1024), s.in...)
		}
		n, err := s.conn.Read(s.in[len(s.in):cap(s.in)])
		if s.in = s.in[:len(s.in)+n]; n == 0 && err != nil {
			return 0, nil, false, err
		}
	}
}

// frame finds the first frame of b; size is 0 while it is not whole.
func frame(b []byte) (op byte, payload []byte, size int, err error) {
	if len(b) < 2 {
		return 0, nil, 0, nil
	}
	if b[0]&0xf0 != 0x80 || b[1]&0x80 != 0 {
		return 0, nil, 0, errors.New("the server sent a frame that is masked, in parts, or of an extension")
	}
	n, head := uint64(b[1]), 2
	switch n {
	case 126:
		if head = 4; len(b) >= head {
			n = uint64(binary.BigEndian.Uint16(b[2:]))
		}
	case 127:
		if head = 10; len(b) >= head {
			n = binary.BigEndian.Uint64(b[2:])
		}
	}
	switch {
	case len(b) < head:
		return 0, nil, 0, nil
	case n > maxFrame:
		return 0, nil, 0, fmt.Errorf("the server sent a frame of %d bytes", n)
	case uint64(len(b)-head) < n:
		return 0, nil, 0, nil
	}
	size = head + int(n)
	return b[0] & 15, b[head:size], size, nil
}

// appendFrame adds a masked frame to b.
func appendFrame(b []byte, op byte, payload []byte) []byte {
	b = append(b, 0x80|op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	b = append(b, maskKey[:]...)
	at := len(b)
	b = append(b, payload...)
	masked := b[at:]
	key := uint64(binary.LittleEndian.Uint32(maskKey[:]))
	key |= key << 32
	for ; len(masked) >= 8; masked = masked[8:] {
		binary.LittleEndian.PutUint64(masked, binary.LittleEndian.Uint64(masked)^key)
	}
	for i := range masked {
		masked[i] ^= maskKey[i%4]
	}
	return b
}
