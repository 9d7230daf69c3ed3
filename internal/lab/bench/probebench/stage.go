package probebench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

const patience = 20 * time.Second

// ports are those of one server.
type ports struct {
	probe, data int
	admin       string
}

var (
	plainPorts  = ports{8090, 4601, "127.0.0.1:9466"}
	securePorts = ports{8091, 4602, "127.0.0.1:9467"}
)

// stage is a lab of a server and a client, joined by one line.
type stage struct {
	lab            *netlab.Lab
	client, server *netlab.Host
	line           *netlab.Line // seen from the client
	serve          *hosted.Service
	secure         bool                // the server speaks TLS; set before the lab starts
	args           []string            // more arguments of the server, set before the lab starts
	unready        error               // why the lab cannot start
	pair           *hosted.Certificate // nil: it does not

	// neighbor has the client's line, too, and distant the server's side of it; nil unless the line is shared.
	neighbor, distant *netlab.Host
}

// layout puts a client and its line in a stage.
type layout func(s *stage, core *netlab.Router)

// own is a client with a line of its own.
func own(path netlab.Path) layout {
	return func(s *stage, core *netlab.Router) { s.client, s.line = s.lab.Attach("client", core, path) }
}

// shared is a client with a neighbor on its line.
func shared(path netlab.Path) layout {
	return func(s *stage, core *netlab.Router) {
		home := s.lab.Router("home")
		s.line = s.lab.Connect(home, core, path)
		s.client, _ = s.lab.Attach("client", home, netlab.Path{})
		s.neighbor, _ = s.lab.Attach("neighbor", home, netlab.Path{})
		s.distant, _ = s.lab.Attach("distant", core, netlab.Path{})
	}
}

// build makes the lab and starts the server. prepare, if there is one, is called before the lab starts.
func build(ctx context.Context, seed uint64, place layout, prepare func(*stage)) (_ *stage, err error) {
	s := &stage{}
	if s.lab, err = netlab.New(netlab.Options{Seed: seed, IPv6: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	core := s.lab.Router("core")
	s.server, _ = s.lab.Attach("server", core, netlab.Path{})
	place(s, core)
	if prepare != nil {
		prepare(s)
	}
	if err = s.unready; err != nil {
		return nil, err
	}
	if err = s.lab.Start(); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// start starts the server.
func (s *stage) start(ctx context.Context) (err error) {
	p := s.ports()
	args := slices.Concat(s.args, []string{"probe", "serve", "--open", "--listen", fmt.Sprintf("[::]:%d", p.probe), "--udp", fmt.Sprintf("[::]:%d", p.data)})
	if s.secure {
		if s.pair, err = hosted.NewCertificate(s.server.Addr()); err != nil {
			return err
		}
		args = append(args, "--tls-cert", s.pair.Cert, "--tls-key", s.pair.Key)
	}
	s.serve, err = hosted.Start(ctx, s.server, hosted.Options{Name: "the probe server", Admin: p.admin, Args: args})
	return err
}

func (s *stage) ports() ports {
	if s.secure {
		return securePorts
	}
	return plainPorts
}

// beside is the same stage with a server of its own, which speaks TLS: a browser of the bench trusts no certificate. stop ends that
// server alone.
func (s *stage) beside(ctx context.Context) (secure *stage, stop func() error, err error) {
	other := *s
	other.secure, other.serve, other.pair = true, nil, nil
	err = other.start(ctx)
	return &other, other.stop, err
}

// stop ends the server.
func (s *stage) stop() (err error) {
	if s.serve != nil {
		err = s.serve.Close()
	}
	if s.pair != nil {
		err = errors.Join(err, s.pair.Remove())
	}
	return err
}

// on measures on a line, and says what the lab has to say of it. prepare, if there is one, is called before the lab starts.
func on(path netlab.Path, prepare func(*stage), measure func(context.Context, *bench.Run, *stage) (map[string]float64, error)) func(context.Context, *bench.Run) (bench.Sample, error) {
	return within(own(path), prepare, measure)
}

// within measures in a layout.
func within(place layout, prepare func(*stage), measure func(context.Context, *bench.Run, *stage) (map[string]float64, error)) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
		s, err := build(ctx, uint64(r.Number)+1, place, prepare)
		if err != nil {
			return bench.Sample{}, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		if sample.Values, err = measure(ctx, r, s); err != nil {
			return bench.Sample{}, err
		}
		sample.Void, err = s.lab.Void()
		return sample, err
	}
}

// atAnyTime is for what a machine that is busy measures as well.
func atAnyTime(run func(context.Context, *bench.Run) (bench.Sample, error)) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
		sample, err := run(ctx, r)
		sample.Void = ""
		return sample, err
	}
}

// command starts children on the client's host.
func (s *stage) command(ctx context.Context) bench.Command {
	return func(name string, arg ...string) (*exec.Cmd, func() error) {
		c := s.client.Command(ctx, name, arg...)
		return c.Cmd, c.Start
	}
}

// url is where the client finds the server.
func (s *stage) url(addr netip.Addr) string {
	scheme := "http://"
	if s.secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(addr.String(), fmt.Sprint(s.ports().probe))
}

// close ends the server and removes the lab.
func (s *stage) close() error {
	return errors.Join(s.stop(), s.lab.Close())
}
