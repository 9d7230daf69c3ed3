package turnd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/leeway-video/leeway/internal/sleep"
)

// freeTries is how many ports of the kernel's choice are looked at for one that is free for UDP, too.
const freeTries = 20

// leaving is how long Close waits for pion's goroutines, which end when their sockets do.
const leaving = 5 * time.Second

// Server is one relay on the wire.
type Server struct {
	cfg      Config
	pion     *turn.Server
	clients  []*clientSocket
	plain    net.Listener
	secure   net.Listener       // nil without TLS
	families map[string]*family // by network
	closing  chan struct{}
	refused  refusals
	gone     sync.WaitGroup // relayed addresses, until pion has forgotten them, and streams

	mu       sync.RWMutex
	closed   bool                        // guarded by mu
	relayed  map[netip.AddrPort]*relayed // guarded by mu: by announced address
	byClient map[clientKey]*relayed      // guarded by mu
	streams  map[*stream]struct{}        // guarded by mu
}

// Listen opens the sockets and serves until Close.
func Listen(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, closing: make(chan struct{}), refused: refusals{realm: cfg.Realm},
		relayed: map[netip.AddrPort]*relayed{}, byClient: map[clientKey]*relayed{}, streams: map[*stream]struct{}{},
	}
	err := s.listen()
	if err == nil {
		err = s.locate()
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		s.unlisten()
		return nil, err
	}
	return s, nil
}

// listen opens the sockets that clients send to. Where the port is left to the kernel, it has to be free for both protocols.
func (s *Server) listen() error {
	host, port, err := net.SplitHostPort(s.cfg.Listen)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := s.listenPort(host)
		if err == nil {
			break
		}
		if port != "0" || try == freeTries || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		s.unlisten()
	}
	if s.cfg.ListenTLS != "" {
		s.secure, err = net.Listen("tcp", s.cfg.ListenTLS)
	}
	return err
}

// listenPort opens TCP and then UDP on the port that TCP got.
func (s *Server) listenPort(host string) (err error) {
	if s.plain, err = net.Listen("tcp", s.cfg.Listen); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(s.plain.Addr().String())
	if err != nil {
		return err
	}
	sockets := s.cfg.Sockets
	if !several {
		sockets = 1
	}
	for range sockets {
		conn, err := listenShared(net.JoinHostPort(host, port))
		if err != nil {
			return err
		}
		_, _ = conn.SetReadBuffer(clientBuffer), conn.SetWriteBuffer(clientBuffer) // the kernel gives what it allows
		s.clients = append(s.clients, &clientSocket{UDPConn: conn, server: s})
	}
	return nil
}

