// Package trackerside is a tracker in a process of a bench, composed as `leeway tracker` composes one: counting, bus, limits,
// admission before it, both protocols behind it.
package trackerside

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/webtorrent"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	// Site is the one that sessions name.
	Site = "demo"
	// Unlimited is for what bounds one client, where a driver is many in few sockets.
	Unlimited = 1 << 20
	// headerTimeout is that of `leeway tracker`.
	headerTimeout = 10 * time.Second
)

// Config of a Service.
type Config struct {
	Bus        natsbus.Config // without a URL it is embedded
	Cert, Key  string         // files; empty: plaintext
	Tracker    tracker.Config // secret, sites, metrics and the room of WebTorrent are given to it
	WebTorrent webtorrent.Config
	WriteQueue int // messages and bytes that wait for one reader; 0: as `leeway tracker` has them
	WriteBytes int
	PerSecond  int // handshakes that admission begins; 0: as `leeway tracker` has it
}

// Service is a tracker that listens.
type Service struct {
	*tracker.Tracker
	Registry *promreg.Registry
	Torrents *webtorrent.Service
	Address  string // HOST:PORT

	bus    *natsbus.Bus
	server *http.Server
	failed chan error // of server, once
	once   sync.Once
	ended  error // of Close
}

// Start begins to listen on loopback. Close ends everything.
func Start(cfg Config) (s *Service, err error) {
	s = &Service{failed: make(chan error, 1)}
	one, err := site.New(site.Config{Name: Site, Hosts: []string{"video.example.com"}})
	if err != nil {
		return nil, err
	}
	if s.Registry, err = promreg.New([]string{Site}, slices.Concat(tracker.Metrics(), webtorrent.Metrics(), natsbus.Metrics())...); err != nil {
		return nil, err
	}
	cfg.Bus.Name, cfg.Bus.Metrics = "bench", s.Registry
	if s.bus, err = natsbus.Open(cfg.Bus); err != nil {
		return nil, err
	}
	cfg.Tracker.Secret, cfg.Tracker.Sites, cfg.Tracker.Metrics = bytes.Repeat([]byte("s"), 32), []*site.Site{one}, s.Registry
	cfg.Tracker.Torrents = func(t *tracker.Tracker) tracker.Torrents {
		s.Torrents = webtorrent.New(cfg.WebTorrent, t)
		return s.Torrents
	}
	if s.Tracker, err = tracker.New(cfg.Tracker, s.bus); err != nil {
		return nil, errors.Join(err, s.bus.Close())
	}
	if err := s.listen(cfg); err != nil {
		return nil, errors.Join(err, s.Tracker.Close(), s.bus.Close())
	}
	return s, nil
}

func (s *Service) listen(cfg Config) error {
	var secure *tls.Config
	if cfg.Cert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
		if err != nil {
			return err
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Address = listener.Addr().String()
	admission := wsconn.NewAdmission(listener, wsconn.AdmissionConfig{MaxOpen: s.Room(), PerSecond: cfg.PerSecond, Refused: s.Rejected, Knock: s.Knock, Entered: s.Entered, Slack: wsconn.UsualSlack})
	listener = admission
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	s.server = &http.Server{
		Handler: admission.Guard(s.endpoints(cfg)), ConnContext: admission.Context, ConnState: admission.State, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { s.failed <- s.server.Serve(listener) }()
	return nil
}

func (s *Service) endpoints(cfg Config) http.Handler {
	visitor := func(r *http.Request) tracker.Visitor {
		at, _ := netip.ParseAddrPort(r.RemoteAddr)
		return tracker.Visitor{Address: at.Addr()}
	}
	sockets := wsconn.Config{
		Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, WriteQueue: cfg.WriteQueue, WriteBytes: cfg.WriteBytes,
		Refused: s.Rejected, Crowded: s.Crowded,
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return s.Accept(c, visitor(r)) }))
	sockets.Subprotocol, sockets.MaxMessage = "", wire.MaxMessage
	torrents := wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return s.Torrents.Accept(c, visitor(r)) })
	mux.HandleFunc("/announce", func(w http.ResponseWriter, r *http.Request) {
		if !s.Torrents.AllowsToken(r.URL.Query().Get("token")) {
			http.Error(w, "token", http.StatusForbidden)
			return
		}
		torrents.ServeHTTP(w, r)
	})
	return mux
}

// Close drains the tracker and returns when nothing of the service runs any more.
func (s *Service) Close() error {
	s.once.Do(func() {
		s.ended = errors.Join(s.Tracker.Close(), s.server.Close())
		if err := <-s.failed; !errors.Is(err, http.ErrServerClosed) {
			s.ended = errors.Join(s.ended, err)
		}
		s.ended = errors.Join(s.ended, s.bus.Close())
	})
	return s.ended
}
