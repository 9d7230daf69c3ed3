package app

import (
	"context"
	"errors"
	"net"

	"github.com/leeway-video/leeway/internal/cmdline"
)

type seedCmd struct {
	Listen   *string  `help:"UDP address for viewers; the default is :4600." placeholder:"HOST:PORT" key:"seed.listen"`
	Announce []string `help:"Address at which viewers reach this seed, if it is not the machine's own: an address, stun:HOST:PORT to ask your STUN server, node for the Kubernetes node's ExternalIP." placeholder:"ADDRESS" key:"seed.announce"`
	Admin    *string  `help:"Address of metrics, health, purge and switch." placeholder:"HOST:PORT" key:"seed.admin"`
	DataDir  *string  `help:"Folder of signing key and store." placeholder:"DIR" key:"seed.data_dir"`
	Allow    []string `help:"Private addresses of viewers that the seed may send to. A range, an address, or an address and port." placeholder:"PEER" key:"seed.allow"`
	Fleet    *string  `help:"TCP address for the other seeds of the fleet, within the cluster; without it the seed has no fleet." placeholder:"HOST:PORT" key:"seed.fleet.listen"`
	NATS     *string  `name:"nats" help:"NATS server that connects this seed to trackers." placeholder:"URL" key:"nats.url"`
}

// Help is shown below the usage.
func (seedCmd) Help() string {
	return "Sites come from the configuration file, the same for trackers and seeds.\n\nExamples:\n  leeway seed --config leeway.yaml --nats nats://10.0.0.5:4222\n  leeway seed --config leeway.yaml --announce 203.0.113.9\n  leeway seed --config leeway.yaml --announce stun:turn.example.com:3478"
}

// Run serves until ctx ends.
func (c *seedCmd) Run(ctx context.Context, r *run) error {
	config, log, err := r.service("seed", c)
	if err != nil {
		return err
	}
	if config.NATS.URL == "" && config.NATS.Listen == "" {
		return cmdline.Usage(errors.New("seed: no NATS server is named, and a seed meets its trackers there (nats.url, LEEWAY_NATS_URL or --nats; a tracker has one by --nats-listen)"))
	}
	adminPort, err := listenTCP(ctx, "seed --admin", config.Seed.Admin, false)
	if err != nil {
		return err
	}
	group := newServers(log)
	defer group.stop()
	defer adminPort.Close()
	fleet, err := openFleet(ctx, config.Seed.Fleet)
	if err != nil {
		return err
	}
	defer fleet.close()
	door, answer := group.doorway(adminPort)
	s, err := openServices(ctx, config, config.Sites, "seed", log, process{answer, group.fail})
	if err != nil {
		return err
	}
	defer s.stop()
	defer boundGarbage(r.env)()
	s.fleet = fleet
	listen := config.Seed.Listen
	if listen == "" {
		listen = net.JoinHostPort("", seedPort)
	}
	if err := s.startSeed(ctx, seedParts{listen: listen, dataDir: config.Seed.DataDir, failed: group.fail}); err != nil {
		return err
	}
	a, err := s.admin(config.Seed.Admin, config.Seed.DataDir)
	if err != nil {
		return err
	}
	path, read := r.sitesFile(c)
	s.watchSites(path, config.Sites, read)
	door.open(a.handler(nil))
	answer()
	if fleet != nil {
		group.serve("fleet", fleet.listener, fleet.handler)
	}
	log.Info("seed is up", "udp", s.seedAddr, "admin", adminPort.Addr().String(), "sites", s.names)
	return group.wait(ctx)
}
