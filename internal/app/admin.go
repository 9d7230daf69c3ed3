package app

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// admin is what the admin port needs of a running process.
type admin struct {
	gate     *adminGate
	metrics  http.Handler
	ready    func() error                            // nil while work can be taken
	send     func(subject string, data []byte) error // over the bus, confirmed; nil: no purging here
	switched func(site string, off bool, until time.Time) []bus.Switch
	sites    []*site.Site              // that may be purged and switched
	delivery func() []tracker.Delivery // nil: no tracker is here
	now      func() time.Time
	log      *slog.Logger
}

// plainAdmin is the admin port of a process without a bus: nothing is purged or switched there.
func plainAdmin(c AdminConfig, listen string, registry *promreg.Registry, ready func() error, log *slog.Logger) (*admin, error) {
	g, err := openAdminGate(c, "", listen, registry, log)
	if err != nil {
		return nil, err
	}
	return &admin{gate: g, metrics: registry.Handler(), ready: ready, now: time.Now, log: log}, nil
}

// handler routes the admin port, and what else there is to do at it, by pattern.
func (a *admin) handler(more map[string]http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	if a.delivery != nil {
		mux.HandleFunc("GET "+deliveryPath, a.serveDelivery)
	}
	keyed := map[string]http.HandlerFunc{
		"POST /purge":          a.purge,
		"POST /switch":         a.change,
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/cmdline": pprof.Cmdline,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
	}
	maps.Copy(keyed, more)
	for pattern, h := range keyed {
		mux.HandleFunc(pattern, a.gate.keyed(h))
	}
	return a.gate.named(mux)
}
