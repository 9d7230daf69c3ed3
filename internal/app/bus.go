package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/natsbus"
)

// A service may start before its NATS server, as after a reboot. It asks again for busWait, and then ends, so that its supervisor shows it.
const (
	busWait  = 2 * time.Minute
	busAgain = time.Second
)

// openBus connects to the NATS server of the configuration, or starts one in this process. name is the command, and the inbox of its answers;
// lost is told of a connection that ended for good, or nil.
func openBus(c NATSConfig, name string, sink metric.Sink, log *slog.Logger, lost func(error)) (*natsbus.Bus, error) {
	config := c.bus(name)
	config.Log, config.Metrics, config.Lost = log, sink, lost
	bus, err := natsbus.Open(config)
	if err != nil {
		return nil, err
	}
	if bus.URL() != "" && c.User == "" && !loopback(c.Listen) {
		log.Warn("the embedded NATS server asks for no password: keep nats.listen on a network of your own", "listen", c.Listen)
	}
	return bus, nil
}

// awaitBus is openBus for a service that starts: it waits for a server that does not answer.
func (s *services) awaitBus(ctx context.Context, name string, p process) (*natsbus.Bus, error) {
	ctx, cancel := context.WithTimeout(ctx, busWait)
	defer cancel()
	again := time.NewTicker(busAgain)
	defer again.Stop()
	for waited := false; ; {
		bus, err := openBus(s.config.NATS, name, s.registry, s.log, p.failed)
		if err == nil && waited {
			s.log.Info("NATS answers")
		}
		if !errors.Is(err, natsbus.ErrAway) {
			return bus, err
		}
		if !waited {
			waited = true
			s.log.Warn("waiting for NATS, not ready until it answers", "error", err, "at_most", busWait)
			p.waiting()
		}
		select {
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return nil, ctx.Err()
			}
			return nil, err
		case <-again.C:
		}
	}
}

// bus is how a service joins it.
func (c NATSConfig) bus(name string) natsbus.Config {
	return natsbus.Config{
		URL: c.URL, Listen: c.Listen, User: c.User, Password: c.Password, CredentialsFile: c.CredentialsFile, NKeyFile: c.NKeyFile,
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile, Name: "leeway-" + name, Inbox: name,
	}
}

// doorway is the admin port of a service that may still have to wait: alive, and not ready before it is open.
type doorway struct{ inside atomic.Pointer[http.Handler] }

func (d *doorway) open(h http.Handler) { d.inside.Store(&h) }

// ServeHTTP implements http.Handler.
func (d *doorway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch h := d.inside.Load(); {
	case h != nil:
		(*h).ServeHTTP(w, r)
	case r.URL.Path == "/healthz":
		_, _ = io.WriteString(w, "ok\n")
	default:
		http.Error(w, "not ready: waiting for NATS", http.StatusServiceUnavailable)
	}
}
