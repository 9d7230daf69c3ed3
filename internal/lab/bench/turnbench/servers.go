package turnbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/sleep"
)

// patience bounds how long a server may take to come up and to end.
const patience = 10 * time.Second

// server is a relay that is measured.
type server struct {
	name    string
	address string // HOST:PORT
	pid     int
	stop    func() error
}

// setup is what a measurement asks of a server beyond the bench's own.
type setup struct {
	core        string // the processor that it has alone; empty: all
	allocations int    // over ports from lowPort; 0: as many as it gives by default
}

// lowPort is the first relayed port where the usual 16,384 are too few; below it listen other services.
const lowPort = 10_240

// starter starts one on a free port of loopback.
type starter func(ctx context.Context, r *bench.Run, s setup) (*server, error)

// hasRival says whether there is a coturn on this machine.
func hasRival(r *bench.Run) bool {
	_, err := exec.LookPath("turnserver")
	if err != nil {
		r.Logf("  no coturn: apt-get install coturn")
	}
	return err == nil
}

func startLeeway(ctx context.Context, r *bench.Run, s setup) (*server, error) {
	leeway, err := bench.Leeway()
	if err != nil {
		return nil, err
	}
	// A user of the bench has more than one of a site.
	environ := append(os.Environ(), "LEEWAY_TURN_SECRETS="+secret, "LEEWAY_TURN_ALLOCATION_RATE=0")
	if s.allocations > 0 {
		environ = append(environ, fmt.Sprint("LEEWAY_TURN_MAX_ALLOCATIONS=", s.allocations), fmt.Sprint("LEEWAY_TURN_PORT_MIN=", lowPort))
	}
	return launch(ctx, r, "leeway", s.core, environ, func(listen, admin string) []string {
		return []string{leeway, "--log-level", "warn", "turn", "--listen", listen, "--admin", admin, "--allow", "127.0.0.1", "--drain", "0s"}
	})
}

func startCoturn(ctx context.Context, r *bench.Run, s setup) (*server, error) {
	first := 49152
	if s.allocations > 0 {
		first = lowPort
	}
	return launch(ctx, r, "coturn", s.core, nil, func(listen, _ string) []string {
		host, port, _ := net.SplitHostPort(listen) // launch joined them
		return []string{
			"turnserver", "-n", "--listening-ip", host, "--listening-port", port, "--relay-ip", host,
			"--use-auth-secret", "--static-auth-secret", secret, "--realm", "leeway", "--allow-loopback-peers", "--no-cli", "--no-tls", "--no-dtls",
			"--min-port", fmt.Sprint(first), "--max-port", "65535", "--log-file", "/dev/null", "--pidfile", "/dev/null", "--no-software-attribute",
		}
	})
}

// launch starts a process and waits until it gives an allocation.
func launch(ctx context.Context, r *bench.Run, name, core string, environ []string, command func(listen, admin string) []string) (*server, error) {
	listen, err := free()
	if err != nil {
		return nil, err
	}
	admin, err := free()
	if err != nil {
		return nil, err
	}
	args := command(listen, admin)
	if core != "" {
		args = append([]string{"taskset", "-c", core}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stderr = environ, r.Log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := watch(cmd)
	s := &server{name: name, address: listen, pid: cmd.Process.Pid, stop: func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return nil
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-ended
			return fmt.Errorf("%s did not end within %s", name, patience)
		}
	}}
	for deadline := time.Now().Add(patience); ; {
		a, err := allocate(listen, "first")
		if err == nil {
			return s, a.Close()
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s ended at once", name)
		default:
		}
		if time.Now().After(deadline) || !sleep.For(ctx, 50*time.Millisecond) {
			return nil, errors.Join(fmt.Errorf("%s does not come up: %w", name, err), s.stop())
		}
	}
}

// watch waits for a process beside the caller.
func watch(cmd *exec.Cmd) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended does not matter: it was told to, or the caller notices that it is gone
		close(ended)
	}()
	return ended
}

// free is an address that was free a moment ago.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
