package app

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmcd"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/judge"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/webtorrent"
	"github.com/leeway-video/leeway/internal/wire/signal"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// startTracker adds a tracker, whose secret comes from the configuration or is kept in dataDir.
func (s *services) startTracker(dataDir string) error {
	c, err := s.trackerConfig(dataDir)
	if err != nil {
		return err
	}
	between, err := newProxies(s.config.Tracker)
	if err != nil {
		return err
	}
	place, err := newSlot(func() (*instance, error) { return s.openTracker(c, between) })
	if err != nil {
		return err
	}
	s.add("tracker", place)
	if err := s.registry.Watch(place, tracker.Metrics()...); err != nil {
		return err
	}
	now := func() *tracker.Tracker { return place.now.Load().tracker }
	s.tracker = trackerPorts{
		trackerHandlers{
			socket:   place.port(func(h trackerHandlers) http.Handler { return h.socket }),
			announce: place.port(func(h trackerHandlers) http.Handler { return h.announce }),
			allowed:  place.port(func(h trackerHandlers) http.Handler { return h.allowed }),
			cmcd:     place.port(func(h trackerHandlers) http.Handler { return h.cmcd }),
		},
		func(l net.Listener) net.Listener {
			return wsconn.NewAdmission(l, wsconn.AdmissionConfig{
				MaxOpen: now().Room(), Refused: now().Rejected, Slack: wsconn.UsualSlack,
				Knock:   func(a netip.Addr) bool { return now().Knock(a) },
				Entered: func(a netip.Addr) { now().Entered(a) },
				Trusted: between.trusts, Introduces: between.isBalancer,
			})
		},
		func() []tracker.Delivery { return now().Deliveries() },
	}
	return nil
}

// trackerConfig is what the configuration says of a tracker.
func (s *services) trackerConfig(dataDir string) (t tracker.Config, err error) {
	c := s.config.Tracker
	secret, err := s.secret(dataDir)
	if err != nil {
		return t, err
	}
	ice, relays, err := iceServers(c.ICEServers)
	if err != nil {
		return t, cmdline.Usage(fmt.Errorf("tracker.ice_servers: %w", err))
	}
	keys, err := openTokenKeys(s.sites, s.log)
	if err != nil {
		return t, err
	}
	return tracker.Config{
		Secret: secret, Sites: s.sites, Tokens: keys, TokenGrace: c.TokenGrace, ICEServers: ice, TURNServers: relays, CredentialsLife: c.CredentialsLife,
		UpdateInterval: c.UpdateInterval, StatsInterval: c.StatsInterval, TicketLife: c.TicketLife, DrainSpread: c.DrainSpread,
		MaxSessions: c.MaxSessions, MaxPerAddress: c.MaxPerAddress, MaxPerSubject: c.MaxPerSubject, MaxSwarms: c.MaxSwarms, MaxMembers: c.MaxMembers,
		MessagesPerSecond: c.MessagesPerSecond, ConnectsPerSecond: c.ConnectsPerSecond, PeersPerHour: c.PeersPerHour,
		TitleNames: c.TitleNames,
		Judge:      func(t *tracker.Tracker) tracker.Judge { return judge.New(judge.Config{Pause: c.HarmPause}, t) },
		Probe:      rtclink.Probe, Log: s.log, Metrics: s.registry,
	}, nil
}

