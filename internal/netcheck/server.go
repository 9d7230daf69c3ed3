package netcheck

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	subprotocol = "net.measurementlab.ndt.v7"
	maxMessage  = 16 << 20
	maxAnswer   = 64 << 10
)

// server is the one that is measured against. All of a check goes to the first of its addresses that answers.
type server struct {
	base  *url.URL
	token string
	tls   *tls.Config
	http  *http.Client

	stun     []string // HOST:PORT of STUN servers; known after info
	givesWay bool     // it has loads that give way; known after info

	mu     sync.Mutex
	remote string     // guarded by mu: the address
	local  netip.Addr // guarded by mu: this side's
}

func newServer(base *url.URL, token string, config *tls.Config) *server {
	s := &server{base: base, token: token, tls: config}
	s.http = &http.Client{
		Transport:     &http.Transport{DialContext: s.dial, TLSClientConfig: config, TLSHandshakeTimeout: 2 * patience, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

func (s *server) close() { s.http.CloseIdleConnections() }

// dial connects to the server.
func (s *server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	if s.remote != "" {
		address = s.remote
	}
	s.mu.Unlock()
	conn, err := (&net.Dialer{Timeout: 2 * patience}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remote == "" {
		s.remote = conn.RemoteAddr().String()
		if at, err := netip.ParseAddrPort(conn.LocalAddr().String()); err == nil {
			s.local = at.Addr().Unmap()
		}
	}
	return conn, nil
}

// here is this side's address.
func (s *server) here() netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local
}

func (s *server) url(path string, query ...string) string {
	u := url.URL{Scheme: s.base.Scheme, Host: s.base.Host, Path: path}
	q := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func (s *server) request(ctx context.Context, method, address string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	return r, nil
}

// do makes a request; an answer other than 200 is an error.
func (s *server) do(r *http.Request) (*http.Response, error) { return doBy(s.http, r) }

// doBy is do with a client of one's own.
func doBy(client *http.Client, r *http.Request) (*http.Response, error) {
	response, err := client.Do(r)
	if err != nil {
		if cause := context.Cause(r.Context()); cause != nil {
			return nil, cause
		}
		if bare := errors.Unwrap(err); bare != nil {
			return nil, bare // without the URL, which is known
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
	_ = response.Body.Close()
	return nil, &wsconn.RefusedError{Status: response.StatusCode, RetryAfter: response.Header.Get("Retry-After"), Text: strings.TrimSpace(string(text))}
}

// answer reads an answer of JSON.
func (s *server) answer(r *http.Request, into any) error {
	response, err := s.do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(into); err != nil {
		if cause := context.Cause(r.Context()); cause != nil {
			return cause
		}
		return &Error{Code: Refused, Status: http.StatusNotFound, Err: fmt.Errorf("the answer is none of a probe server: %w", err)}
	}
	return nil
}

// info says how many tests an address may have at a time.
func (s *server) info(ctx context.Context) (tests int, err error) {
	r, err := s.request(ctx, http.MethodGet, s.url("/probe/v1/info"), nil)
	if err != nil {
		return 0, err
	}
	var got struct {
		Tests  []string `json:"tests"`
		STUN   []string `json:"stun"`
		Limits *struct {
			Tests int `json:"tests_per_address"`
		} `json:"limits"`
	}
	if err := s.answer(r, &got); err != nil {
		return 0, err
	}
	if got.Limits == nil {
		return 0, &Error{Code: Refused, Status: http.StatusNotFound, Err: errors.New("the answer is none of a probe server")}
	}
	s.stun = got.STUN
	s.givesWay = slices.Contains(got.Tests, "gives-way")
	return got.Limits.Tests, nil
}

// timed are the times of one request, in microseconds; tcp and tls are 0 where the connection was there. all begins before the
// request waits for anything.
type timed struct{ tcp, tls, http, all int64 }

// small asks for one byte.
func (s *server) small(ctx context.Context, query ...string) (timed, error) {
	return s.smallBy(ctx, s.http, query...)
}

// smallBy is small with a client of one's own.
func (s *server) smallBy(ctx context.Context, client *http.Client, query ...string) (timed, error) {
	var t timed // not the result: a dial that ends later than a failed request writes to it
	var connect, shake, asked time.Time
	began := time.Now()
	var mu sync.Mutex // a dial that has lost a race may end later
	note := func(at *time.Time, into *int64) {
		mu.Lock()
		defer mu.Unlock()
		if into == nil {
			*at = time.Now()
		} else if *into == 0 {
			*into = time.Since(*at).Microseconds()
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart:      func(string, string) { note(&connect, nil) },
		ConnectDone:       func(_, _ string, err error) { note(&connect, &t.tcp) },
		TLSHandshakeStart: func() { note(&shake, nil) },
		TLSHandshakeDone: func(s tls.ConnectionState, _ error) {
			note(&shake, &t.tls)
			if s.Version < tls.VersionTLS13 {
				mu.Lock()
				defer mu.Unlock()
				t.tls /= 2 // two round trips
			}
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { note(&asked, nil) },
	})
	r, err := s.request(ctx, http.MethodGet, s.url("/probe/v1/small", query...), nil)
	if err != nil {
		return timed{}, err
	}
	response, err := doBy(client, r)
	if err != nil {
		return timed{}, err
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)); n != 1 || err != nil {
		return timed{}, fmt.Errorf("an answer of %d bytes instead of one: %w", n, err)
	}
	mu.Lock()
	defer mu.Unlock()
	t.http, t.all = time.Since(asked).Microseconds(), time.Since(began).Microseconds()
	return t, nil
}

// socket opens a WebSocket of an ndt7 test.
func (s *server) socket(ctx context.Context, path string, query ...string) (*wsconn.Bulk, error) {
	header := http.Header{}
	if s.token != "" {
		header.Set("Authorization", "Bearer "+s.token)
	}
	bulk := wsconn.BulkConfig{Subprotocol: subprotocol, MaxMessage: maxMessage, Handshake: 2 * patience}
	b, err := bulk.DialBulk(ctx, "ws"+strings.TrimPrefix(s.url(path, query...), "http"), wsconn.DialConfig{NetDial: s.dial, Header: header, TLS: s.tls})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b, err
}
