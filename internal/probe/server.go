package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

const (
	maxQuery    = 4096     // bytes of a query string
	maxNetworks = 1 << 16  // that are remembered for their bytes; those beyond share
	startCost   = 64 << 10 // of a test, with its request
	smallCost   = 1 << 10  // of any request
)

var errDraining = errors.New("probe: draining")

// Server answers tests. Its methods may be called from anywhere at once.
type Server struct {
	cfg     Config
	payload []byte // random; never changed
	began   time.Time
	mux     *http.ServeMux
	ended   sync.WaitGroup // of tests

	mu        sync.Mutex
	draining  bool                         // guarded by mu
	running   map[*test]struct{}           // guarded by mu
	addresses map[netip.Prefix]int         // guarded by mu: tests, by network
	bytes     access.Buckets[netip.Prefix] // guarded by mu: what a network has used of a day's bytes
	halfOpen  access.Shares                // guarded by mu: connections of quality tests that are not open yet
	recorded  access.Shares                // guarded by mu: messages that records of streams have room for
	http2     access.Shares                // guarded by mu: connections of HTTP/2
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, payload: make([]byte, 2*largestMessage), mux: http.NewServeMux(),
		running: map[*test]struct{}{}, addresses: map[netip.Prefix]int{}, began: time.Now(),
		http2:    access.Shares{Most: maxHTTP2, One: maxHTTP2PerAddress},
		halfOpen: access.Shares{Most: maxHalfOpen, One: maxHalfOpenOne},
		recorded: access.Shares{Most: maxRecorded, One: maxRecordedOne},
		bytes: access.Buckets[netip.Prefix]{
			Rate: float64(cfg.DailyBytes) / (24 * time.Hour).Seconds(), Burst: float64(cfg.DailyBytes), Most: maxNetworks,
		},
	}
	if _, err := rand.Read(s.payload); err != nil {
		return nil, fmt.Errorf("probe: random bytes: %w", err)
	}
	s.mux.HandleFunc("GET /ndt/v7/download", s.ndt7(ndt7Download, (*test).download))
	s.mux.HandleFunc("GET /ndt/v7/upload", s.ndt7(ndt7Upload, (*test).upload))
	s.mux.HandleFunc("GET /probe/v1/download", s.serveDownload)
	s.mux.HandleFunc("POST /probe/v1/upload", s.serveUpload)
	s.mux.HandleFunc("GET /probe/v1/small", s.serveSmall)
	s.mux.HandleFunc("GET /probe/v1/info", s.serveInfo)
	s.mux.HandleFunc("POST /probe/v1/quality", s.serveQuality)
	s.mux.HandleFunc("GET /.well-known/nq", s.serveNQ)
	s.mux.HandleFunc("OPTIONS /probe/v1/", servePreflight)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	h.Set("Timing-Allow-Origin", "*")
	h.Set("Cache-Control", "no-store")
	if _, ok := s.pays(w, r, smallCost); ok {
		s.mux.ServeHTTP(w, r)
	}
}

// Page has a page be paid for as two tests are, which is more than it has: else it would be what a client has of this server without an end.
func Page(s *Server, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.pays(w, r, 2*startCost); ok {
			page.ServeHTTP(w, r)
		}
	})
}

// random is n bytes to follow those that were sent. They repeat after 1 MiB only, so that nothing on the way can make them smaller.
func (s *Server) random(sent, n int64) []byte {
	from := sent % largestMessage
	return s.payload[from : from+n]
}

// Refused counts what was refused before its request was read.
func (s *Server) Refused(reason string) { s.cfg.Metrics.Add(mRefused, 1, reason) }

// Ready says why no test is taken, or nil.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return errDraining
	case len(s.running) >= s.cfg.MaxTests:
		return errors.New("probe: as many tests run as may")
	}
	return nil
}

// Running is how many tests run.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Drain takes no new tests, lets those that run end until ctx does, and cuts the rest. No test runs when it returns.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for t := range s.running {
		t.cut.Store(true)
		t.stop()
	}
	s.mu.Unlock()
	<-done
}

// refusal is the answer to a request that is not served.
type refusal struct {
	reason string
	status int
	text   string
	retry  string // seconds; empty: it is of no use
}

func (s *Server) refuse(w http.ResponseWriter, r refusal) {
	s.cfg.Metrics.Add(mRefused, 1, r.reason)
	if r.retry != "" {
		w.Header().Set("Retry-After", r.retry)
	}
	http.Error(w, r.text, r.status)
}

// pays charges a request to its address, or answers it and returns false.
func (s *Server) pays(w http.ResponseWriter, r *http.Request, cost int64) (client netip.Addr, ok bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, "The address of this connection is not known.", ""})
		return client, false
	}
	client = at.Addr()
	if !s.charge(access.Network(client), cost) {
		s.refuse(w, refusal{refusedBytes, http.StatusTooManyRequests, "This address has used up the bytes that it may have in a day.", "3600"})
		return client, false
	}
	return client, true
}

// admit answers a request that may not have what it asks for, and returns false. more is charged to its address beside what any request costs.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, more int64) (client netip.Addr, ok bool) {
	if client, ok = s.pays(w, r, more); !ok {
		return client, false
	}
	if err := s.cfg.authorized(r); err != nil { // a signature is checked for what is paid for
		s.refuse(w, *err)
		return client, false
	}
	return client, true
}

// authorized says why a request has no good token.
func (c *Config) authorized(r *http.Request) *refusal {
	if c.Authorize == nil {
		return nil
	}
	token := r.URL.Query().Get("access_token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = bearer
	}
	if token == "" {
		return &refusal{refusedToken, http.StatusUnauthorized, "Tests need a token here: access_token=… or Authorization: Bearer.", ""}
	}
	if err := c.Authorize(token); err != nil {
		return &refusal{refusedToken, http.StatusForbidden, "The token is not good for a test: " + err.Error(), ""}
	}
	return nil
}

// charge takes bytes of a network's budget; false says that it has not so many.
func (s *Server) charge(network netip.Prefix, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.Take(network, float64(n), time.Now())
}

// begin gives a test its place. Its end gives the place back.
func (s *Server) begin(kind string, client netip.Addr) (*test, *refusal) {
	t := &test{server: s, kind: kind, network: access.Network(client), start: time.Now(), stop: func() {}}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return nil, &refusal{refusedDraining, http.StatusServiceUnavailable, "This server ends. Another one may answer.", "5"}
	case len(s.running) >= s.cfg.MaxTests:
		return nil, &refusal{refusedTotal, http.StatusServiceUnavailable, "As many tests run as this server takes; come back in a moment.", "15"}
	case s.addresses[t.network] >= s.cfg.MaxPerAddress:
		return nil, &refusal{refusedAddress, http.StatusTooManyRequests, "As many tests of this address run as may; come back when they have ended.", "15"}
	}
	s.running[t] = struct{}{}
	s.addresses[t.network]++
	s.ended.Add(1)
	s.cfg.Metrics.Add(mRunning, 1, kind)
	return t, nil
}
