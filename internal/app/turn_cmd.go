package app

import (
	"context"
	"time"
)

type turnCmd struct {
	Listen    *string        `help:"Address for viewers, UDP and TCP." placeholder:"HOST:PORT" key:"turn.listen"`
	ListenTLS *string        `name:"listen-tls" help:"Address for viewers, TLS; only with a certificate." placeholder:"HOST:PORT" key:"turn.listen_tls"`
	TLSCert   *string        `name:"tls-cert" help:"TLS certificate (PEM), read again when it changes." placeholder:"FILE" key:"turn.cert_file"`
	TLSKey    *string        `name:"tls-key" help:"Key of the certificate (PEM)." placeholder:"FILE" key:"turn.key_file"`
	Admin     *string        `help:"Address of metrics and health." placeholder:"HOST:PORT" key:"turn.admin"`
	Announce  []string       `help:"Addresses at which viewers reach this machine, at most one of each family." placeholder:"ADDRESS" key:"turn.announce"`
	Allow     []string       `help:"Seeds in private ranges that the relay may send to. A range, an address, or an address and port." placeholder:"PEER" key:"turn.allow"`
	Drain     *time.Duration `help:"How long allocations continue after the relay was told to end." placeholder:"TIME" key:"turn.drain"`
}

// Help is shown below the usage.
func (turnCmd) Help() string {
	return `Trackers make the credentials: name the relay and one of its secrets in their tracker.ice_servers.

Examples:
  LEEWAY_TURN_SECRETS=… leeway turn
  LEEWAY_TURN_SECRETS=$new,$old leeway turn --announce 203.0.113.9 --tls-cert cert.pem --tls-key key.pem
  leeway turn --config leeway.yaml --allow 10.0.0.7:4600`
}

// Run serves until ctx ends.
func (c *turnCmd) Run(ctx context.Context, r *run) error {
	config, log, err := r.service("turn", c)
	if err != nil {
		return err
	}
	adminPort, err := listenTCP(ctx, "turn --admin", config.Turn.Admin, false)
	if err != nil {
		return err
	}
	group := newServers(log)
	defer group.stop()
	defer adminPort.Close()
	s, err := startTurn(config.Turn, log)
	if err != nil {
		return err
	}
	defer s.stop()
	defer scaleProcessors(r.env)() // once it has a socket for each processor
	a, err := plainAdmin(config.Admin, config.Turn.Admin, s.registry, s.ready, log)
	if err != nil {
		return err
	}
	group.serve("admin", adminPort, a.handler(nil))
	log.Info("turn is up", "listen", s.server.Addr().String(), "tls", s.tlsAddr(), "admin", adminPort.Addr().String())
	return group.wait(ctx)
}
