package probebench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	probePort  = 8090
	dataPort   = 4601
	probeAdmin = "127.0.0.1:9466"
	patience   = 20 * time.Second
)

// stage is a lab of a server and a client, joined by one line.
type stage struct {
	lab            *netlab.Lab
	client, server *netlab.Host
	line           *netlab.Line // seen from the client
	serve          *netlab.Cmd
	ended          chan error
	log            bench.Tail
}

// build makes the lab and starts the server. prepare, if there is one, is called before the lab starts.
func build(ctx context.Context, seed uint64, path netlab.Path, prepare func(*stage)) (_ *stage, err error) {
	s := &stage{ended: make(chan error, 1)}
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
	s.client, s.line = s.lab.Attach("client", core, path)
	if prepare != nil {
		prepare(s)
	}
	if err = s.lab.Start(); err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// start starts `leeway probe serve` and waits until it takes tests.
func (s *stage) start(ctx context.Context) error {
	leeway, err := bench.Leeway()
	if err != nil {
		return err
	}
	s.serve = s.server.Command(ctx, leeway, "--log-level", "warn", "probe", "serve", "--open", "--listen", fmt.Sprintf("[::]:%d", probePort),
		"--udp", fmt.Sprintf("[::]:%d", dataPort), "--admin", probeAdmin)
	s.serve.Stdout, s.serve.Stderr = &s.log, &s.log
	if err := s.serve.Start(); err != nil {
		return fmt.Errorf("start the probe server: %w", err)
	}
	go func() { s.ended <- s.serve.Wait() }()
	client := http.Client{Transport: &http.Transport{DialContext: s.server.DialContext, DisableKeepAlives: true}, Timeout: time.Second}
	for deadline := time.Now().Add(patience); ; {
		response, err := client.Get("http://" + probeAdmin + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(deadline) || !sleep.For(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the probe server does not come up: %w\n%s", err, &s.log)
		}
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
	return "http://" + net.JoinHostPort(addr.String(), fmt.Sprint(probePort))
}

// certify says why nothing is claimed from the lab since its last mark; empty is no reason.
func (s *stage) certify() (string, error) {
	report, err := s.lab.Report()
	if err != nil {
		return "", err
	}
	if err := report.Certify(); err != nil {
		return strings.TrimPrefix(err.Error(), "netlab: "), nil
	}
	return "", nil
}

// close ends the server and removes the lab.
func (s *stage) close() error {
	var errs []error
	if s.serve != nil && s.serve.Process != nil {
		_ = s.serve.Process.Signal(syscall.SIGTERM)
		err := <-s.ended
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			errs = append(errs, fmt.Errorf("the probe server ended with %w\n%s", err, &s.log))
		}
	}
	return errors.Join(append(errs, s.lab.Close())...)
}