// openTracker starts a tracker and makes what it answers with.
func (s *services) openTracker(c tracker.Config, between proxies) (*instance, error) {
	own := s.config.Tracker.WebTorrent
	hashes, err := infoHashes(own.InfoHashes)
	if err != nil {
		return nil, err
	}
	var torrents *webtorrent.Service
	c.Torrents = func(t *tracker.Tracker) tracker.Torrents {
		torrents = webtorrent.New(webtorrent.Config{InfoHashes: hashes, Token: own.Token, Interval: own.Interval, MaxSwarms: own.MaxSwarms}, t)
		return torrents
	}
	t, err := tracker.New(c, s.bus)
	if err != nil {
		return nil, err
	}
	open := &gate{}
	visitor := func(r *http.Request) tracker.Visitor {
		return tracker.Visitor{Origin: askedOrigin(r), Address: between.client(r), Region: between.regionOf(r)}
	}
	sockets := wsconn.Config{
		Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, Refused: t.Rejected, Crowded: t.Crowded, Log: s.log,
		CheckOrigin: pageOrigin(t.AllowsOrigin, s.log),
	}
	native := wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return t.Accept(c, visitor(r)) })
	sockets.Subprotocol, sockets.MaxMessage = "", wire.MaxMessage
	foreign := wsconn.Handler(sockets, func(c *wsconn.Conn, r *http.Request) wsconn.Receiver { return torrents.Accept(c, visitor(r)) })
	return &instance{
		switcher: t, tracker: t, ready: t.Ready,
		handlers: trackerHandlers{
			open.guard(native), open.guard(announce(torrents, t.Rejected, foreign)), allowed(t.AllowsOrigin, between.client, t.Knock, t.Rejected),
			cmcd.New(cmcd.Config{Sites: s.sites, Client: between.client, Metrics: s.registry}),
		},
		cut: func() {
			open.shut()
			native.Cut()
			foreign.Cut()
		},
		stop: func() {
			if err := t.Close(); err != nil {
				s.log.Warn("tracker did not close cleanly", "error", err)
			}
			open.shut()
			native.Wait()
			foreign.Wait()
		},
	}, nil
}

// announce lets in the clients that may speak the WebTorrent protocol.
func announce(t *webtorrent.Service, rejected func(reason string), socket http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !t.On():
			http.Error(w, "The WebTorrent protocol is not offered here. Leeway's own protocol is on /.", http.StatusNotFound)
		case !t.AllowsToken(r.URL.Query().Get("token")):
			rejected("token")
			http.Error(w, "This address needs a token: /announce?token=…", http.StatusForbidden)
		default:
			socket.ServeHTTP(w, r)
		}
	})
}

// infoHashes reads those that may be announced.
func infoHashes(list []string) ([]wire.ID, error) {
	var all []wire.ID
	for i, text := range list {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != len(wire.ID{}) {
			return nil, cmdline.Usage(fmt.Errorf("tracker.webtorrent.info_hashes[%d]: %q is no info_hash (write 40 digits of hex)", i, text))
		}
		all = append(all, wire.ID(b))
	}
	return all, nil
}

func (s *services) secret(dataDir string) ([]byte, error) {
	if text := s.config.Tracker.Secret; text != "" {
		return decodeSecret(text, "tracker.secret")
	}
	return trackerSecret(dataDir)
}

// gate counts handshakes on their way, which become connections that http.Server knows nothing of.
type gate struct {
	mu   sync.Mutex
	off  bool // guarded by mu
	busy sync.WaitGroup
}

func (g *gate) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		if g.off {
			g.mu.Unlock()
			http.Error(w, "Draining; come back in a moment.", http.StatusServiceUnavailable)
			return
		}
		g.busy.Add(1)
		g.mu.Unlock()
		defer g.busy.Done()
		h.ServeHTTP(w, r)
	})
}

// shut lets nothing more in and returns when nothing is on its way.
func (g *gate) shut() {
	g.mu.Lock()
	g.off = true
	g.mu.Unlock()
	g.busy.Wait()
}

// iceServers divides the configured servers: clients are told some of them as they stand, and the tracker mints credentials for the others.
func iceServers(all []ICEServer) (ice []signal.ICEServer, relays []tracker.TURNServer, err error) {
	for _, i := range all {
		if i.Secret == "" {
			ice = append(ice, signal.ICEServer{URLs: i.URLs, Username: i.Username, Credential: i.Credential})
			continue
		}
		secret, err := access.NewRelaySecret(i.Secret)
		if err != nil {
			return nil, nil, err
		}
		relays = append(relays, tracker.TURNServer{URLs: i.URLs, Secret: secret})
	}
	return ice, relays, nil
}
