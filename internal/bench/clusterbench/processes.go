package clusterbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/tracker"
)

const (
	siteName = "demo"
	size     = 3 // trackers, and NATS servers
	user     = "leeway"
	password = "bench"

	unlimited = 1 << 20
)

// cluster is the processes.
type cluster struct {
	servers, trackers []*process
	addresses         []netip.AddrPort // of trackers
}

// process is one that may be killed.
type process struct {
	*bench.Process
	killed bool
}

func (p *process) kill() error {
	p.killed = true
	return syscall.Kill(p.PID(), syscall.SIGKILL)
}

// server is what a NATS server is told, trackerOrders what a tracker is told.
type (
	server        struct{ Config natsbus.NodeConfig }
	trackerOrders struct{ NATS string }
)

func start(ctx context.Context, r *bench.Run) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	at, err := free(2 * size)
	if err != nil {
		return c, err
	}
	urls := ""
	for i := range size {
		cfg := natsbus.NodeConfig{Name: fmt.Sprintf("nats-%d", i), Listen: at[i], Cluster: at[size+i], Routes: at[size:], User: user, Pass: password}
		p, err := r.Start(nil, benchName, "nats", cfg.Name)
		if err != nil {
			return c, err
		}
		c.servers = append(c.servers, &process{Process: p})
		if err := p.Send(server{cfg}); err != nil {
			return c, err
		}
		urls += ",nats://" + at[i]
	}
	for _, s := range c.servers {
		var joined bool
		if err := s.Receive(&joined); err != nil {
			return c, err
		}
	}
	for i := range size {
		p, err := r.Start(nil, benchName, "tracker", fmt.Sprintf("tracker-%d", i))
		if err != nil {
			return c, err
		}
		c.trackers = append(c.trackers, &process{Process: p})
		// Each by another server first: what is said between trackers passes between servers.
		var address string
		if err := errors.Join(p.Send(trackerOrders{"nats://" + at[i] + urls}), p.Receive(&address)); err != nil {
			return c, err
		}
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return c, err
		}
		c.addresses = append(c.addresses, to)
	}
	for _, t := range c.trackers {
		if err := t.knows(ctx, size); err != nil {
			return c, err
		}
	}
	return c, nil
}

// knows waits until a tracker has heard of all.
func (p *process) knows(ctx context.Context, n int) error {
	for range 100 {
		var live int
		if err := errors.Join(p.Send("live"), p.Receive(&live)); err != nil {
			return err
		}
		if live == n {
			return nil
		}
		if !bench.Pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s has not heard of the others", p.Name())
}

func (c *cluster) stop() (err error) {
	for _, p := range append(c.trackers, c.servers...) {
		if e := p.Stop(); e != nil && !p.killed {
			err = errors.Join(err, e)
		}
	}
	return err
}

// free finds addresses that were free a moment ago.
func free(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}

// natsRole is one NATS server, until its input ends.
func natsRole(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var s server
	if err := in.Decode(&s); err != nil {
		return err
	}
	node, err := natsbus.StartNode(s.Config)
	if err != nil {
		return err
	}
	defer node.Close()
	for !node.Joined(size - 1) {
		if !bench.Pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	if err := out.Write(true); err != nil {
		return err
	}
	var end any
	_ = in.Decode(&end) // until the input ends
	return nil
}

// trackerRole is a tracker as `leeway tracker` composes it, but for the door before it: what comes back is counted as it comes.
// SIGTERM drains it.
func trackerRole(_ context.Context, in *json.Decoder, out *bench.Writer) (err error) {
	var o trackerOrders
	if err := in.Decode(&o); err != nil {
		return err
	}
	one, err := site.New(site.Config{Name: siteName, Hosts: []string{"video.example.com"}})
	if err != nil {
		return err
	}
	registry, err := promreg.New([]string{siteName}, append(tracker.Metrics(), natsbus.Metrics()...)...)
	if err != nil {
		return err
	}
	bus, err := natsbus.Open(natsbus.Config{URL: o.NATS, User: user, Password: password, Name: "bench", Metrics: registry})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	t, err := tracker.New(tracker.Config{
		Secret: bytes.Repeat([]byte("s"), 32), Sites: []*site.Site{one}, Metrics: registry,
		MessagesPerSecond: unlimited, // how long signals take is measured with one session that never rests
	}, bus)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, t.Close())
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	server := &http.Server{Handler: endpoint(t)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	asked := make(chan string)
	go func() {
		defer close(asked)
		var word string
		for in.Decode(&word) == nil {
			asked <- word
		}
	}()
	err = out.Write(listener.Addr().String())
	for open := true; open && err == nil; {
		select {
		case _, open = <-asked:
			if open {
				err = out.Write(t.Live())
			}
		case <-term:
			err = errors.Join(t.Close(), server.Close())
		}
	}
	err = errors.Join(err, t.Close(), server.Close())
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
