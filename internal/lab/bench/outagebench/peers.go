package outagebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
)

const (
	slowRate    = 1_000 // bytes/s of a slow peer
	slowViewers = 3
	slowBuffer  = 80 * time.Second
	// slowHas is what slow viewers hold before the browsers come.
	slowHas  = 8 << 20
	slowWait = time.Minute
	seedPort = 4611 // beside the ports of `leeway up`, whose own seed serves no site
)

// startSlowPeers has viewers come that play from the origin, announce what they hold, and send it at slowRate.
func (s *stage) startSlowPeers(ctx context.Context, host *netlab.Host) error {
	for range slowViewers {
		v, err := headless.Start(viewer.Config{
			URL: s.film.Manifest(), Tracker: s.tracker.Tracker(), Site: siteName, Rendition: "highest", JoinAfter: -1, Buffer: slowBuffer,
		}, headless.Network{
			Dial: host.DialContext, Enter: host.Do, Listen: host.Addr().String() + ":0",
			Through: func(l viewer.Links) viewer.Links { return slowLinks{l} },
		})
		if err != nil {
			return err
		}
		s.peers = append(s.peers, v)
	}
	ctx, cancel := context.WithTimeout(ctx, slowWait)
	defer cancel()
	for _, v := range s.peers {
		for total(v.Summary().Stats.Bytes) < slowHas {
			if !sleep.For(ctx, lookEvery) {
				return fmt.Errorf("a viewer that is to be slow has got %v bytes", v.Summary().Stats.Bytes)
			}
		}
	}
	return nil
}

func total(bytes map[string]int64) (n int64) {
	for _, b := range bytes {
		n += b
	}
	return n
}

// slowLinks are links that send slowRate.
type slowLinks struct{ viewer.Links }

// Offer implements viewer.Links.
func (l slowLinks) Offer(s viewer.LinkSettings, events transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	link, offer, err := l.Links.Offer(s, events)
	if err != nil {
		return nil, offer, err
	}
	return &slowOffer{slowLink{Link: link, drain: events.Drain}, link}, offer, nil
}

// Answer implements viewer.Links.
func (l slowLinks) Answer(s viewer.LinkSettings, offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	link, answer, err := l.Links.Answer(s, offer, events)
	if err != nil {
		return nil, answer, err
	}
	return &slowLink{Link: link, drain: events.Drain}, answer, nil
}

type slowLink struct {
	transfer.Link
	drain func()

	mu   sync.Mutex
	next time.Time // guarded by mu: when something may be sent again
}

// SendData implements transfer.Link: what does not go now is refused until its time has come.
func (l *slowLink) SendData(message []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if wait := l.next.Sub(now); wait > 0 {
		time.AfterFunc(wait, func() {
			select {
			case <-l.Done():
			default:
				l.drain()
			}
		})
		return false
	}
	if !l.Link.SendData(message) {
		return false
	}
	l.next = now.Add(time.Duration(len(message)) * time.Second / slowRate)
	return true
}

type slowOffer struct {
	slowLink
	offered viewer.OfferedLink
}

// Accept implements viewer.OfferedLink.
func (l *slowOffer) Accept(answer transfer.Description) error { return l.offered.Accept(answer) }

// ---- the silent seed: a process in the tracker's host ----

const roleSeed = "seed"

// seedOrders is what it is told.
type seedOrders struct {
	Listen, NATS, Base string
	Hosts              []string
}

func (s *stage) startSilentSeed(ctx context.Context, r *bench.Run, host *netlab.Host) (err error) {
	inside := func(name string, arg ...string) (*exec.Cmd, func() error) {
		cmd := host.Command(ctx, name, arg...)
		return cmd.Cmd, cmd.Start
	}
	if s.seed, err = r.Start(inside, benchName, roleSeed, "silent-seed"); err != nil {
		return err
	}
	at := func(port uint16) string { return netip.AddrPortFrom(host.Addr(), port).String() }
	orders := seedOrders{at(seedPort), "nats://" + at(busPort), "http://" + s.film.Public(), []string{pageAt, s.film.Public()}}
	var up bool
	return errors.Join(s.seed.Send(orders), s.seed.Receive(&up))
}

// silentSeedRole is a seed in all but what it sends: links open, and a peer that asks it for something waits.
func silentSeedRole(ctx context.Context, in *json.Decoder, out *bench.Writer) (err error) {
	var o seedOrders
	if err := in.Decode(&o); err != nil {
		return err
	}
	one, err := site.New(site.Config{
		Name: siteName, Hosts: o.Hosts, FetchBase: o.Base, Policy: site.Policy{CertifyFrom: 1, CostlyTitles: site.CostlyShare},
		Title: site.Titles{Explicit: []site.Binding{{Title: "{}", Manifests: []string{"/*"}}}},
	})
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	bus, err := natsbus.Open(natsbus.Config{URL: o.NATS, Name: roleSeed, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	links, err := rtclink.Listen(rtclink.Config{Listen: o.Listen, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	origin, err := originhttp.New(originhttp.Config{Base: o.Base})
	if err != nil {
		return err
	}
	defer origin.Close()
	dir, err := os.MkdirTemp("", "leeway-bench-seed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	service, err := seed.New(seed.Config{DataDir: dir, Sites: []seed.Site{{Site: one, Origin: origin}}, LookAhead: 1, Log: log}, bus, muted{links})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	if err := out.Write(true); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	var end any
	_ = in.Decode(&end) // until the input ends
	cancel()
	return <-ended
}

// muted are links on which a seed says hello and nothing else.
type muted struct{ seed.Links }

// Answer implements seed.Links.
func (m muted) Answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	link, answer, err := m.Links.Answer(offer, events)
	if err != nil {
		return nil, answer, err
	}
	return &mutedLink{Link: link}, answer, nil
}

type mutedLink struct {
	transfer.Link
	once sync.Once
}

// SendControl implements transfer.Link: the hello goes out.
func (m *mutedLink) SendControl(message []byte) { m.once.Do(func() { m.Link.SendControl(message) }) }

// SendData implements transfer.Link.
func (m *mutedLink) SendData([]byte) bool { return true }
