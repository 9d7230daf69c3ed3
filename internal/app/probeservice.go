package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tcpinfo"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// probeConnections bounds what is open at a probe server, tests or not; a quarter of them may be without a request.
const probeConnections = 4096

// probeParts is what a probe server is made of.
type probeParts struct {
	config    ProbeConfig
	authorize func(token string) error // nil: any client may test
	next      bool                     // take the next free port where the one of the configuration is busy
	sink      metric.Sink
	log       *slog.Logger
	group     *servers
}

// probeService is a probe server on its port.
type probeService struct {
	server *probe.Server
	at     place
	udp    netip.AddrPort
	host   *qualitylink.Host
	grace  time.Duration
	log    *slog.Logger
}

// startProbe serves tests, in the group's servers.
func startProbe(ctx context.Context, p probeParts) (*probeService, error) {
	balancers, err := prefixes("probe.proxy_protocol", p.config.ProxyProtocol)
	if err != nil {
		return nil, err
	}
	certificate, err := publicPair(p.config.CertFile, p.config.KeyFile, p.log)
	if err != nil {
		return nil, err
	}
	announced, err := probeAnnounced(p.config.Announce)
	if err != nil {
		return nil, err
	}
	if err := probeSTUN(p.config.STUN); err != nil {
		return nil, err
	}
	relays, err := probeRelays(p.config.ICEServers)
	if err != nil {
		return nil, err
	}
	socket, err := listenProbeUDP(p)
	if err != nil {
		return nil, err
	}
	host, err := qualitylink.NewHost(socket)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	bulk := wsconn.BulkConfig{Subprotocol: probe.Subprotocol, MaxMessage: probe.MaxMessage, Handshake: 10 * time.Second}
	server, err := probe.New(probe.Config{
		Upgrade: func(w http.ResponseWriter, r *http.Request) (probe.Socket, error) { return bulk.Bulk(w, r) },
		Offers:  func(r *http.Request) bool { return wsconn.OffersBulk(r, probe.Subprotocol) },
		Look:    tcpinfo.Look, Mark: tcpinfo.Mark, Answer: answerLine(host, announced), Authorize: p.authorize, STUN: stunOf(p.config), Relays: relays,
		MaxTests: p.config.MaxTests, MaxPerAddress: p.config.MaxPerAddress, DailyBytes: p.config.DailyBytes,
		Version: Version, Log: p.log, Metrics: p.sink,
	})
	if err != nil {
		host.Close()
		return nil, err
	}
	handler, err := withCheckPage(server)
	if err != nil {
		host.Close()
		return nil, err
	}
	l, err := listenTCP(ctx, "probe", p.config.Listen, p.next)
	if err != nil {
		host.Close()
		return nil, err
	}
	s := &probeService{server: server, at: place{l.Addr(), certificate}, udp: socketAddr(socket), host: host, grace: p.config.Drain, log: p.log}
	admission := wsconn.NewAdmission(l, wsconn.AdmissionConfig{
		MaxOpen: probeConnections, MaxPending: probeConnections / 4, Refused: server.Refused,
		Introduces: func(a netip.Addr) bool { return within(balancers, a) },
	})
	p.group.serveHTTP2("probe", admission, handler, certificate, server.EnterHTTP2)
	return s, nil
}

// probeAnnounced are the addresses of probe.announce.
func probeAnnounced(texts []string) (all []netip.Addr, err error) {
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, cmdline.Usage(fmt.Errorf("probe.announce: %q is no IP address", text))
		}
		all = append(all, a)
	}
	return all, nil
}

// probeSTUN checks probe.stun.
func probeSTUN(servers []string) error {
	if len(servers) > netcheck.MaxSTUN {
		return cmdline.Usage(fmt.Errorf("probe.stun: %d servers, at most %d", len(servers), netcheck.MaxSTUN))
	}
	for _, text := range servers {
		if _, _, err := netcheck.ParseSTUN(text); err != nil {
			return cmdline.Usage(fmt.Errorf("probe.stun: %w", err))
		}
	}
	return nil
}

// listenProbeUDP opens the port of data channels.
func listenProbeUDP(p probeParts) (socket qualitylink.Socket, err error) {
	at := p.config.UDP
	if at == "" {
		host, _, err := net.SplitHostPort(p.config.Listen)
		if err != nil {
			return nil, fmt.Errorf("probe: listen on %s: %w (write HOST:PORT)", p.config.Listen, err)
		}
		at = net.JoinHostPort(host, probeUDPPort)
	}
	err = tryPorts(at, p.next, func(addr string) (err error) {
		socket, err = qualitylink.Listen(addr)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("probe: %w (choose another one with probe.udp)", err)
	}
	return socket, nil
}

func socketAddr(s qualitylink.Socket) netip.AddrPort {
	if at, ok := s.LocalAddr().(*net.UDPAddr); ok {
		return at.AddrPort()
	}
	return netip.AddrPort{}
}

// answerLine is the port of a probe server that makes lines.
func answerLine(host *qualitylink.Host, announced []netip.Addr) func(probe.Asked, probe.LineEvents) (probe.Line, string, error) {
	return func(a probe.Asked, events probe.LineEvents) (probe.Line, string, error) {
		line, answer, err := host.Answer(qualitylink.Asked{Offer: a.Offer, Client: a.Client, Reached: a.Reached, Announced: announced, DSCP: a.DSCP}, events)
		if blamed := (*qualitylink.DescriptionError)(nil); errors.As(err, &blamed) {
			return nil, "", &probe.OfferError{Err: err}
		}
		if err != nil {
			return nil, "", err
		}
		return line, answer, nil
	}
}

// drain takes no new tests and lets those that run end.
func (s *probeService) drain() {
	if n := s.server.Running(); n > 0 {
		s.log.Info("draining", "tests", n, "for", s.grace)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	s.server.Drain(ctx)
	s.host.Close()
}

// probeAccess says which tokens are good for a test; nil: none is needed. Access has to be stated where other machines reach the port.
func probeAccess(c ProbeConfig, sites []*site.Site, log *slog.Logger) (func(token string) error, error) {
	if c.Open {
		return nil, nil
	}
	var names []string
	for _, s := range sites {
		if s.Config().Access == site.AccessToken {
			names = append(names, s.Name())
		}
	}
	if len(names) == 0 {
		if loopback(c.Listen) {
			return nil, nil
		}
		return nil, cmdline.Usage(fmt.Errorf("probe: %s can be reached from other machines and nothing asks clients for a token: add --open if any client may test, listen on 127.0.0.1, or configure a site with access: token", c.Listen))
	}
	keys, err := openTokenKeys(sites, log)
	if err != nil {
		return nil, err
	}
	return func(token string) (err error) {
		for _, name := range names {
			_, refused := keys.Check(name, token, time.Now())
			if refused == nil {
				return nil
			}
			if err == nil || !ofAnotherSite(refused) {
				err = refused
			}
		}
		return err
	}, nil
}

// ofAnotherSite says whether a token may be another site's.
func ofAnotherSite(err error) bool {
	var refused *access.TokenError
	return errors.As(err, &refused) && (refused.Reason == access.UnknownKey || refused.Reason == access.OtherSite)
}
