package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/leeway-video/leeway/internal/webdist"
)

type trackerCmd struct {
	Listen     *string  `help:"Address of WebSocket and script." placeholder:"HOST:PORT" key:"tracker.listen"`
	TLSCert    *string  `name:"tls-cert" help:"TLS certificate of the listen address (PEM), read again when it changes." placeholder:"FILE" key:"tracker.cert_file"`
	TLSKey     *string  `name:"tls-key" help:"Key of the certificate (PEM)." placeholder:"FILE" key:"tracker.key_file"`
	Admin      *string  `help:"Address of metrics, health, purge and switch." placeholder:"HOST:PORT" key:"tracker.admin"`
	DataDir    *string  `help:"Folder of the secret, if none is configured." placeholder:"DIR" key:"tracker.data_dir"`
	WebTorrent []string `name:"webtorrent" help:"Offer the WebTorrent protocol on /announce, for these info_hashes (hex)." placeholder:"HASH" key:"tracker.webtorrent.info_hashes"`
	NATS       *string  `name:"nats" help:"NATS server that connects this tracker to others; by default one inside this process." placeholder:"URL" key:"nats.url"`
	NATSListen *string  `name:"nats-listen" help:"Address on which the process's own NATS server takes seeds and trackers." placeholder:"HOST:PORT" key:"nats.listen"`
}

// Help is shown below the usage.
func (trackerCmd) Help() string {
	return "Sites come from the configuration file, the same for trackers and seeds. All trackers of a cluster share one tracker.secret.\n\nExamples:\n  leeway tracker --config leeway.yaml --nats-listen 127.0.0.1:4222\n  leeway tracker --config leeway.yaml --listen :443 --tls-cert fullchain.pem --tls-key privkey.pem\n  LEEWAY_TRACKER_SECRET=… leeway tracker --config leeway.yaml --nats nats://10.0.0.5:4222"
}

// Run serves until ctx ends.
func (c *trackerCmd) Run(ctx context.Context, r *run) error {
	config, log, err := r.service("tracker", c)
	if err != nil {
		return err
	}
	bundle, err := webdist.Load()
	if err != nil {
		return fmt.Errorf("tracker: read the embedded bundle: %w", err)
	}
	if !bundle.Built {
		log.Warn("this binary carries no browser bundle: /leeway.js is a placeholder (run make build)")
	}
	certificate, err := publicPair(config.Tracker.CertFile, config.Tracker.KeyFile, log)
	if err != nil {
		return err
	}
	public, err := listenTCP(ctx, "tracker --listen", config.Tracker.Listen, false)
	if err != nil {
		return err
	}
	defer public.Close()
	adminPort, err := listenTCP(ctx, "tracker --admin", config.Tracker.Admin, false)
	if err != nil {
		return err
	}
	defer adminPort.Close()
	group := newServers(log)
	defer group.stop()
	door, answer := group.doorway(adminPort)
	s, err := openServices(ctx, config, config.Sites, "tracker", log, process{answer, group.fail})
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.startTracker(config.Tracker.DataDir); err != nil {
		return err
	}
	s.certified(certificate)
	a, err := s.admin(config.Tracker.Admin, config.Tracker.DataDir)
	if err != nil {
		return err
	}
	path, read := r.sitesFile(c)
	s.watchSites(path, config.Sites, read)
	mux, err := publicMux(bundle, s.tracker, http.HandlerFunc(trackerPage))
	if err != nil {
		return err
	}
	group.serveTLS("public", s.tracker.admission(public), mux, nil, certificate)
	door.open(a.handler(nil))
	answer()
	checkFiles(log, config.Tracker.MaxSessions)
	log.Info("tracker is up", "listen", public.Addr().String(), "admin", adminPort.Addr().String(), "sites", s.names)
	return group.wait(ctx)
}

// spareFiles are for what is no session: handshakes, scripts, the bus, logs.
const spareFiles = 100

// checkFiles says when the system allows fewer sessions than the configuration does.
func checkFiles(log *slog.Logger, sessions int) {
	if files, ok := maxFiles(); ok && sessions > 0 && files < uint64(sessions)+spareFiles {
		log.Warn("more sessions are configured than this process may have files", "sessions", sessions, "files", files,
			"hint", "raise the limit (ulimit -n, LimitNOFILE=), or lower tracker.max_sessions")
	}
}
