// Package headless joins headless viewers to real sockets: the WebSocket of wsconn, the links of rtclink and HTTP. It
// belongs to the composition: app and the lab start viewers by it.
package headless

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// Network is where a viewer's sockets come from. The zero value is the process's own network.
type Network struct {
	// Dial opens TCP connections, to the tracker and to the origin.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for wss addresses of trackers; nil: the system's roots.
	TLS *tls.Config
	// Enter runs what opens UDP sockets, such as in a network namespace; netlab's Host has both (DialContext, Do).
	Enter func(func() error) error
	// Listen is the address of the UDP socket of links; empty is every address of the machine.
	Listen string
	// Loopback offers loopback addresses to peers too, where Listen is not one.
	Loopback bool
	// PionRecords has pion write and read the records of links (rtclink.Config).
	PionRecords bool
	// Through, if any, stands between the viewer and its links: benches have peers misbehave there.
	Through func(viewer.Links) viewer.Links
	// Signaled, if any, stands between the viewer and its sockets to the tracker: benches look on there.
	Signaled func(viewer.Dialer) viewer.Dialer
	// Unreached, if any, hears why a socket to the tracker did not open. Any goroutine calls it.
	Unreached func(error)
	Log       *slog.Logger
}

// Viewer is a headless viewer with everything that it stands on.
type Viewer struct {
	*viewer.Viewer
	stops []func()
}

// Start starts a viewer. Close it when it is done.
func Start(cfg viewer.Config, n Network) (*Viewer, error) {
	n.Listen = cmp.Or(n.Listen, ":0")
	n.Log = cmp.Or(n.Log, slog.New(slog.DiscardHandler))
	loop, stopLoop := viewer.NewLoop()
	player := originhttp.NewPlayer(n.Dial)
	hosts := &hosts{network: n}
	sockets := &dialer{network: n}
	sockets.ctx, sockets.stop = context.WithCancel(context.Background())
	cfg.ReadyOffers = signal.MaxOffers
	v := &Viewer{stops: []func(){hosts.close, sockets.close, player.Close, stopLoop}}
	ports := viewer.Ports{Loop: loop, Dialer: sockets, Links: hosts, Origin: player}
	if n.Through != nil {
		ports.Links = n.Through(hosts)
	}
	if n.Signaled != nil {
		ports.Dialer = n.Signaled(sockets)
	}
	var err error
	v.Viewer, err = viewer.Start(cfg, ports)
	if err != nil {
		v.Close()
		return nil, err
	}
	if n.Enter == nil { // addresses of another network are not this process's to see
		ctx, cancel := context.WithCancel(context.Background())
		tick := time.NewTicker(lookEvery)
		var busy sync.WaitGroup
		busy.Go(func() { watchAddresses(ctx, tick.C, addresses, v.Moved) })
		v.stops = append([]func(){cancel, tick.Stop, busy.Wait}, v.stops...)
	}
	return v, nil
}

// farewell bounds how long a viewer that is closed in mid-play has for its last words.
const farewell = 5 * time.Second

// Close has the viewer leave if it still plays, and returns when nothing of it runs any more.
func (v *Viewer) Close() {
	if v.Viewer != nil {
		v.Leave()
		sleep.Until(v.Done(), farewell)
	}
	for _, stop := range v.stops {
		stop()
	}
}

// Summary is how things stand, or stood at the end. It waits for the viewer's loop; not to be called after Close.
func (v *Viewer) Summary() viewer.Summary {
	got := make(chan viewer.Summary, 1)
	v.Report(func(s viewer.Summary) { got <- s })
	return <-got
}

// hosts makes links over one UDP socket, opened when the first link is. New credentials of STUN or TURN servers, and
// links that must be relayed, get a host of their own. Credentials are new every few minutes, so a host goes when another one comes
// and it has no links any more.
type hosts struct {
	network Network

	mu     sync.Mutex
	list   []*host // guarded by mu
	closed bool    // guarded by mu
}

type host struct {
	settings viewer.LinkSettings
	*rtclink.Host
	making int // guarded by hosts.mu: links that it does not know of yet
}

var _ viewer.Links = (*hosts)(nil)

// host is the one for some settings. It stays until made is called.
func (h *hosts) host(settings viewer.LinkSettings) (one *host, made func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, rtclink.ErrClosed
	}
	i := slices.IndexFunc(h.list, func(known *host) bool { return reflect.DeepEqual(known.settings, settings) })
	if i < 0 {
		h.list = slices.DeleteFunc(h.list, (*host).closeIdle)
		opened, err := h.open(settings)
		if err != nil {
			return nil, nil, err
		}
		i, h.list = len(h.list), append(h.list, &host{settings: settings, Host: opened})
	}
	one = h.list[i]
	one.making++
	return one, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		one.making--
	}, nil
}

