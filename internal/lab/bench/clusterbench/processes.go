package clusterbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/trackerside"
	"github.com/leeway-video/leeway/internal/lab/natsnode"
	"github.com/leeway-video/leeway/internal/natsbus"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/tracker"
)

const (
	siteName = trackerside.Site
	size     = 3 // trackers, and NATS servers
	user     = "leeway"
	password = "bench"

	// serversAt is where NATS servers listen: at no address that connections of this machine come from, so that the ports of
	// one that is gone are free when it comes back.
	serversAt = "127.0.2.1"
)

// cluster is the processes.
type cluster struct {
	servers, trackers []*process
	configs           []natsnode.Config // of servers
	addresses         []netip.AddrPort  // of trackers
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
	server        struct{ Config natsnode.Config }
	trackerOrders struct {
		NATS      string
		PerSecond int // handshakes that admission begins
	}
)

func start(ctx context.Context, r *bench.Run, s scale) (c *cluster, err error) {
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
		c.configs = append(c.configs, natsnode.Config{
			Name: fmt.Sprintf("nats-%d", i), Listen: at[i], Cluster: at[size+i], Routes: at[size:], User: user, Pass: password,
		})
		urls += ",nats://" + at[i]
	}
	if err := c.startServers(r); err != nil {
		return c, err
	}
	for i := range size {
		p, err := r.Start(nil, benchName, "tracker", fmt.Sprintf("tracker-%d", i))
		if err != nil {
			return c, err
		}
		c.trackers = append(c.trackers, &process{Process: p})
		// Each by another server first: what is said between trackers passes between servers.
		var address string
		if err := errors.Join(p.Send(trackerOrders{"nats://" + at[i] + urls, s.handshakes}), p.Receive(&address)); err != nil {
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

// startServers starts the NATS servers, and returns when they have found each other.
func (c *cluster) startServers(r *bench.Run) error {
	first := len(c.servers)
	for _, cfg := range c.configs {
		p, err := r.Start(nil, benchName, "nats", cfg.Name)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, &process{Process: p})
		if err := p.Send(server{cfg}); err != nil {
			return err
		}
	}
	for _, p := range c.servers[first:] {
		var joined bool
		if err := p.Receive(&joined); err != nil {
			return err
		}
	}
	return nil
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
		if !sleep.For(ctx, 100*time.Millisecond) {
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
		l, err := net.Listen("tcp", serversAt+":0")
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
	node, err := natsnode.Start(s.Config)
	if err != nil {
		return err
	}
	defer node.Close()
	for !node.Joined(size - 1) {
		if !sleep.For(ctx, 20*time.Millisecond) {
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

// trackerRole is a tracker until its input ends. SIGTERM drains it.
func trackerRole(_ context.Context, in *json.Decoder, out *bench.Writer) (err error) {
	var o trackerOrders
	if err := in.Decode(&o); err != nil {
		return err
	}
	t, err := trackerside.Start(trackerside.Config{
		Bus: natsbus.Config{URL: o.NATS, User: user, Password: password}, PerSecond: o.PerSecond,
		// How long signals take is measured with one session that never rests.
		Tracker: tracker.Config{MessagesPerSecond: trackerside.Unlimited},
	})
	if err != nil {
		return err
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	asked := make(chan string)
	go func() {
		defer close(asked)
		var word string
		for in.Decode(&word) == nil {
			asked <- word
		}
	}()
	err = out.Write(t.Address)
	for open := true; open && err == nil; {
		select {
		case _, open = <-asked:
			if open {
				err = out.Write(t.Live())
			}
		case <-term:
			err = t.Close()
		}
	}
	return errors.Join(err, t.Close())
}
