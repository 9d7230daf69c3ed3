package app

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
)

// admin is what the admin port needs of a running process.
type admin struct {
	metrics  http.Handler
	ready    func() error                            // nil while work can be taken
	send     func(subject string, data []byte) error // over the bus, confirmed; nil: no purging here
	switched func(site string, off bool, until time.Time) []bus.Switch
	sites    []string // names that may be purged and switched
	now      func() time.Time
	log      *slog.Logger
}

// mux routes the admin port. It has no password: it belongs on loopback or on a network of the operator's own.
func (a *admin) mux() *http.ServeMux {
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
	mux.HandleFunc("POST /purge", a.purge)
	mux.HandleFunc("POST /switch", a.change)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
