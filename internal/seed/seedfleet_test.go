package seed_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/siblinghttp"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// seedFleet is a fleet of seeds with one origin, on one bus, that ask each other over HTTP on loopback.
type seedFleet struct {
	t      *testing.T
	bus    *memoryBus
	origin *origin
	secret *sibling.Secret
	seeds  []*member
}

// member is a seed of the fleet, with a tracker's place and viewers of its own.
type member struct {
	fleet *fleet.Member
	*world
	server *httptest.Server
}

func newSeedFleet(t *testing.T, o *origin, n int) *seedFleet {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	secret, err := sibling.NewSecret(strings.Repeat("fleet", 8))
	if err != nil {
		t.Fatal(err)
	}
	c := &seedFleet{t: t, bus: &memoryBus{}, origin: o, secret: secret}
	for range n {
		c.add(nil)
	}
	if n > 0 {
		c.meet()
	}
	return c
}

// answerer is what siblings ask.
type answerer struct {
	*seed.Service
	*fleet.Member
}

// add starts one more seed.
func (c *seedFleet) add(change func(*site.Config, *seed.Config)) *member {
	return c.addWarm(nil, change)
}

// addWarm starts one that warms up.
func (c *seedFleet) addWarm(warm *fleet.WarmUp, change func(*site.Config, *seed.Config)) *member {
	c.t.Helper()
	m := &member{server: httptest.NewUnstartedServer(nil)}
	client := siblinghttp.NewClient(siblinghttp.Config{Secret: c.secret, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Silence: patience})
	c.t.Cleanup(client.Close)
	m.world = newWorldOn(c.t, c.bus, signal.ID{1, byte(len(c.seeds))}, c.origin, func(s *site.Config, cfg *seed.Config) {
		m.fleet = fleet.New(fleet.Config{
			ID: c.secret.Fleet(), Address: netip.MustParseAddrPort(m.server.Listener.Addr().String()), Siblings: client, Patience: patience, WarmUp: warm,
			Metrics: cfg.Metrics,
		})
		cfg.Fleet = m.fleet
		if change != nil {
			change(s, cfg)
		}
	})
	m.server.Config.Handler = siblinghttp.NewHandler(c.secret, m.seed.ID(), answerer{m.seed, m.fleet}, time.Now, slog.New(slog.DiscardHandler))
	m.server.Start()
	c.t.Cleanup(m.server.Close)
	c.seeds = append(c.seeds, m)
	return m
}

// meet returns when every seed has heard every other, and knows which seeds serve the title.
func (c *seedFleet) meet() {
	c.t.Helper()
	var beats [][]byte
	for _, m := range c.seeds { // a seed that has sent its own beat listens
		for {
			if b := wait(c.t, m.keys, "a beat"); b.Seed == m.seed.ID() && !b.Gone {
				raw, err := bus.Encode(&b)
				if err != nil {
					c.t.Fatal(err)
				}
				beats = append(beats, raw)
				break
			}
		}
	}
	for _, raw := range beats {
		c.bus.send(bus.SubjectSeedBeat, raw).Wait()
	}
	c.name(2)
}

// name says to all that they serve the title.
func (c *seedFleet) name(viewers int) {
	title := c.seeds[0].title(viewers)
	for _, m := range c.seeds {
		title.Seeds = append(title.Seeds, m.seed.ID())
	}
	for _, m := range c.seeds {
		m.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
	}
}

// owner is the seed that fetches a segment; others are the rest, in the order in which they would.
func (c *seedFleet) owner(name segment.Name) (owner *member, others []*member) {
	byID := map[swarm.ID]*member{}
	var ids []swarm.ID
	for _, m := range c.seeds {
		byID[m.seed.ID()] = m
		ids = append(ids, m.seed.ID())
	}
	for _, id := range swarm.Order(ids, swarm.ID(c.seeds[0].id(name))) {
		others = append(others, byID[id])
	}
	return others[0], others[1:]
}

func (m *member) count(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	for _, d := range slices.Concat(seed.Metrics(), fleet.Metrics()) {
		if d.Name == name {
			return m.metrics.Value(d, labels...)
		}
	}
	t.Fatalf("no metric is called %s", name)
	return 0
}

func names(n int) (all []segment.Name) {
	for _, r := range []string{"low", "high"} {
		for i := range n {
			all = append(all, segment.Name(fmt.Sprintf("/film/%s/%d.m4s", r, i)))
		}
	}
	return all
}

// keySet is of the keys of all seeds.
func (c *seedFleet) keySet() *certificate.KeySet {
	var keys []certificate.VerifyKey
	seen := map[signal.ID]bool{}
	for len(seen) < len(c.seeds) {
		b := wait(c.t, c.seeds[0].keys, "beats of all seeds")
		if !seen[b.Seed] {
			for _, k := range b.VerifyKeys {
				keys = append(keys, certificate.VerifyKey{KeyID: certificate.KeyID(k.KeyID), Key: k.Key, Sites: k.Sites})
			}
		}
		seen[b.Seed] = true
	}
	set, err := certificate.NewKeySet(keys...)
	if err != nil {
		c.t.Fatal(err)
	}
	return set
}
