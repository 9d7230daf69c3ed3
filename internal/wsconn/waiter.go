package wsconn

import (
	"crypto/tls"
	"net"
	"syscall"
)

// waiter waits until a connection has something to read, without reading it: nothing but its own small stack waits then.
type waiter struct {
	raw   syscall.RawConn // nil where that cannot be
	below *Socket         // under TLS; nil without
	ready func(uintptr) bool
	woken bool // only the goroutine that waits
}

// bind makes the waiter of a connection.
func (w *waiter) bind(conn net.Conn) {
	w.raw, w.below = waitable(conn)
	w.ready = w.readable
}

// can says whether there is a way to wait but to read.
func (w *waiter) can() bool { return w.raw != nil }

// wait returns when there is something to read, or nothing will be.
func (w *waiter) wait() error {
	if w.raw == nil {
		return nil
	}
	w.woken = false
	return w.raw.Read(w.ready)
}

// readable asks the system once, and then believes the poller.
func (w *waiter) readable(fd uintptr) bool {
	if w.woken {
		return true
	}
	w.woken = true
	return readable(fd)
}

// waitable is how to wait for a connection without reading, and the socket under its TLS.
func waitable(conn net.Conn) (raw syscall.RawConn, below *Socket) {
	if secure, ok := conn.(*tls.Conn); ok {
		if below, ok = secure.NetConn().(*Socket); !ok {
			return nil, nil // what TLS has read ahead cannot be told
		}
		conn = below
	}
	plain, ok := conn.(syscall.Conn)
	if !ok || !canWait {
		return nil, nil
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil, nil
	}
	return raw, below
}
