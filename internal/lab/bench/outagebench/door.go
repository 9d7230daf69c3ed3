package outagebench

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
)

// door is what becomes of connections to the tracker.
type door int

const (
	open door = iota
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

// doorkeeper takes a page's connections to the tracker, and passes them on or does not.
type doorkeeper struct {
	listener net.Listener
	kind     door
	dial     func(ctx context.Context) (net.Conn, error) // the tracker

	ctx    context.Context // of all connections
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// keep takes connections until it is closed.
func keep(listener net.Listener, kind door, dial func(context.Context) (net.Conn, error)) *doorkeeper {
	d := &doorkeeper{listener: listener, kind: kind, dial: dial}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() { d.take(conn) })
		}
	})
	return d
}

// close ends it and all its connections: from then on new connections are refused.
func (d *doorkeeper) close() {
	d.cancel()
	_ = d.listener.Close()
	d.wg.Wait()
}

// take has one connection until it ends.
func (d *doorkeeper) take(conn net.Conn) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	switch d.kind {
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
	tracker, err := d.dial(ctx)
	if err != nil {
		return
	}
	defer tracker.Close()
	stopTracker := context.AfterFunc(ctx, func() { _ = tracker.Close() })
	defer stopTracker()
	d.wg.Go(func() {
		defer cancel()
		_, _ = io.Copy(tracker, conn)
	})
	if d.kind == closes {
		_ = firstMessage(conn, tracker)
		return
	}
	_, _ = io.Copy(conn, tracker)
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
