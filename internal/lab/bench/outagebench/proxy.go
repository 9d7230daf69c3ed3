package outagebench

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
)

// behavior is what becomes of connections to the tracker.
type behavior int

const (
	open behavior = iota
	refuses
	blackholes
	silent
	late
	closes
	forbids
	dies
)

// lateness is how long a late tracker takes.
const lateness = 5 * time.Second

// trackerProxy takes a page's connections to the tracker, and passes them on or does not.
type trackerProxy struct {
	listener net.Listener
	kind     behavior
	engine   engine                                      // of the tracker's own copy of the script, which a page asks for where its own is not there
	dial     func(ctx context.Context) (net.Conn, error) // the tracker

	ctx    context.Context // of all connections
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// startProxy takes connections until it is closed.
func startProxy(listener net.Listener, kind behavior, e engine, dial func(context.Context) (net.Conn, error)) *trackerProxy {
	p := &trackerProxy{listener: listener, kind: kind, engine: e, dial: dial}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.take(conn) })
		}
	})
	return p
}

// close ends it and all its connections: from then on new connections are refused.
func (p *trackerProxy) close() {
	p.cancel()
	_ = p.listener.Close()
	p.wg.Wait()
}

// take has one connection until it ends.
func (p *trackerProxy) take(conn net.Conn) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	switch p.kind {
	case silent:
		_, _ = io.Copy(io.Discard, conn)
		return
	case forbids:
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
		return
	case late:
		if !sleep.For(ctx, lateness) {
			return
		}
	}
	in := bufio.NewReader(conn)
	if !p.scripts(ctx, in, conn) {
		return
	}
	tracker, err := p.dial(ctx)
	if err != nil {
		return
	}
	defer tracker.Close()
	stopTracker := context.AfterFunc(ctx, func() { _ = tracker.Close() })
	defer stopTracker()
	p.wg.Go(func() {
		defer cancel()
		_, _ = io.Copy(tracker, in)
	})
	if p.kind == closes {
		_ = firstMessage(conn, tracker)
		return
	}
	_, _ = io.Copy(conn, tracker)
}

// scripts says whether a connection goes on to the tracker: one for the engine's script does as the case has it.
func (p *trackerProxy) scripts(ctx context.Context, in *bufio.Reader, out io.Writer) bool {
	if p.engine == engineThere {
		return true
	}
	const longest = 1024 // of what is looked at
	for n := 1; n <= longest; n++ {
		head, err := in.Peek(n)
		if err != nil {
			return false
		}
		if head[n-1] != '\n' {
			continue
		}
		switch _, rest, _ := strings.Cut(string(head), " "); {
		case !isEngine(strings.SplitN(rest, " ", 2)[0]):
			return true
		case p.engine == engineSlow:
			return sleep.For(ctx, engineTakes)
		}
		_, _ = io.WriteString(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return false
	}
	return true
}

// isEngine says whether an address of a server is that of the engine's script.
func isEngine(address string) bool {
	name, _, _ := strings.Cut(address, "?")
	is, _ := path.Match("/leeway-*-engine.js", name)
	return is
}

// firstMessage passes on a server's answer to a handshake and the first frame behind it.
func firstMessage(to io.Writer, from io.Reader) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
	}
	head := make([]byte, 2, 10)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	length, more := int64(head[1]), 0
	switch length { // a server masks nothing
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if head = head[:2+more]; more > 0 {
		if _, err := io.ReadFull(in, head[2:]); err != nil {
			return err
		}
		if length = int64(binary.BigEndian.Uint16(head[2:])); more == 8 {
			length = int64(binary.BigEndian.Uint64(head[2:]) & (1<<32 - 1))
		}
	}
	if _, err := to.Write(head); err != nil {
		return err
	}
	_, err := io.CopyN(to, in, length)
	return err
}