// closeIdle closes a host without links, and says whether it did. Under hosts.mu.
func (o *host) closeIdle() bool {
	if o.making > 0 || o.Links() > 0 {
		return false
	}
	_ = o.Close()
	return true
}

// open makes a host. Under mu.
func (h *hosts) open(settings viewer.LinkSettings) (made *rtclink.Host, err error) {
	cfg := rtclink.Config{Listen: h.network.Listen, Loopback: h.network.Loopback, RelayOnly: settings.RelayOnly, PionRecords: h.network.PionRecords, Log: h.network.Log}
	at, port, err := net.SplitHostPort(cfg.Listen)
	if err == nil && slices.ContainsFunc(h.list, func(known *host) bool { return strconv.Itoa(int(known.Addr().Port())) == port }) {
		cfg.Listen = net.JoinHostPort(at, "0") // the port that was asked for is in use by links
	}
	for _, s := range settings.Servers {
		cfg.ICEServers = append(cfg.ICEServers, rtclink.ICEServer(s))
	}
	listen := func() (err error) {
		made, err = rtclink.Listen(cfg)
		return err
	}
	if h.network.Enter == nil {
		err = listen()
	} else {
		err = h.network.Enter(listen)
	}
	return made, err
}

// Offer implements viewer.Links.
func (h *hosts) Offer(s viewer.LinkSettings, events transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	one, made, err := h.host(s)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	defer made()
	link, offer, err := one.Offer(events)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	return link, offer, nil
}

// Answer implements viewer.Links.
func (h *hosts) Answer(s viewer.LinkSettings, offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	one, made, err := h.host(s)
	if err != nil {
		return nil, transfer.Description{}, err
	}
	defer made()
	return one.Answer(offer, events)
}

func (h *hosts) close() {
	h.mu.Lock()
	h.closed = true
	list := h.list
	h.mu.Unlock()
	for _, known := range list {
		_ = known.Close()
	}
}

// dialer opens sockets to trackers.
type dialer struct {
	network Network
	ctx     context.Context
	stop    context.CancelFunc
	busy    sync.WaitGroup
}

var _ viewer.Dialer = (*dialer)(nil)

// socket is one WebSocket, perhaps still opening: what is sent before it is open is lost with it.
type socket struct {
	cancel context.CancelFunc

	mu     sync.Mutex
	conn   *wsconn.Conn // guarded by mu
	closed bool         // guarded by mu
}

// Dial implements viewer.Dialer.
func (d *dialer) Dial(url, origin string, events viewer.SocketEvents) viewer.Socket {
	ctx, cancel := context.WithCancel(d.ctx)
	s := &socket{cancel: cancel}
	d.busy.Go(func() {
		defer cancel()
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		conn, err := wsconn.Dial(ctx, url, wsconn.Config{
			Subprotocol: signal.Subprotocol, MaxMessage: signal.MaxMessage, WriteQueue: 512, Log: d.network.Log,
		}, wsconn.DialConfig{NetDial: d.network.Dial, Header: header, TLS: d.network.TLS})
		if err != nil {
			d.network.Log.Debug("no connection to the tracker", "error", err)
			if d.network.Unreached != nil && ctx.Err() == nil {
				d.network.Unreached(err)
			}
			events.Lost()
			return
		}
		stop := context.AfterFunc(d.ctx, func() { conn.Close(wsconn.CloseDone, "") })
		defer stop()
		s.serve(conn, events)
	})
	return s
}

// serve reads until the connection ends.
func (s *socket) serve(conn *wsconn.Conn, events viewer.SocketEvents) {
	s.mu.Lock()
	s.conn = conn
	closed := s.closed
	s.mu.Unlock()
	if !closed {
		events.Opened()
		for {
			b, err := conn.Read()
			if err != nil {
				break
			}
			events.Message(b)
		}
	}
	conn.Close(wsconn.CloseDone, "")
	conn.Wait()
	events.Lost()
}

// Send implements viewer.Socket.
func (s *socket) Send(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Write(text) // a connection that is gone says so to its reader
	}
}

// Close implements viewer.Socket.
func (s *socket) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		s.conn.Close(wsconn.CloseDone, "")
		return
	}
	s.cancel()
}

func (d *dialer) close() {
	d.stop()
	d.busy.Wait()
}
