package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/siblinghttp"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

// lingerForSiblings is how long a seed that drains answers its siblings still: what its viewers want next is asked for there.
const lingerForSiblings = 3 * time.Second

// A newcomer's warm-up: what a sibling of a hundred viewers has to spare, for as long as a rollout can wait for each seed.
const (
	warmUpRate    = 8 << 20 // bytes/s
	warmUpLongest = 15 * time.Second
)

// seedFleet is a seed's place among others: where they ask it, and how it asks them.
type seedFleet struct {
	secret   *sibling.Secret
	listener net.Listener
	address  netip.AddrPort // that siblings are told
	client   *siblinghttp.Client
	warmUp   *fleet.WarmUp
	member   *fleet.Member // set when the seed is made
	handler  http.Handler  // likewise
}

// openFleet opens the fleet's port; nil where the configuration has none.
func openFleet(ctx context.Context, c FleetConfig) (*seedFleet, error) {
	if c.Listen == "" {
		return nil, nil
	}
	secret, err := sibling.NewSecret(c.Secret)
	if err != nil {
		return nil, cmdline.Usage(fmt.Errorf("seed.fleet.secret: %w", err))
	}
	allow, err := prefixes("seed.fleet.allow", c.Allow)
	if err != nil {
		return nil, err
	}
	host, err := c.host()
	if err != nil {
		return nil, cmdline.Usage(err)
	}
	l, err := listenTCP(ctx, "seed --fleet", c.Listen, false)
	if err != nil {
		return nil, err
	}
	if len(allow) == 0 && host.IsLoopback() {
		allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")} // a fleet on one machine
	}
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	f := &seedFleet{
		secret: secret, listener: l, address: netip.AddrPortFrom(host, port), client: siblinghttp.NewClient(siblinghttp.Config{Secret: secret, Allow: allow}),
	}
	if c.WarmUp > 0 {
		f.warmUp = &fleet.WarmUp{Bytes: c.WarmUp, Rate: warmUpRate, Longest: warmUpLongest}
	}
	return f, nil
}

// host is the address that siblings are told.
func (c FleetConfig) host() (netip.Addr, error) {
	text, key := c.Announce, "seed.fleet.announce"
	if text == "" {
		var err error
		if text, _, err = net.SplitHostPort(c.Listen); err != nil {
			return netip.Addr{}, fmt.Errorf("seed.fleet.listen: %w", err)
		}
		key = "seed.fleet.listen"
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.IsUnspecified() || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%s: %q is no address that other seeds could reach (name this one's by seed.fleet.announce; on Kubernetes status.podIP)", key, text)
	}
	return a.Unmap(), nil
}

// join makes the seed's place in the fleet; nil where it has none.
func (f *seedFleet) join(sink metric.Sink, log *slog.Logger) seed.Fleet {
	if f == nil {
		return nil
	}
	f.member = fleet.New(fleet.Config{
		ID: f.secret.Fleet(), Address: f.address, Siblings: f.client, Linger: lingerForSiblings, WarmUp: f.warmUp, Metrics: sink, Log: log,
	})
	return f.member
}

// siblingAnswerer is what siblings ask: the seed for segments, its place in the fleet for what is wanted.
type siblingAnswerer struct {
	*seed.Service
	*fleet.Member
}

// serve has the seed answer its siblings.
func (f *seedFleet) serve(s *seed.Service, log *slog.Logger) {
	if f != nil {
		f.handler = siblinghttp.NewHandler(f.secret, s.ID(), siblingAnswerer{s, f.member}, time.Now, log)
	}
}

// close lets the port and connections to siblings go.
func (f *seedFleet) close() {
	if f != nil {
		_ = f.listener.Close()
		f.client.Close()
	}
}

// fleet checks what makes a seed one of several.
func (k *checker) fleet(c FleetConfig) {
	if c.WarmUp < 0 {
		k.complain("seed.fleet.warm_up", "%d is no number of bytes (0: siblings give a newcomer nothing beforehand)", c.WarmUp)
	}
	if c.Listen == "" {
		return // the secret may be there all the same: all services of a cluster have one environment
	}
	if addressProblem(c.Listen) != "" {
		return // said already
	}
	if _, err := sibling.NewSecret(c.Secret); err != nil {
		k.complain("seed.fleet.secret", "%v", err)
	}
	if _, err := c.host(); err != nil {
		k.complain("seed.fleet.announce", "%v", err)
	}
}
