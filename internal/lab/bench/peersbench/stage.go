package peersbench

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// access is how an end of the paper's reaches the network.
type access struct {
	name string
	path netlab.Path
	nat  netlab.NAT
}

const (
	mega = 1_000_000
	kilo = 1000
	// slots is what dummynet's queue holds unless it is told otherwise, packets of 1500 bytes.
	slots = 50 * 1500
)

// The paper's networks. It tells rates, and which of them has a NAT; delays are typical ones of such networks in that time.
var (
	slow3G = access{"256k", netlab.Both(netlab.Link{Rate: 256 * kilo, Delay: 60 * time.Millisecond, Queue: slots}), netlab.NoNAT}
	hspa   = access{"21m", netlab.Path{
		Down: netlab.Link{Rate: 21 * mega, Delay: 25 * time.Millisecond, Queue: 4 * slots},
		Up:   netlab.Link{Rate: 5_760_000, Delay: 25 * time.Millisecond, Queue: 2 * slots},
	}, netlab.PortRestricted}
	wlan = access{"wlan", netlab.Both(netlab.Link{Rate: 50 * mega, Delay: 2 * time.Millisecond, Queue: 4 * slots}), netlab.NoNAT}
	pc   = access{"pc", netlab.Both(netlab.Link{Rate: 100 * mega, Delay: time.Millisecond, Queue: 4 * slots}), netlab.NoNAT}
	// abroad is the line of the exchange of signals: the paper's server was in Germany, its phones in Finland.
	abroad = netlab.Both(netlab.Link{Delay: 20 * time.Millisecond})
	// wide is a line that neither delays nor bounds.
	wide = netlab.Path{}
)

// trip is the round-trip time between two accesses.
func trip(a, b access) time.Duration {
	return a.path.Up.Delay + a.path.Down.Delay + b.path.Up.Delay + b.path.Down.Delay
}

// stage is a lab with a client, the ends that serve it, and an exchange of signals.
type stage struct {
	lab      *netlab.Lab
	hosts    []*netlab.Host // the client first
	lines    []*netlab.Line // of the hosts, or their gateways
	signals  *netlab.Host
	signaled *netlab.Line
}

// build makes the lab. A host's line follows from its access.
func build(seed uint64, signaling netlab.Path, from access, to ...access) (_ *stage, err error) {
	s := &stage{}
	if s.lab, err = netlab.New(netlab.Options{Seed: seed}); err != nil {
		return nil, err
	}
	core := s.lab.Router("core")
	s.signals, s.signaled = s.lab.Attach("exchange", core, signaling)
	for i, a := range append([]access{from}, to...) {
		name := fmt.Sprintf("end-%d", i)
		if a.nat == netlab.NoNAT {
			h, line := s.lab.Attach(name, core, a.path)
			s.hosts, s.lines = append(s.hosts, h), append(s.lines, line)
			continue
		}
		gateway := s.lab.Gateway("gateway-"+name, netlab.GatewayConfig{NAT: a.nat})
		s.lines = append(s.lines, s.lab.Connect(gateway, core, a.path))
		s.hosts = append(s.hosts, gateway.Host(name))
	}
	if err := s.lab.Start(); err != nil {
		_ = s.lab.Close()
		return nil, err
	}
	return s, nil
}

// listen is where the ends signal.
func (s *stage) listen(ctx context.Context) (net.Listener, error) {
	return s.signals.Listen(ctx, "tcp", net.JoinHostPort(s.signals.Addr().String(), "0"))
}

// places are where the ends run, the client's first.
func (s *stage) places(ctx context.Context) []place {
	var all []place
	for _, h := range s.hosts {
		all = append(all, place{addr: h.Addr().String(), command: func(name string, arg ...string) (*exec.Cmd, func() error) {
			c := h.Command(ctx, name, arg...)
			return c.Cmd, c.Start
		}})
	}
	return all
}

// carried is what a line has carried in both directions, headers included.
type carried struct{ packets, bytes float64 }

func (c carried) less(d carried) carried { return carried{c.packets - d.packets, c.bytes - d.bytes} }
func (c carried) plus(d carried) carried { return carried{c.packets + d.packets, c.bytes + d.bytes} }
func (c carried) over(n float64) carried { return carried{c.packets / n, c.bytes / n} }

func both(line *netlab.Line) (carried, error) {
	var sum carried
	for _, d := range []*netlab.Direction{line.Up, line.Down} {
		c, err := d.Counters()
		if err != nil {
			return sum, err
		}
		sum = sum.plus(carried{float64(c.Sent), float64(c.SentBytes)})
	}
	return sum, nil
}

// ledger is what the lines of the client, of the first end that serves it and of the exchange have carried.
type ledger struct{ client, server, exchange carried }

func (s *stage) ledger() (l ledger, err error) {
	if l.client, err = both(s.lines[0]); err != nil {
		return l, err
	}
	if l.server, err = both(s.lines[1]); err != nil {
		return l, err
	}
	l.exchange, err = both(s.signaled)
	return l, err
}

func (l ledger) less(m ledger) ledger {
	return ledger{l.client.less(m.client), l.server.less(m.server), l.exchange.less(m.exchange)}
}

func (l ledger) plus(m ledger) ledger {
	return ledger{l.client.plus(m.client), l.server.plus(m.server), l.exchange.plus(m.exchange)}
}

// peers is what went between the two ends: what their lines carried but the exchange's did not, which both count.
func (l ledger) peers() carried { return l.client.plus(l.server).less(l.exchange).over(2) }

// signaling is what the client's line carried for signals.
func (l ledger) signaling() carried { return l.client.less(l.peers()) }
