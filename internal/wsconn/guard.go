package wsconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type doorKey struct{}

// Context is for http.Server.ConnContext; Guard finds the connection in it.
func (d *Door) Context(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if s, ok := conn.(*Socket); ok {
		return context.WithValue(ctx, doorKey{}, s)
	}
	return ctx
}

// Guard notes that a request has come.
func (d *Door) Guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, ok := r.Context().Value(doorKey{}).(*Socket); ok && !s.inside.Load() {
			d.through(s)
		}
		h.ServeHTTP(w, r)
	})
}

func (d *Door) through(s *Socket) {
	was := d.places.through(s)
	s.inside.Store(true)
	s.rest()
	if was == busy && !s.trusted {
		d.cfg.Entered(s.from)
	}
}
