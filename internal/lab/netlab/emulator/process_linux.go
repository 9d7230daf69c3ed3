package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab/namespace"
	"github.com/leeway-video/leeway/internal/sleep"
)

// An executable that was started as an emulator never gets to its own main. This cannot be left to main: a test binary
// whose TestMain forgot the call would start itself again, without end.
func init() {
	if os.Getenv(roleVariable) != "" {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "netlab emulator:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// memoryLimit in bytes is where garbage is collected after all.
const memoryLimit = 2 << 30

// serve is the emulator process.
func serve(in io.Reader, out io.Writer) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // the end of standard input is the end
	debug.SetGCPercent(-1)                                         // packets come from a pool, and what figures leave behind is a matter of days
	debug.SetMemoryLimit(memoryLimit)
	decode, encode := json.NewDecoder(in), json.NewEncoder(out)
	var cfg Config
	if err := decode.Decode(&cfg); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	tuns := make([]int, len(cfg.Ports))
	for i := range tuns {
		tuns[i] = firstFile + i
	}
	l, err := newLoop(cfg, tuns)
	if err != nil {
		return err
	}
	if err := encode.Encode(reply{}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- l.control(decode, encode, cfg.Namespaces) }()
	if err := l.run(); err != nil {
		return err
	}
	var closing sync.WaitGroup
	for _, fd := range tuns { // the kernel takes 20 ms for each, and can be asked for all at once
		closing.Go(func() { _ = syscall.Close(fd) })
	}
	closing.Wait()
	return <-ended
}

// control carries out orders until there are no more. When they end without opClose, the process that gave them has died, and
// what it left is removed here.
func (l *loop) control(decode *json.Decoder, encode *json.Encoder, spaces []string) error {
	defer l.ask(func(time.Duration) { l.stop = true })
	for {
		var o order
		if err := decode.Decode(&o); err != nil {
			return namespace.Remove(spaces...)
		}
		var r reply
		switch o.Op {
		case opClose:
			return nil
		case opStats:
			l.ask(func(now time.Duration) { r.Stats = l.snapshot(now, o.Mark) })
		case opSet:
			l.ask(func(now time.Duration) {
				if err := l.engine.Set(o.N, *o.Link, now); err != nil {
					r.Error = err.Error()
				}
			})
		case opLedger:
			l.ask(func(now time.Duration) {
				lost, err := l.engine.Ledger(o.N, now)
				if err != nil {
					r.Error = err.Error()
				}
				r.Ledger = ledgerText(lost)
			})
		default:
			r.Error = fmt.Sprintf("no order %q", o.Op)
		}
		if err := encode.Encode(r); err != nil {
			return err
		}
	}
}

// closeWait is how long an emulator may take to end.
const closeWait = 5 * time.Second

// Process is a running emulator, seen from the program that started it. It is safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr bytes.Buffer // read after exited only
	exited chan struct{}
	err    error // of the process; set before exited is closed

	mu     sync.Mutex // guards the order of questions and answers
	encode *json.Encoder
	decode *json.Decoder
}

// Start starts an emulator that serves the TUN devices, in the order of cfg.Ports. The files may be closed afterwards.
func Start(cfg Config, devices []*os.File) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	p := &Process{cmd: exec.Command(self), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"=1", "GOMAXPROCS=2", "GODEBUG=", "GORACE=atexit_sleep_ms=0")
	p.cmd.ExtraFiles = devices
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	p.encode, p.decode = json.NewEncoder(p.in), json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	if _, err := p.exchange(cfg); err != nil {
		_ = p.in.Close()
		_ = p.cmd.Wait()
		return nil, fmt.Errorf("emulator: %w: %s", err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID of the emulator's process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// exchange sends one order and waits for its reply.
func (p *Process) exchange(o any) (reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var r reply
	if err := p.encode.Encode(o); err != nil {
		return r, err
	}
	if err := p.decode.Decode(&r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// Stats asks for the figures; mark begins new maxima.
func (p *Process) Stats(mark bool) (*Stats, error) {
	r, err := p.exchange(order{Op: opStats, Mark: mark})
	if err != nil {
		return nil, p.explain(err)
	}
	return r.Stats, nil
}

// Set changes a link.
func (p *Process) Set(link int, cfg Link) error {
	if _, err := p.exchange(order{Op: opSet, N: link, Link: &cfg}); err != nil {
		return p.explain(err)
	}
	return nil
}

// Ledger asks which packets a link with a ledger has lost, in the order in which it sent them.
func (p *Process) Ledger(link int) ([]bool, error) {
	r, err := p.exchange(order{Op: opLedger, N: link})
	if err != nil {
		return nil, p.explain(err)
	}
	return readLedger(r.Ledger), nil
}

// explain adds what an emulator that has ended had to say.
func (p *Process) explain(err error) error {
	select {
	case <-p.exited:
		return fmt.Errorf("emulator ended: %w: %w: %s", err, p.err, bytes.TrimSpace(p.stderr.Bytes()))
	default:
		return fmt.Errorf("emulator: %w", err)
	}
}

// Close ends the emulator. The caller removes the namespaces.
func (p *Process) Close() error {
	p.mu.Lock()
	_ = p.encode.Encode(order{Op: opClose})
	_ = p.in.Close()
	p.mu.Unlock()
	if sleep.Until(p.exited, closeWait) {
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	if p.err != nil {
		return fmt.Errorf("emulator: %w: %s", p.err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}
