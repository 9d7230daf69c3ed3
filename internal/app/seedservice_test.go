package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/site"
)

// deafBus takes no subscriptions.
type deafBus struct{}

var errDeaf = errors.New("deaf")

func (deafBus) Connected() bool              { return true }
func (deafBus) Publish(string, []byte) error { return nil }
func (deafBus) Subscribe(string, func(string, []byte, func([]byte) error)) (func(), error) {
	return nil, errDeaf
}
func (deafBus) Request(context.Context, string, []byte) ([]byte, error) { return nil, errDeaf }

// TestASeedThatEndsByItselfEndsTheProcess: what supervises the process starts it again; a process that goes on without its
// seed looks alive and serves no viewer.
func TestASeedThatEndsByItselfEndsTheProcess(t *testing.T) {
	defer goleak.VerifyNone(t)
	log := slog.New(slog.DiscardHandler)
	group := newServers(log)
	defer group.stop()
	running, err := startSeed(t.Context(), seedParts{
		config: defaults(func(string) string { return "" }).Seed, dataDir: t.TempDir(), listen: "127.0.0.1:0",
		bus: deafBus{}, sink: metric.Discard, log: log, failed: group.fail,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer running.stop()
	if err := group.wait(t.Context()); !errors.Is(err, errDeaf) || !strings.Contains(err.Error(), "seed") {
		t.Errorf("the process ended with %v", err)
	}
}

// TestASeedWithoutNATSDoesNotStart: it would be up, ready, and met by no tracker.
func TestASeedWithoutNATSDoesNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "sites: [{name: a, hosts: [a.example], fetch_base: 'https://a.example'}]\nseed: {listen: '127.0.0.1:0', admin: '127.0.0.1:0'}\n")
	if _, errs, code := leeway(t, nil, "seed", "--config", file, "--data-dir", filepath.Dir(file)); code != 2 || !strings.Contains(errs, "nats.url") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestASiteHasItsBudget(t *testing.T) {
	one, err := site.New(site.Config{Name: "one", Hosts: []string{"a.example"}, FetchBase: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := site.New(site.Config{Name: "two", Hosts: []string{"b.example"}, FetchBase: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	p := seedParts{sites: []*site.Site{one, two}, log: slog.New(slog.DiscardHandler)}
	p.config.SiteBudgets = []SiteBudget{{Site: "two", Rate: 7, DailyBytes: 8}}
	sites, closeAll, err := p.origins()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	if len(sites) != 2 || sites[0].Rate != 0 || sites[0].BytesDaily != 0 || sites[1].Rate != 7 || sites[1].BytesDaily != 8 {
		t.Errorf("%+v", sites)
	}
}

// TestADemosSeedReachesItsMachineOnly: of the refused ranges, the addresses that the machine has and no neighbour's.
func TestADemosSeedReachesItsMachineOnly(t *testing.T) {
	own, err := ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	reach := access.Reach{Allow: own}
	for _, text := range []string{"127.0.0.1", "127.8.7.6"} {
		if class := reach.Refuses(netip.MustParseAddr(text)); class != "" {
			t.Errorf("%s is refused: %s", text, class)
		}
	}
	found, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range found {
		at := netip.MustParsePrefix(a.String()).Addr()
		if class := reach.Refuses(at); class != "" {
			t.Errorf("%s of this machine is refused: %s", at, class)
		}
		if next := at.Next(); next.IsPrivate() && !next.IsLoopback() && reach.Refuses(next) == "" {
			t.Errorf("%s is not this machine's, and is allowed", next)
		}
	}
	for _, text := range []string{"169.254.169.254", "10.96.0.10"} {
		if reach.Refuses(netip.MustParseAddr(text)) == "" {
			t.Errorf("%s is not this machine's, and is allowed", text)
		}
	}
}
