// Package siblinghttp carries the questions of a fleet's seeds and their answers over net/http (the port fleet.Siblings, and the
// handler of the other end; spec/cluster.md, "Seeds").
//
// Where siblings are is said over the bus. A seed connects to such an address only where it lies in a range that siblings may
// have, asks for one path there, and shows nothing that would be worth something elsewhere.
package siblinghttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	dialTimeout = time.Second
	silence     = 1500 * time.Millisecond
	maxHeader   = 16 << 10 // bytes of a response's header
	idleConns   = 8        // kept to one sibling
)

// usual are the ranges that siblings have addresses in where nothing else is said; never those of metadata services.
var (
	usual = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}
	never = []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::/32"),
		netip.MustParsePrefix("fd20:ce::/32"), netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("192.0.0.192/32"),
		netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"),
	}
)

// Client asks siblings. It satisfies fleet.Siblings.
type Client struct {
	secret  *sibling.Secret
	allow   []netip.Prefix
	silence time.Duration
	now     func() time.Time
	http    *http.Client
}

var _ fleet.Siblings = (*Client)(nil)

// Config of a client.
type Config struct {
	Secret  *sibling.Secret
	Allow   []netip.Prefix   // ranges that siblings' addresses may lie in; empty: private ones
	Silence time.Duration    // after which a sibling that says nothing is given up; 0: 1.5 s, six frames of work
	Now     func() time.Time // nil: time.Now
}

// NewClient makes one.
func NewClient(cfg Config) *Client {
	if len(cfg.Allow) == 0 {
		cfg.Allow = usual
	}
	if cfg.Silence == 0 {
		cfg.Silence = silence
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{
		secret: cfg.Secret, allow: cfg.Allow, silence: cfg.Silence, now: cfg.Now,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy: nil, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, DisableCompression: true,
				MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: idleConns, IdleConnTimeout: time.Minute,
			},
		},
	}
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// allows says whether a sibling may have an address.
func (c *Client) allows(at netip.AddrPort) bool {
	a := at.Addr().Unmap()
	for _, p := range never {
		if p.Contains(a) {
			return false
		}
	}
	for _, p := range c.allow {
		if p.Contains(a) {
			return at.Port() != 0
		}
	}
	return false
}

// Ask implements fleet.Siblings.
func (c *Client) Ask(ctx context.Context, from signal.ID, to fleet.Sibling, q sibling.Question, accept func([]byte, int) error) (*sibling.Answer, error) {
	patience := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := &watch{limit: c.silence, cancel: cancel}
	watch.timer = time.AfterFunc(c.silence, watch.end)
	defer watch.timer.Stop()
	req, err := c.request(ctx, from, to, q.Target())
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fail(watch.outcome(patience, err), err)
	}
	defer resp.Body.Close() //nolint:errcheck // what was needed has been read
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return nil, fail(fleet.OutcomeRefused, errors.New("it is busy"))
	default: // another seed has its place by now, or their clocks differ
		return nil, fail(fleet.OutcomeUnreachable, fmt.Errorf("status %d", resp.StatusCode))
	}
	watch.body = resp.Body
	a, err := sibling.Read(watch, accept)
	if err != nil {
		return nil, fail(watch.outcome(patience, err), err)
	}
	_, _ = io.CopyN(io.Discard, watch, 1) // its end, so that the connection can be used again
	return a, nil
}

// request is one to a sibling, signed.
func (c *Client) request(ctx context.Context, from signal.ID, to fleet.Sibling, target string) (*http.Request, error) {
	if !c.allows(to.Address) {
		return nil, fail(fleet.OutcomeUnreachable, fmt.Errorf("%s is no address for a seed of the fleet (list its range in seed.fleet.allow)", to.Address))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.Address.String()+target, nil)
	if err != nil {
		return nil, fail(fleet.OutcomeInvalid, err)
	}
	req.Header.Set("Authorization", c.secret.Sign(from, to.ID, target, c.now()))
	return req, nil
}

// Wanted implements fleet.Siblings.
func (c *Client) Wanted(ctx context.Context, from signal.ID, to fleet.Sibling) (sibling.Wanted, error) {
	ctx, cancel := context.WithTimeout(ctx, c.silence)
	defer cancel()
	req, err := c.request(ctx, from, to, sibling.WantedTarget)
	if err != nil {
		return sibling.Wanted{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return sibling.Wanted{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // what was needed has been read
	if resp.StatusCode != http.StatusOK {
		return sibling.Wanted{}, fmt.Errorf("ask a sibling what is wanted: status %d", resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, sibling.MaxWanted+1))
	if err != nil {
		return sibling.Wanted{}, err
	}
	return sibling.DecodeWanted(b)
}

func fail(o fleet.Outcome, err error) error { return &fleet.AskError{Outcome: o, Cause: err} }

// watch reads a body, and cancels the request when nothing comes for a while.
type watch struct {
	body    io.Reader
	limit   time.Duration
	timer   *time.Timer
	cancel  context.CancelFunc
	expired atomic.Bool
}

func (w *watch) end() {
	w.expired.Store(true)
	w.cancel()
}

// Read implements io.Reader.
func (w *watch) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	if n > 0 {
		w.timer.Reset(w.limit)
	}
	return n, err
}

// outcome sorts what ended a question: the sibling was silent, the time for an answer was over, the line broke, or what came
// was no answer.
func (w *watch) outcome(patience context.Context, err error) fleet.Outcome {
	var network net.Error
	switch {
	case w.expired.Load():
		return fleet.OutcomeUnreachable
	case patience.Err() != nil:
		return fleet.OutcomeSlow
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.As(err, &network):
		return fleet.OutcomeUnreachable
	}
	return fleet.OutcomeInvalid
}
