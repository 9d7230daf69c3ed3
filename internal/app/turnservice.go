package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/turnd"
)

// wantedBuffer is below which a relay's socket drops packets in bursts.
const wantedBuffer = 4 << 20

// turnService is a relay on its sockets. It needs neither sites nor a bus: credentials say all.
type turnService struct {
	config      TurnConfig
	log         *slog.Logger
	registry    *promreg.Registry
	relay       *relay.Relay
	server      *turnd.Server
	certificate *pair  // nil: no TLS
	end         func() // of what the relay does by the clock
}

// relayPolicy has a relay decide over a server's packets.
type relayPolicy struct{ *relay.Relay }

// Open implements turnd.Policy.
func (p relayPolicy) Open(user string) (turnd.Flow, error) {
	flow, err := p.Relay.Open(user)
	if err != nil {
		return nil, err
	}
	return flow, nil
}

// startTurn opens the sockets and serves. stop ends it.
func startTurn(c TurnConfig, log *slog.Logger) (*turnService, error) {
	s := &turnService{config: c, log: log}
	var err error
	if s.registry, err = newRegistry(log, nil, counts["turn"]...); err != nil {
		return nil, err
	}
	if s.relay, err = newRelay(c, s.registry, log); err != nil {
		return nil, cmdline.Usage(err)
	}
	config := turnd.Config{
		Listen: c.Listen, Sockets: c.Sockets, PortMin: uint16(c.PortMin), PortMax: uint16(c.PortMax), Realm: c.Realm,
		Policy: relayPolicy{s.relay}, Log: log,
	}
	balancers, err := prefixes("turn.proxy_protocol", c.ProxyProtocol)
	if err != nil {
		return nil, err
	}
	config.Introduces = func(a netip.Addr) bool { return within(balancers, a) }
	for _, text := range c.Announce {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, cmdline.Usage(err)
		}
		config.Announce = append(config.Announce, a)
	}
	if c.CertFile != "" {
		pair, err := openPair(c.CertFile, c.KeyFile, log)
		if err != nil {
			return nil, err
		}
		pair.count(s.registry)
		s.certificate, config.ListenTLS, config.TLS = pair, c.ListenTLS, pair.config()
	}
	if s.server, err = turnd.Listen(config); err != nil {
		at := c.Listen
		if op := (*net.OpError)(nil); errors.As(err, &op) && op.Addr != nil { // it may be the port of TLS
			at = op.Addr.String()
		}
		return nil, listenError("turn", at, err)
	}
	read, write := s.server.Buffers()
	s.relay.Buffers(read, write)
	if min(read, write) < wantedBuffer {
		log.Warn("the kernel gives small socket buffers, which bursts overflow (docs/operations/network.md, UDP buffers)", "read", read, "write", write, "wanted", wantedBuffer)
	}
	s.end = runUntilStopped(s.relay.Run)
	return s, nil
}

// newRelay is the policy that a configuration says.
func newRelay(c TurnConfig, sink metric.Sink, log *slog.Logger) (*relay.Relay, error) {
	rules := relay.Config{
		MaxAllocations: c.MaxAllocations, MaxPerUser: c.MaxPerUser, MaxPerAddress: c.MaxPerAddress, MaxConnections: c.MaxConnections,
		Rate: c.Rate, AllocationRate: c.AllocationRate, Log: log, Metrics: sink,
	}
	for _, text := range c.Secrets {
		secret, err := access.NewRelaySecret(text)
		if err != nil {
			return nil, err
		}
		rules.Secrets = append(rules.Secrets, secret)
	}
	var err error
	if rules.Reach, err = reach(c.Allow); err != nil {
		return nil, err
	}
	return relay.New(rules)
}

// reach is what a list of the configuration allows of refused ranges.
func reach(allow []string) (r access.Reach, err error) {
	for _, text := range allow {
		peer, err := access.ParsePeer(text)
		if err != nil {
			return access.Reach{}, err
		}
		r.Allow = append(r.Allow, peer)
	}
	return r, nil
}

// ready says why no viewer is to be sent here, or nil.
func (s *turnService) ready() error { return errors.Join(s.relay.Ready(), s.certificate.ready()) }

func (s *turnService) tlsAddr() string {
	if a := s.server.TLSAddr(); a != nil {
		return a.String()
	}
	return ""
}

// stop takes no new allocations, carries on those there are for a while, and ends.
func (s *turnService) stop() {
	s.relay.Drain()
	if n := s.server.Allocations(); n > 0 {
		s.log.Info("draining", "allocations", n, "for", s.config.Drain)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Drain)
	s.server.Drain(ctx)
	left := s.server.Allocations()
	if cancel(); left > 0 {
		s.log.Info("drained; allocations that are left end", "allocations", left)
	}
	if err := s.server.Close(); err != nil {
		s.log.Warn("turn did not close cleanly", "error", err)
	}
	s.end()
}
