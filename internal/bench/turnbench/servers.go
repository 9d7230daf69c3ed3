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

	"github.com/leeway-video/leeway/internal/bench"
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

// starter starts one on a free port of loopback.
type starter func(ctx context.Context, r *bench.Run) (*server, error)

func startLeeway(ctx context.Context, r *bench.Run) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return launch(ctx, r, "leeway", func(listen, admin string) *exec.Cmd {
		cmd := exec.Command(self, "--log-level", "warn", "turn", "--listen", listen, "--admin", admin, "--allow", "127.0.0.1", "--drain", "0s")
		// A user of the bench has more than one of a site.
		cmd.Env = append(os.Environ(), "LEEWAY_TURN_SECRETS="+secret, "LEEWAY_TURN_ALLOCATION_RATE=0")
		return cmd
	})
}

func startCoturn(ctx context.Context, r *bench.Run) (*server, error) {
	return launch(ctx, r, "coturn", func(listen, _ string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(listen) // launch joined them
		return exec.Command("turnserver", "-n", "--listening-ip", host, "--listening-port", port, "--relay-ip", host,
			"--use-auth-secret", "--static-auth-secret", secret, "--realm", "leeway", "--allow-loopback-peers", "--no-cli", "--no-tls", "--no-dtls",
			"--min-port", "49152", "--max-port", "65535", "--log-file", "/dev/null", "--pidfile", "/dev/null", "--no-software-attribute")
	})
}

// launch starts a process and waits until it gives an allocation.
func launch(ctx context.Context, r *bench.Run, name string, command func(listen, admin string) *exec.Cmd) (*server, error) {
	listen, err := free()
	if err != nil {
		return nil, err
	}
	admin, err := free()
	if err != nil {
		return nil, err
	}
	cmd := command(listen, admin)
	cmd.Stderr = r.Log
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
		if time.Now().After(deadline) || !bench.Pause(ctx, 50*time.Millisecond) {
			return nil, errors.Join(fmt.Errorf("%s does not come up: %w", name, err), s.stop())
		}
	}
}

// watch waits for a process beside the caller.
func watch(cmd *exec.Cmd) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended matters to nobody: it was told to, or the caller notices that it is gone
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
