package tcpinfo

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leeway-video/leeway/internal/testkit"
)

// TestLook: what the kernel tells of a connection on loopback grows with what it carries.
func TestLook(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	const size = 1 << 16
	go func() { _, _ = conn.Write(make([]byte, size)) }()
	if _, err := io.ReadFull(peer, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "all is acknowledged", func() bool {
		i, ok := Look(conn)
		return ok && i.BytesAcked >= size && i.Unacked == 0
	})
	sent, _ := Look(conn)
	if sent.BytesSent < size || sent.MinRTT <= 0 || sent.RTT < sent.MinRTT || sent.SndMSS < 500 || sent.MTU(false) < 1280 {
		t.Errorf("%+v", sent)
	}
	if got, ok := Look(peer); !ok || got.BytesReceived != size {
		t.Errorf("received %+v", got)
	}
	if _, ok := Look(tunnel{conn}); !ok {
		t.Error("a connection inside another one is not found")
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, ok := Look(a); ok {
		t.Error("a pipe has TCP_INFO")
	}
	_ = conn.Close()
	if _, ok := Look(conn); ok {
		t.Error("a closed connection has TCP_INFO")
	}
}

// tunnel is a connection with another one below, as TLS has.
type tunnel struct{ net.Conn }

func (t tunnel) NetConn() net.Conn { return t.Conn }

// TestMark: the kernel has the DSCP, of both families.
func TestMark(t *testing.T) {
	for network, at := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Skip(err) // a machine without one of them
		}
		defer l.Close()
		conn, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := Mark(tunnel{conn}, 46); err != nil {
			t.Fatal(err)
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		level, option := unix.IPPROTO_IP, unix.IP_TOS
		if network == "tcp6" {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		_ = raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), level, option); err != nil || got != 46<<2 {
				t.Errorf("%s: %d, %v", network, got, err)
			}
		})
	}
}
