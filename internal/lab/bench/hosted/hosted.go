// Package hosted runs one service of the leeway program on a host of a lab, for benches that measure it by its clients.
package hosted

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	patience  = 20 * time.Second // with a service that starts
	lookEvery = 50 * time.Millisecond
)

// Options of Start.
type Options struct {
	Name  string   // in errors, as "the relay"
	Admin string   // address of its admin port, on its host
	Args  []string // of leeway, without --admin and --log-level
	Env   []string // beside this process's
}

// Service is one that runs. It wants to be closed.
type Service struct {
	name  string
	cmd   *netlab.Cmd
	ended chan error
	log   bench.Tail
}

// Start starts a service and waits until it is ready.
func Start(ctx context.Context, host *netlab.Host, o Options) (*Service, error) {
	leeway, err := bench.Leeway()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--log-level", "warn"}, o.Args...)
	s := &Service{name: o.Name, cmd: host.Command(ctx, leeway, append(args, "--admin", o.Admin)...), ended: make(chan error, 1)}
	s.cmd.Env = append(os.Environ(), o.Env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.ready(ctx, host, o.Admin); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ready waits until the service takes work.
func (s *Service) ready(ctx context.Context, host *netlab.Host, admin string) error {
	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext, DisableKeepAlives: true}, Timeout: time.Second}
	for deadline := time.Now().Add(patience); ; {
		response, err := client.Get("http://" + admin + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		if time.Now().After(deadline) || !sleep.For(ctx, lookEvery) {
			return fmt.Errorf("%s does not come up: %w\n%s", s.name, err, &s.log)
		}
	}
}

// Close ends the service. It is an error if it ends with one.
func (s *Service) Close() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	err := <-s.ended
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%s ended with %w\n%s", s.name, err, &s.log)
	}
	return nil
}
