package app

import (
	"cmp"
	"context"
	"errors"
)

type probeCmd struct {
	Run   probeRunCmd   `cmd:"" help:"Check the line to a probe server."`
	Serve probeServeCmd `cmd:"" help:"Serve tests: ndt7, HTTP, and data channels."`
}

type probeServeCmd struct {
	Listen   *string  `help:"Address of the tests (default :8090)." placeholder:"HOST:PORT" key:"probe.listen"`
	UDP      *string  `name:"udp" help:"UDP address of data channels (default: port 4601 on the host of --listen)." placeholder:"HOST:PORT" key:"probe.udp"`
	Announce []string `help:"Address at which clients reach the UDP port, if it is not the one that they reach by TCP." placeholder:"ADDRESS" key:"probe.announce"`
	TLSCert  *string  `name:"tls-cert" help:"TLS certificate of the listen address (PEM), read again when it changes." placeholder:"FILE" key:"probe.cert_file"`
	TLSKey   *string  `name:"tls-key" help:"Key of the certificate (PEM)." placeholder:"FILE" key:"probe.key_file"`
	Admin    *string  `help:"Address of metrics and health." placeholder:"HOST:PORT" key:"probe.admin"`
	Open     *bool    `help:"Let any client test. Without it a client needs a join token of a site." key:"probe.open"`
}

// Help is shown below the usage.
func (probeServeCmd) Help() string {
	return `Clients must reach it directly: behind a proxy that ends their TCP connections it would measure the proxy's. Any client of ndt7
works. With sites in the configuration that take tokens, a client passes a join token as access_token.

Examples:
  leeway probe serve --open
  leeway probe serve --listen 127.0.0.1:8090
  leeway probe serve --config leeway.yaml --listen :443 --tls-cert fullchain.pem --tls-key privkey.pem`
}

// Run serves until ctx ends.
func (c *probeServeCmd) Run(ctx context.Context, r *run) error {
	config, log, err := r.service("probe", c)
	if err != nil {
		return err
	}
	p := config.Probe
	p.Listen = cmp.Or(p.Listen, ":"+probePort)
	sites, err := openSites(config.Sites)
	if err != nil {
		return err
	}
	authorize, err := probeAccess(p, sites, log)
	if err != nil {
		return err
	}
	registry, err := newRegistry(log, nil, counts["probe"]...)
	if err != nil {
		return err
	}
	adminPort, err := listenTCP(ctx, "probe serve --admin", p.Admin, false)
	if err != nil {
		return err
	}
	group := newServers(log)
	defer group.stop()
	defer adminPort.Close()
	s, err := startProbe(ctx, probeParts{config: p, authorize: authorize, sink: registry, log: log, group: group})
	if err != nil {
		return err
	}
	defer s.drain()
	s.at.certificate.count(registry)
	ready := func() error { return errors.Join(s.server.Ready(), s.at.certificate.ready()) }
	a, err := plainAdmin(config.Admin, p.Admin, registry, ready, log)
	if err != nil {
		return err
	}
	group.serve("admin", adminPort, a.handler(nil))
	log.Info("probe is up", "listen", s.at.addr.String(), "udp", s.udp.String(), "open", authorize == nil, "admin", adminPort.Addr().String())
	return group.wait(ctx)
}
