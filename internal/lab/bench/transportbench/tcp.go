package transportbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// tcpFlow is the competitor: the kernel's TCP between two hosts. Only the copying is ours.
type tcpFlow struct {
	kind     kind
	near     *netlab.Host
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
	closed bool       // guarded by mu
}

// tcpWrite is how much one write hands to the kernel, bytes.
const tcpWrite = 64 << 10

func newTCP(ctx context.Context, k kind, near, far *netlab.Host) (*tcpFlow, error) {
	l, err := far.Listen(ctx, "tcp4", netip.AddrPortFrom(far.Addr(), 0).String())
	if err != nil {
		return nil, err
	}
	f := &tcpFlow{kind: k, near: near, listener: l}
	f.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if f.keep(c) {
				f.wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
			}
		}
	})
	return f, nil
}

// keep notes a connection, so that the end of the flow ends it.
func (f *tcpFlow) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = c.Close()
		return false
	}
	_ = c.(*net.TCPConn).SetLinger(0) // what waits in the kernel would go on for seconds
	f.conns = append(f.conns, c)
	return true
}

func (f *tcpFlow) start() error {
	var dialer net.Dialer
	dialer.Control = func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) {
			set = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, string(f.kind))
		})
		if err = errors.Join(err, set); err != nil {
			return fmt.Errorf("tcp: %s: %w", f.kind, err)
		}
		return nil
	}
	f.wg.Go(func() {
		var c net.Conn
		err := f.near.Do(func() (err error) {
			c, err = dialer.Dial("tcp4", f.listener.Addr().String())
			return err
		})
		if err != nil || !f.keep(c) {
			return
		}
		buf := make([]byte, tcpWrite)
		for {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	})
	return nil
}

func (*tcpFlow) cpu() float64 { return 0 }

func (f *tcpFlow) stop() error { return f.close() }

func (f *tcpFlow) close() error {
	f.mu.Lock()
	f.closed = true
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.conns = nil
	f.mu.Unlock()
	_ = f.listener.Close()
	f.wg.Wait()
	return nil
}
