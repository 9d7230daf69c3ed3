package app

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wsconn"
)

// closing is how long requests in flight get at shutdown.
const closing = 2 * time.Second

// servers runs HTTP servers and ends them together; when stop returns, none of their goroutines is left.
type servers struct {
	log     *slog.Logger
	wg      sync.WaitGroup
	running []*http.Server
	failed  chan error // first failure of a server or of a service beside them
}

func newServers(log *slog.Logger) *servers { return &servers{log: log, failed: make(chan error, 1)} }

// serve answers on l until stop.
func (s *servers) serve(name string, l net.Listener, h http.Handler) {
	s.serveTLS(name, l, h, nil, nil)
}

// serveTLS is serve over TLS with a certificate. That and connContext may be nil.
func (s *servers) serveTLS(name string, l net.Listener, h http.Handler, connContext func(context.Context, net.Conn) context.Context, certificate *pair) {
	var config *tls.Config
	if certificate != nil {
		config = certificate.config()
	}
	s.run(name, l, config, s.server(l, h, connContext))
}

// server answers connections of l.
func (s *servers) server(l net.Listener, h http.Handler, connContext func(context.Context, net.Conn) context.Context) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       connContext,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if d, ok := l.(*wsconn.Admission); ok {
		behind(d, server)
	}
	return server
}

// run has a server answer on l until stop, over TLS if it has a config.
func (s *servers) run(name string, l net.Listener, config *tls.Config, server *http.Server) {
	if config != nil {
		l = tls.NewListener(l, config)
	}
	s.running = append(s.running, server)
	s.wg.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(errors.Join(errors.New(name+": stopped answering"), err))
		}
	})
}

// doorway is an admin port that answers from the first call of answer on.
func (s *servers) doorway(l net.Listener) (d *doorway, answer func()) {
	d = &doorway{}
	return d, sync.OnceFunc(func() { s.serve("admin", l, d) })
}

// behind tells the admission which client a request is from, and which connection waits for none.
func behind(d *wsconn.Admission, server *http.Server) {
	before := server.ConnContext
	server.Handler, server.ConnState = d.Guard(server.Handler), d.State
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, c)
		}
		return d.Context(ctx, c)
	}
}

// runUntilStopped runs f in a goroutine. stop ends its context and returns when f has.
func runUntilStopped(f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// fail has wait return with err, unless something failed before.
func (s *servers) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// wait returns when ctx ends, or with the error of what failed.
func (s *servers) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// stop ends all servers: no new connections at once, requests in flight get a moment, then everything is cut.
func (s *servers) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	var wg sync.WaitGroup
	for _, server := range s.running {
		wg.Go(func() {
			if server.Shutdown(ctx) != nil {
				_ = server.Close() // the deadline has passed; what is left is cut
			}
		})
	}
	wg.Wait()
	s.wg.Wait()
}
