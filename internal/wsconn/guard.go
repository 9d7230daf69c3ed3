package wsconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

type socketKey struct{}

// Context is for http.Server.ConnContext; Guard finds the connection in it.
func (d *Admission) Context(ctx context.Context, conn net.Conn) context.Context {
	if s := socketOf(conn); s != nil {
		return context.WithValue(ctx, socketKey{}, s)
	}
	return ctx
}

// State is for http.Server.ConnState. Without it no connection makes room for others whose request is there.
func (d *Admission) State(conn net.Conn, state http.ConnState) {
	if s := socketOf(conn); s != nil {
		d.places.follow(s, state, time.Now())
	}
}

// socketOf is the socket of a connection, under its TLS; nil: it did not come through an admission.
func socketOf(conn net.Conn) *Socket {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	s, _ := conn.(*Socket)
	return s
}

// Guard notes that a request has come.
func (d *Admission) Guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, ok := r.Context().Value(socketKey{}).(*Socket); ok && !s.inside.Load() {
			d.through(s)
		}
		h.ServeHTTP(w, r)
	})
}

func (d *Admission) through(s *Socket) {
	was := d.places.through(s, time.Now())
	s.inside.Store(true)
	s.rest()
	if was == busy && !s.trusted {
		d.cfg.Entered(s.from)
	}
}
