package trackerbench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	benchToken  = "bench"
	torrentPath = "/announce?token=" + benchToken
	siteName    = "demo"
	unlimited   = 1 << 20 // of what bounds one client: the driver is many in few sockets
	queueBytes  = 64 << 20
	// headerTimeout is that of `leeway tracker`.
	headerTimeout = 10 * time.Second
)

// service is what a server is told.
type service struct {
	Cert, Key string // files; empty: plaintext
	Limits    bool   // those of `leeway tracker` hold
}

func startServer(_ context.Context, r *bench.Run, pair *certificate, secure bool) (*process, error) {
	var s service
	if secure {
		s = service{Cert: pair.cert, Key: pair.key}
	}
	out, _, err := startService(r, s)
	return out, err
}

// startService returns the child, too: it answers whatever it is sent with what it has counted.
func startService(r *bench.Run, s service) (*process, *bench.Process, error) {
	p, err := r.Start(on(serverCore), "tracker", "server", "leeway-server")
	if err != nil {
		return nil, nil, err
	}
	out := &process{name: "leeway", pid: p.PID(), stop: p.Stop}
	if err := errors.Join(p.Send(s), p.Receive(&out.address)); err != nil {
		return nil, nil, errors.Join(err, p.Stop())
	}
	return out, p, nil
}

// serverRole is a tracker as `leeway tracker` composes it, with its counting, until its input ends.
func serverRole(_ context.Context, in *json.Decoder, out *bench.Writer) (err error) {
	var s service
	if err := in.Decode(&s); err != nil {
		return err
	}
	one, err := site.New(site.Config{Name: siteName, Hosts: []string{"video.example.com"}})
	if err != nil {
		return err
	}
	registry, err := promreg.New([]string{siteName}, append(tracker.Metrics(), natsbus.Metrics()...)...)
	if err != nil {
		return err
	}
	bus, err := natsbus.Open(natsbus.Config{Name: "bench", Metrics: registry})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	cfg := tracker.Config{
		Secret: bytes.Repeat([]byte("s"), 32), Sites: []*site.Site{one}, Metrics: registry, WebTorrent: tracker.WebTorrent{Token: benchToken},
	}
	if !s.Limits {
		cfg.MaxPerAddress, cfg.MessagesPerSecond, cfg.ConnectsPerSecond = unlimited, unlimited, unlimited
	}
	t, err := tracker.New(cfg, bus)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, t.Close())
	}
	address := listener.Addr().String()
	door := wsconn.NewDoor(listener, wsconn.DoorConfig{Refused: t.Rejected})
	listener = door
	if s.Cert != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return errors.Join(err, listener.Close(), t.Close())
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	server := &http.Server{
		Handler: door.Guard(endpoints(t, s.Limits)), ConnContext: door.Context, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	err = out.Write(address)
	for ask := struct{}{}; err == nil && in.Decode(&ask) == nil; { // until the input ends
		err = out.Write(refusals(registry))
	}
	return errors.Join(err, t.Close(), server.Close(), closed(<-failed))
}

func closed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func endpoints(t *tracker.Tracker, limits bool) http.Handler {
	visitor := func(r *http.Request) tracker.Visitor {
		at, _ := netip.ParseAddrPort(r.RemoteAddr)
		return tracker.Visitor{Address: at.Addr()}
	}
	sockets := wsconn.Config{
		Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, Refused: t.Rejected, Crowded: t.Crowded,
	}
	if !limits {
		sockets.WriteQueue, sockets.WriteBytes = unlimited, queueBytes
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return t.Accept(c, visitor(r)) }))
	sockets.Subprotocol, sockets.MaxMessage = "", webtorrent.MaxMessage
	torrents := wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return t.AcceptWebTorrent(c, visitor(r)) })
	mux.HandleFunc("/announce", func(w http.ResponseWriter, r *http.Request) {
		if !t.AllowsToken(r.URL.Query().Get("token")) {
			http.Error(w, "token", http.StatusForbidden)
			return
		}
		torrents.ServeHTTP(w, r)
	})
	return mux
}