func (s *Server) unlisten() {
	for _, c := range s.clients {
		_ = c.Close()
	}
	s.clients = nil
	for _, l := range []net.Listener{s.plain, s.secure} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// start hands the sockets to pion.
func (s *Server) start() (err error) {
	config := turn.ServerConfig{
		Realm: s.cfg.Realm, LoggerFactory: silence{}, AuthHandler: s.authenticate,
		QuotaHandler: func(user, _ string, client net.Addr) bool {
			at, ok := place(client)
			return ok && s.cfg.Policy.Admits(user, at.Addr())
		},
		EventHandler: s.events(),
	}
	for _, c := range s.clients {
		config.PacketConnConfigs = append(config.PacketConnConfigs, turn.PacketConnConfig{
			PacketConn: c, RelayAddressGenerator: generator{s}, PermissionHandler: s.permit,
		})
	}
	streams := []*listener{{Listener: s.plain, server: s, kind: "tcp"}}
	if s.secure != nil {
		streams = append(streams, &listener{Listener: s.secure, server: s, kind: "tls", tls: s.cfg.TLS})
	}
	for _, l := range streams {
		config.ListenerConfigs = append(config.ListenerConfigs, turn.ListenerConfig{
			Listener: l, RelayAddressGenerator: generator{s}, PermissionHandler: s.permit,
		})
	}
	s.pion, err = turn.NewServer(config)
	return err
}

func (s *Server) authenticate(r *turn.RequestAttributes) (user string, key []byte, ok bool) {
	user, password, ok := s.cfg.Policy.Authenticate(r.Username, r.Method == stun.MethodAllocate)
	if !ok || r.Realm != s.cfg.Realm {
		s.refused.note(r.SrcAddr)
		return "", nil, false
	}
	return user, turn.GenerateAuthKey(r.Username, r.Realm, password), true
}

// permit says whether a client may have a permission for a peer.
func (s *Server) permit(client net.Addr, ip net.IP) bool {
	peer, ok := netip.AddrFromSlice(ip)
	from := keyOf(client)
	if !ok || !from.at.IsValid() {
		return false
	}
	peer = peer.Unmap()
	if !s.announces(peer) && !s.cfg.Policy.AllowsPeer(peer) {
		return false
	}
	s.mu.RLock()
	r := s.byClient[from]
	s.mu.RUnlock()
	return r != nil && r.permits(peer)
}

// events keeps what pion makes for an allocation beside its socket.
func (s *Server) events() turn.EventHandler {
	of := func(relay net.Addr) *relayed {
		at, _ := place(relay)
		return s.relayedAt(at)
	}
	peers := func(relay net.Addr, peer net.IP, change func(*relayed, netip.Addr)) {
		if a, ok := netip.AddrFromSlice(peer); ok {
			if r := of(relay); r != nil {
				r.mu.Lock()
				change(r, a.Unmap())
				r.mu.Unlock()
			}
		}
	}
	return turn.EventHandler{
		OnAuth: func(client, _ net.Addr, _, _, _, _ string, right bool) {
			if !right {
				s.refused.note(client)
			}
		},
		OnAllocationCreated: func(client, _ net.Addr, _, _, _ string, relay net.Addr, _ int) { s.created(client, of(relay)) },
		OnAllocationDeleted: func(client, _ net.Addr, _, _, _ string) { s.deleted(client) },
		OnPermissionCreated: func(_, _ net.Addr, _, _, _ string, relay net.Addr, peer net.IP) {
			peers(relay, peer, func(r *relayed, a netip.Addr) { r.peers[a] = struct{}{} })
		},
		OnPermissionDeleted: func(_, _ net.Addr, _, _, _ string, relay net.Addr, peer net.IP) {
			peers(relay, peer, func(r *relayed, a netip.Addr) { delete(r.peers, a) })
		},
		OnChannelCreated: func(_, _ net.Addr, _, _, _ string, relay, peer net.Addr, number uint16) {
			at, ok := place(peer)
			if r := of(relay); r != nil && ok {
				r.bound(number, at)
			}
		},
		OnChannelDeleted: func(_, _ net.Addr, _, _, _ string, relay, _ net.Addr, number uint16) {
			if r := of(relay); r != nil {
				r.unbound(number)
			}
		},
	}
}

// Addr is where UDP and TCP are listened on, TLSAddr where TLS is; nil without.
func (s *Server) Addr() net.Addr { return s.plain.Addr() }

// TLSAddr is where TLS is listened on, nil without.
func (s *Server) TLSAddr() net.Addr {
	if s.secure == nil {
		return nil
	}
	return s.secure.Addr()
}

// Buffers is what the kernel gave a socket that clients send to.
func (s *Server) Buffers() (read, write int) { return buffers(s.clients[0].UDPConn) }

// Allocations is how many there are.
func (s *Server) Allocations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.relayed)
}

// Drain returns when there is no allocation left, or ctx has ended. That none comes is the policy's to see to.
func (s *Server) Drain(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for s.Allocations() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Close ends all sockets and returns when nothing of the server is left.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	var open []interface{ Close() error }
	for r := range s.streams {
		open = append(open, r)
	}
	for _, r := range s.relayed {
		open = append(open, r)
	}
	s.mu.Unlock()
	err := s.pion.Close()
	for _, o := range open {
		_ = o.Close() // pion may have been first
	}
	done := make(chan struct{})
	go func() {
		s.gone.Wait()
		close(done)
	}()
	if sleep.Until(done, leaving) {
		return errors.Join(err, fmt.Errorf("turnd: something is still running %s after the end", leaving))
	}
	return err
}
