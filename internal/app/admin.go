package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// maxPurge bounds the body of POST /purge, in bytes.
const maxPurge = 8 << 10

// purgeRequest is the body of POST /purge, purgeAnswer what comes back.
type purgeRequest struct {
	Site   string `json:"site"`
	Prefix string `json:"prefix"` // of segments' names; "/" is the whole site
}

type purgeAnswer struct {
	Site        string `json:"site"`
	Prefix      string `json:"prefix"`
	MinIssuedAt int64  `json:"min_issued_at"` // ms since the Unix epoch
}

// admin is what the admin port needs of a running process.
type admin struct {
	metrics http.Handler
	ready   func() error                            // nil while work can be taken
	send    func(subject string, data []byte) error // over the bus, confirmed; nil: no purging here
	sites   []string                                // names that may be purged
	now     func() time.Time
	log     *slog.Logger
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
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// purge withdraws what was certified before now below a prefix, by a revocation on the bus. It insists on JSON: a page
// in a browser can post a form to any address, but not this type without being asked first.
func (a *admin) purge(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "Send the purge as application/json.", http.StatusUnsupportedMediaType)
		return
	}
	if a.send == nil {
		http.Error(w, "Nothing to purge from here: no bus.", http.StatusNotImplemented)
		return
	}
	var request purgeRequest
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPurge))
	in.DisallowUnknownFields()
	if err := in.Decode(&request); err != nil {
		http.Error(w, `Not a purge: send {"site":"demo","prefix":"/media/bbb/"}.`, http.StatusBadRequest)
		return
	}
	if text := purgeProblem(request, a.sites); text != "" {
		http.Error(w, text, http.StatusBadRequest)
		return
	}
	answer := purgeAnswer{request.Site, request.Prefix, a.now().UnixMilli()}
	message, err := bus.Encode(&bus.RevokeMessage{Revocations: []signal.Revocation{
		{Site: answer.Site, Prefix: answer.Prefix, MinIssuedAt: answer.MinIssuedAt},
	}})
	if err == nil {
		err = a.send(bus.SubjectRevoke, message)
	}
	if err != nil {
		a.log.Error("purge failed", "site", request.Site, "error", err)
		http.Error(w, "The purge could not be sent: the bus is down. Try again.", http.StatusServiceUnavailable)
		return
	}
	a.log.Info("purged", "site", answer.Site, "prefix", answer.Prefix)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone; the purge is out
}

func purgeProblem(p purgeRequest, sites []string) string {
	known := false
	for _, s := range sites {
		known = known || s == p.Site
	}
	switch {
	case !known:
		return fmt.Sprintf("No site %q here%s.", p.Site, strings.TrimSuffix(suggestion(p.Site, sites), "?"))
	case !strings.HasPrefix(p.Prefix, "/"):
		return fmt.Sprintf("The prefix %q does not begin with a slash; / is the whole site.", p.Prefix)
	}
	return ""
}

type purgeCmd struct {
	Site  string `arg:"" help:"Site's name."`
	Path  string `arg:"" help:"What segments' names begin with; / is the whole site."`
	Admin string `help:"Admin address of a tracker, or of leeway up." default:"127.0.0.1:9464" placeholder:"HOST:PORT"`
}

// Help is shown below the usage.
func (purgeCmd) Help() string {
	return "Viewers drop what they hold below the path, seeds fetch and certify it anew.\n\nExamples:\n  leeway purge demo /media/bbb/\n  leeway purge demo / --admin 10.0.0.5:9464"
}

// Run sends the purge to an admin port.
func (c purgeCmd) Run(ctx context.Context, r *run) error {
	body, err := json.Marshal(purgeRequest{c.Site, c.Path})
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Admin+"/purge", strings.NewReader(string(body)))
	if err != nil {
		return &usageError{fmt.Errorf("purge: %q is no address (write HOST:PORT)", c.Admin)}
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("purge: ask %s: %w (is Leeway running there? --admin says where)", c.Admin, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxPurge))
	if err != nil {
		return fmt.Errorf("purge: read the answer of %s: %w", c.Admin, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("purge: %s refused: %s", c.Admin, strings.TrimSpace(string(text)))
	}
	_, err = fmt.Fprintf(r.env.Stdout, "purged %s %s\n", c.Site, c.Path)
	return err
}
