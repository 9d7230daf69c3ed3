package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/webdist"
	"github.com/leeway-video/leeway/internal/wsconn"
)

type originCmd struct {
	Listen       *string `help:"Address of page and film." placeholder:"HOST:PORT" key:"origin.listen"`
	SeedListen   *string `help:"Another address of the film, for seeds, so that metrics count them apart from viewers." placeholder:"HOST:PORT" key:"origin.seed_listen"`
	TLSCert      *string `name:"tls-cert" help:"TLS certificate of the listen address (PEM), read again when it changes." placeholder:"FILE" key:"origin.cert_file"`
	TLSKey       *string `name:"tls-key" help:"Key of the certificate (PEM)." placeholder:"FILE" key:"origin.key_file"`
	Admin        *string `help:"Address of metrics and health." placeholder:"HOST:PORT" key:"origin.admin"`
	pictureFlags `set:"section=origin"`
	PackagerKey  *string `help:"Key that signs the digests of a live stream, of the one site that is configured; made when it is missing." placeholder:"FILE" key:"origin.packager_key"`
	Tracker      *string `help:"Tracker that the page's script connects to." placeholder:"URL" key:"origin.tracker"`
}

// Help is shown below the usage.
func (originCmd) Help() string {
	return `A site has a web server of its own; this one is for trying a cluster.

Examples:
  leeway origin --tracker ws://127.0.0.1:8080
  leeway origin --replay --segment 4s --tracker ws://127.0.0.1:8080
  leeway origin --listen :8443 --tls-cert cert.pem --tls-key key.pem --media film/ --tracker wss://tracker.example.com`
}

// Run serves until ctx ends.
func (c *originCmd) Run(ctx context.Context, r *run) error {
	config, log, err := r.service("origin", c)
	if err != nil {
		return err
	}
	o := config.Origin
	registry, err := newRegistry(log, nil, counts["origin"]...)
	if err != nil {
		return err
	}
	source, film, err := o.open(ctx, r.env, registry)
	if err != nil {
		return err
	}
	defer source.Close()
	group := newServers(log)
	defer group.stop()
	if o.streams() {
		stop, err := streamAlone(ctx, config, source, film, group, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := serveOrigin(ctx, config, source, registry, group, log); err != nil {
		return err
	}
	return group.wait(ctx)
}

// serveOrigin opens the ports of an origin.
func serveOrigin(ctx context.Context, config *Config, source *origin.Server, registry *promreg.Registry, group *servers, log *slog.Logger) error {
	o := config.Origin
	page, err := originPage(o, source)
	if err != nil {
		return err
	}
	certificate, err := publicPair(o.CertFile, o.KeyFile, log)
	if err != nil {
		return err
	}
	certificate.count(registry)
	public, err := listenTCP(ctx, "origin --listen", o.Listen, false)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle(source.Prefix, source.Handler(origin.Viewer))
	mux.HandleFunc("GET /demo/ledger", source.ServeLedger)
	group.serveTLS("origin", wsconn.NewAdmission(public, wsconn.AdmissionConfig{}), mux, nil, certificate)
	if o.SeedListen != "" {
		seeds, err := listenTCP(ctx, "origin --seed-listen", o.SeedListen, false)
		if err != nil {
			return err
		}
		group.serve("seeds", seeds, source.Handler(origin.Seed))
	}
	adminPort, err := listenTCP(ctx, "origin --admin", o.Admin, false)
	if err != nil {
		return err
	}
	a, err := plainAdmin(config.Admin, o.Admin, registry, certificate.ready, log)
	if err != nil {
		return err
	}
	group.serve("admin", adminPort, a.handler(map[string]http.HandlerFunc{"POST /origin/fault": source.ServeFault, "GET /origin/digests": source.ServeDigests}))
	log.Info("origin is up", "page", place{public.Addr(), certificate}.url(), "film", source.Prefix, "admin", adminPort.Addr().String())
	return nil
}

// streamAlone starts the live stream of an origin that has no tracker in its process.
func streamAlone(ctx context.Context, config *Config, source *origin.Server, film string, group *servers, log *slog.Logger) (stop func(), err error) {
	c := channel{picture: config.Origin.PictureConfig, replayed: film, origin: source, log: log, site: site.Config{Name: "demo", Hosts: []string{"localhost"}}}
	file := config.Origin.PackagerKey
	switch {
	case file == "": // signed with a key that no tracker knows: viewers take no notice
		made, err := certificate.NewKey()
		if err != nil {
			return nil, err
		}
		c.key, err = certificate.ParseKey(made)
		if err != nil {
			return nil, err
		}
	case len(config.Sites) != 1:
		return nil, cmdline.Usage(fmt.Errorf("origin: --packager-key signs for the site that is configured, and %d are", len(config.Sites)))
	default:
		c.site = config.Sites[0]
		if c.key, _, _, err = packagerKey(file); err != nil {
			return nil, fmt.Errorf("live: %w", err)
		}
	}
	return c.start(ctx, group)
}

// originPage is the demo's page, told of the film and the tracker.
func originPage(o OriginConfig, source *origin.Server) (http.Handler, error) {
	bundle, err := webdist.Load()
	if err != nil {
		return nil, fmt.Errorf("origin: read the embedded bundle: %w", err)
	}
	page, err := bundle.Page(o.shown(o.Tracker, source))
	if err != nil {
		return nil, fmt.Errorf("origin: read the embedded demo page: %w", err)
	}
	return page, nil
}
