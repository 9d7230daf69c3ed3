package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/sleep"
)

// How long a service of a demo is away, seconds.
const (
	usualOutage   = 20
	longestOutage = 60
)

// reviveEvery is how soon a service that did not come up is started again. Another program may have taken its port.
const reviveEvery = time.Second

var (
	outagesMetric = &metric.Def{
		Name: "leeway_demo_outages_total", Help: "Times that the demo page stopped a service of `leeway up` for a while", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "service", Values: []string{"tracker", "seed"}}},
	}
	refusedOutagesMetric = &metric.Def{
		Name: "leeway_demo_refused_outages_total", Help: "Requests to stop a service of `leeway up` that were refused", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: []string{"host", "origin", "machine", "busy", "malformed"}}},
	}
)

// outageMetrics returns what outages count.
func outageMetrics() []*metric.Def { return []*metric.Def{outagesMetric, refusedOutagesMetric} }

// outages stops the tracker or the seed of an up for a while, so that people see at its demo page that the film plays on. Only that page
// may ask, and only in a browser of this machine.
type outages struct {
	slots   map[string]*slot
	hosts   []string // what browsers call the public port
	scheme  string   // of the page
	proxied bool     // clients come through proxies: none is known to be on this machine
	metrics metric.Sink
	log     *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	service string    // guarded by mu: the one that is away; empty: none
	until   time.Time // guarded by mu
}

// newOutages needs an end by close, ahead of that of the services.
func (u *upRun) newOutages(s *services, at place) (*outages, error) {
	hosts, err := at.hosts()
	if err != nil {
		return nil, err
	}
	o := &outages{slots: s.slots, hosts: hosts, scheme: at.scheme(), proxied: u.proxied(), metrics: s.registry, log: u.log}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	u.onClose(o.close)
	return o, nil
}

func (u *upRun) proxied() bool {
	return len(u.config.Tracker.TrustedProxies)+len(u.config.Tracker.ProxyProtocol) > 0
}

func (o *outages) close() {
	o.mu.Lock()
	o.cancel() // nothing begins any more
	o.mu.Unlock()
	o.wg.Wait()
}

// outageState is what the page is told.
type outageState struct {
	May     bool   `json:"may"`     // this page may stop services
	Service string `json:"service"` // that is away; empty: none
	LeftMs  int64  `json:"left_ms"`
}

// serveState answers GET /demo/outage.
func (o *outages) serveState(w http.ResponseWriter, r *http.Request) {
	o.answer(w, http.StatusOK, o.ownMachine(r))
}

func (o *outages) answer(w http.ResponseWriter, code int, may bool) {
	o.mu.Lock()
	state := outageState{May: may, Service: o.service}
	if o.service != "" {
		state.LeftMs = max(0, time.Until(o.until).Milliseconds())
	}
	o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(state) // the client may be gone
}

// serveStop answers POST /demo/outage?service=tracker&seconds=20.
func (o *outages) serveStop(w http.ResponseWriter, r *http.Request) {
	if reason, code, text := o.refusal(r); reason != "" {
		o.metrics.Add(refusedOutagesMetric, 1, reason)
		http.Error(w, text, code)
		return
	}
	service, seconds, err := o.asked(r)
	if err != nil {
		o.metrics.Add(refusedOutagesMetric, 1, "malformed")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	gone, ok := o.begin(service, time.Duration(seconds)*time.Second)
	if !ok {
		o.metrics.Add(refusedOutagesMetric, 1, "busy")
		o.answer(w, http.StatusConflict, true)
		return
	}
	select {
	case <-gone:
		o.answer(w, http.StatusAccepted, true)
	case <-r.Context().Done():
	}
}

// refusal says why a request is none of the demo's page in a browser of this machine. A page of another site has another Origin, and so has a
// page under a name that a stranger points at this machine: the name is not among the hosts (DNS rebinding). A program may write any
// header, so it has to be on this machine, where it could do worse.
func (o *outages) refusal(r *http.Request) (reason string, code int, text string) {
	switch {
	case !slices.Contains(o.hosts, r.Host):
		return "host", http.StatusMisdirectedRequest, fmt.Sprintf("The demo is not called %.100q.", r.Host)
	case r.Header.Get("Origin") != o.scheme+"://"+r.Host:
		return "origin", http.StatusForbidden, "Only the demo's own page may stop its services."
	case !o.ownMachine(r):
		return "machine", http.StatusForbidden, "Only a browser on the machine that runs the demo may stop its services."
	}
	return "", 0, ""
}

// ownMachine says whether the client is on this machine: it comes from a loopback address, or from the address that it asks.
func (o *outages) ownMachine(r *http.Request) bool {
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if o.proxied || r.Header.Get(header) != "" {
			return false // a proxy on this machine speaks for strangers
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	if from.Addr().Unmap().IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	to, err := netip.ParseAddrPort(local.String())
	return err == nil && plainAddr(from.Addr()) == plainAddr(to.Addr())
}

func (o *outages) asked(r *http.Request) (service string, seconds int, err error) {
	query := r.URL.Query()
	service, seconds = query.Get("service"), usualOutage
	if o.slots[service] == nil {
		return "", 0, errors.New("demo: service is tracker or seed")
	}
	if text := query.Get("seconds"); text != "" {
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 1 || seconds > longestOutage {
			return "", 0, fmt.Errorf("demo: seconds are 1 to %d", longestOutage)
		}
	}
	return service, seconds, nil
}

// begin stops a service, unless one is away already. gone is closed when it has ended.
func (o *outages) begin(service string, length time.Duration) (gone chan struct{}, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.service != "" || o.ctx.Err() != nil {
		return nil, false
	}
	o.service, o.until = service, time.Now().Add(length)
	o.metrics.Add(outagesMetric, 1, service)
	o.log.Info("stopped for a while from the demo page", "service", service, "for", length.String())
	gone = make(chan struct{})
	o.wg.Go(func() {
		place := o.slots[service]
		place.end()
		close(gone)
		sleep.For(o.ctx, length)
		for o.ctx.Err() == nil {
			err := place.revive()
			if err == nil {
				break
			}
			o.log.Warn("does not come back yet; tried again in a second", "service", service, "error", err)
			sleep.For(o.ctx, reviveEvery)
		}
		o.mu.Lock()
		o.service = ""
		o.mu.Unlock()
	})
	return gone, true
}
