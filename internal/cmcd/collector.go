// Package cmcd collects what players report in event mode of CMCD (spec/cmcd.md): it counts a few keys and keeps nothing else.
package cmcd

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/site"
	wire "github.com/leeway-video/leeway/internal/wire/cmcd"
)

// Allowances (spec/cmcd.md, "Request").
const (
	requestCost  = 1024      // bytes, of each request whatever comes of it
	addressRate  = 64 << 10  // bytes a second
	addressBurst = 1 << 20   // bytes at once
	siteRate     = 2 << 20   // bytes a second
	siteBurst    = 8 << 20   // bytes at once
	maxAddresses = 20_000    // known at a time; further ones share one allowance
	maxStartMS   = 600 * 1e3 // a start beyond it is one of a page that was left alone
)

// patience is how long a report may take to come.
const patience = 5 * time.Second

// Config says whose reports are taken.
type Config struct {
	Sites   []*site.Site
	Client  func(*http.Request) netip.Addr // the address of the client that asks
	Metrics metric.Sink
	Now     func() time.Time // nil: time.Now
}

// Collector is the handler of /cmcd.
type Collector struct {
	cfg Config
	on  bool // for a site

	mu        sync.Mutex
	addresses access.Buckets[netip.Prefix] // guarded by mu
	sites     access.Buckets[string]       // guarded by mu, by name
}

// New makes a collector.
func New(c Config) *Collector {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Collector{
		cfg: c, on: slices.ContainsFunc(c.Sites, takes),
		addresses: access.Buckets[netip.Prefix]{Rate: addressRate, Burst: addressBurst, Most: maxAddresses},
		sites:     access.Buckets[string]{Rate: siteRate, Burst: siteBurst, Most: len(c.Sites)},
	}
}

// Takers names the sites that ask for reports.
func Takers(sites []*site.Site) []string {
	var names []string
	for _, s := range sites {
		if takes(s) {
			names = append(names, s.Name())
		}
	}
	return names
}

func takes(s *site.Site) bool { return s.Config().CMCD }

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.on {
		http.Error(w, "No site of this tracker collects reports of players (cmcd).", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodOptions {
		w.Header().Set("Connection", "close") // a player that reports seldom would hold a socket; nor is a body read that is refused
	}
	// Writers of tests have no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
	from := access.Network(c.cfg.Client(r))
	if !c.pay(from, "", requestCost) {
		c.refuse(w, refusedAddress, http.StatusTooManyRequests, "Too many reports of this address.")
		return
	}
	origin := r.Header.Get("Origin")
	of := c.site(origin, r.URL.Query().Get("site"))
	if of == nil {
		c.refuse(w, refusedOrigin, http.StatusForbidden, "Pages of this origin do not belong to the site. Add the origin to page_origins.")
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
	}
	if !takes(of) {
		c.refuse(w, refusedOff, http.StatusGone, "The site collects no reports of players (cmcd).")
		return
	}
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", http.MethodPost)
		h.Set("Access-Control-Allow-Headers", "Content-Type")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	c.take(w, r, from, of.Name())
}

// site is the one that a page of an origin reports for; nil: none, or not the one that is named.
func (c *Collector) site(origin, name string) *site.Site {
	for _, s := range c.cfg.Sites {
		if (name == "" || s.Name() == name) && s.AllowsOrigin(origin) {
			return s
		}
	}
	return nil
}

// take reads a report and counts it.
func (c *Collector) take(w http.ResponseWriter, r *http.Request, from netip.Prefix, of string) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST, OPTIONS")
		c.refuse(w, refusedMethod, http.StatusMethodNotAllowed, "Reports are posted.")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != wire.MediaType {
		c.refuse(w, refusedType, http.StatusUnsupportedMediaType, "A report is "+wire.MediaType+".")
		return
	}
	length := r.ContentLength
	if length > wire.MaxReport {
		c.refuse(w, refusedSize, http.StatusRequestEntityTooLarge, "The report is too long: send fewer events at a time.")
		return
	}
	if length < 0 {
		length = wire.MaxReport
	}
	if more := max(0, length-requestCost); more > 0 && !c.pay(from, "", float64(more)) {
		c.refuse(w, refusedAddress, http.StatusTooManyRequests, "Too many reports of this address.")
		return
	}
	if !c.pay(netip.Prefix{}, of, float64(max(requestCost, length))) {
		c.refuse(w, refusedSite, http.StatusTooManyRequests, "Too many reports of this site.")
		return
	}
	report, reason, status := read(w, r)
	if reason != "" {
		c.refuse(w, reason, status, "The report did not come.")
		return
	}
	events, malformed := wire.Parse(report)
	c.cfg.Metrics.Add(mRefused, float64(malformed), refusedMalformed)
	for _, e := range events {
		c.count(of, e)
	}
	if len(events) == 0 {
		http.Error(w, "The report has no event that is well-formed (CTA-5004-B, event mode).", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// read is a report's bytes, or why they are not there.
func read(w http.ResponseWriter, r *http.Request) (report []byte, reason string, status int) {
	report, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxReport))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, refusedSize, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, refusedSlow, http.StatusRequestTimeout
	}
	return report, "", 0
}

// count counts what one event says.
func (c *Collector) count(of string, e wire.Event) {
	m := c.cfg.Metrics
	m.Add(mEvents, 1, of, e.Type)
	if e.Type == wire.PlayState && e.State != "" {
		m.Add(mStates, 1, of, e.State)
	}
	if e.Type == wire.ResponseReceived && e.Status >= 0 {
		m.Add(mResponses, 1, of, class(e.Status))
	}
	if e.StartMS >= 0 && e.StartMS <= maxStartMS {
		m.Observe(mStartup, float64(e.StartMS)/1000, of)
	}
}

// class is the class of a status.
func class(status int64) string {
	if hundred := status / 100; hundred >= 2 && hundred <= 5 {
		return classes[hundred-2]
	}
	return classes[len(classes)-1]
}

// pay takes bytes of the allowance of a site, or without one of an address; false says that they are spent.
func (c *Collector) pay(from netip.Prefix, of string, bytes float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of != "" {
		return c.sites.Take(of, bytes, c.cfg.Now())
	}
	return c.addresses.Take(from, bytes, c.cfg.Now())
}

// refuse answers with an error and counts its reason.
func (c *Collector) refuse(w http.ResponseWriter, reason string, status int, text string) {
	c.cfg.Metrics.Add(mRefused, 1, reason)
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	http.Error(w, text, status)
}
