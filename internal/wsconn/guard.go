package wsconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type socketKey struct{}

// Context is for http.Server.ConnContext; Guard finds the connection in it.
func (d *Admission) Context(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if s, ok := conn.(*Socket); ok {
		return context.WithValue(ctx, socketKey{}, s)
	}
	return ctx
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
	was := d.places.through(s)
	s.inside.Store(true)
	s.rest()
	if was == busy && !s.trusted {
		d.cfg.Entered(s.from)
	}
}
