package rtclink

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/logging"
	"github.com/pion/transport/v4/udp"
)

// The batch that pion's writer gathers before one sendmmsg: 2.6 times the throughput of a sendto per packet, at the
// price of up to a millisecond.
const (
	batchSize     = 32
	batchInterval = time.Millisecond
)

// Buffers are the sizes of a socket's kernel buffers, in bytes, as read back; 0 where they cannot be read.
type Buffers struct{ Read, Write int }

// socket is a UDP socket with its mux.
type socket struct {
	mux     *ice.UDPMuxDefault
	addr    *net.UDPAddr
	buffers Buffers
}

func openSocket(listen string, loggers logging.LoggerFactory) (*socket, error) {
	addr, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, fmt.Errorf("rtclink: listen address %q: %w (give ADDRESS:PORT)", listen, err)
	}
	network := "udp"
	if addr.IP.To4() != nil {
		network = "udp4" // the mux tells IPv4 remotes apart by their unmapped form
	}
	conn, err := net.ListenUDP(network, addr)
	if err != nil {
		return nil, fmt.Errorf("rtclink: open udp %s: %w", listen, err)
	}
	// What the kernel gives is read back: stock kernels cap silently.
	_ = conn.SetReadBuffer(SocketBuffer)
	_ = conn.SetWriteBuffer(SocketBuffer)
	s := &socket{addr: conn.LocalAddr().(*net.UDPAddr), buffers: readBuffers(conn)}
	s.mux = ice.NewUDPMuxDefault(ice.UDPMuxParams{
		Logger:  loggers.NewLogger("mux"),
		UDPConn: udp.NewBatchConn(conn, batchSize, batchInterval),
	})
	return s, nil
}

func (s *socket) close() {
	_ = s.mux.Close()
}

// warnBuffers says once what to set when the kernel gave less than was asked.
func warnBuffers(log *slog.Logger, b Buffers) {
	if b.Read > 0 && (b.Read < SocketBuffer || b.Write < SocketBuffer) {
		log.Warn("udp socket buffers are smaller than asked: bursts will be lost",
			"read_bytes", b.Read, "write_bytes", b.Write, "asked_bytes", SocketBuffer,
			"hint", fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", SocketBuffer, SocketBuffer))
	}
}
