package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
)

// startProbe adds a probe server beside the public port. It is open to those that the public port is open to.
func (u *upRun) startProbe(ctx context.Context, services *services, public place, group *servers) (*probeService, error) {
	c := u.config.Probe
	if c.Listen == "" {
		host, _, err := net.SplitHostPort(public.addr.String())
		if err != nil {
			return nil, fmt.Errorf("up: read the public address: %w", err)
		}
		c.Listen = net.JoinHostPort(host, probePort)
	}
	if c.UDP == "" {
		c.UDP = net.JoinHostPort("", probeUDPPort) // as the seed: Firefox makes no pair with a loopback address
	}
	if len(c.ICEServers) == 0 {
		c.ICEServers = u.config.Tracker.ICEServers
	}
	c.Open = c.Open || u.config.Up.Open
	c.CertFile, c.KeyFile = cmp.Or(c.CertFile, u.config.Tracker.CertFile), cmp.Or(c.KeyFile, u.config.Tracker.KeyFile)
	authorize, err := probeAccess(c, services.sites, u.log)
	if err != nil {
		return nil, err
	}
	s, err := startProbe(ctx, probeParts{config: c, authorize: authorize, next: true, sink: services.registry, log: u.log, group: group})
	if err != nil {
		return nil, err
	}
	u.onClose(s.drain)
	return s, nil
}
