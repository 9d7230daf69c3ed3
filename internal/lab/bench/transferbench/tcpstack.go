package transferbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// tcpStack is kernel TCP with CUBIC, whatever the machine's default is.
type tcpStack struct {
	host
	config net.ListenConfig

	mu    sync.Mutex
	conns map[int]net.Conn // guarded by mu
	wg    sync.WaitGroup
}

// tcpWrite is how much one write hands to the kernel, bytes.
const tcpWrite = 256 << 10

func cubic(_, _ string, raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		set = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, "cubic")
	})
	if err = errors.Join(err, set); err != nil {
		return fmt.Errorf("tcp: cubic: %w", err)
	}
	return nil
}

func newTCPStack(h host) (*tcpStack, error) {
	return &tcpStack{host: h, config: net.ListenConfig{Control: cubic}, conns: map[int]net.Conn{}}, nil
}

// begin asks the sender where to dial.
func (s *tcpStack) begin(link int) error {
	s.signal(link, signal{})
	return nil
}

func (s *tcpStack) handle(link int, m signal) error {
	if s.setup.Send {
		return s.serve(link)
	}
	dialer := net.Dialer{Control: cubic}
	conn, err := dialer.Dial("tcp", m.Address)
	if err != nil {
		return err
	}
	s.keep(link, conn)
	return nil
}

// serve opens a listener for one link.
func (s *tcpStack) serve(link int) error {
	l, err := s.config.Listen(context.Background(), "tcp", net.JoinHostPort(s.setup.Addr, "0"))
	if err != nil {
		return err
	}
	s.wg.Go(func() {
		defer l.Close()
		if conn, err := l.Accept(); err == nil {
			s.keep(link, conn)
		}
	})
	s.signal(link, signal{Address: l.Addr().String()})
	return nil
}

func (s *tcpStack) keep(link int, conn net.Conn) {
	s.mu.Lock()
	s.conns[link] = conn
	s.mu.Unlock()
	s.open(link)
}

func (s *tcpStack) start(link int) {
	s.mu.Lock()
	conn := s.conns[link]
	s.mu.Unlock()
	buf := make([]byte, tcpWrite)
	s.wg.Go(func() {
		for {
			if s.setup.Send {
				if _, err := conn.Write(buf); err != nil {
					return
				}
				continue
			}
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			s.got(n)
		}
	})
}

func (s *tcpStack) buffers() [2]int { return [2]int{} }

func (s *tcpStack) close() error {
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}
