package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"
)

// ChildCommand is the hidden subcommand that makes this program a child: leeway-lab bench-child BENCH ROLE.
const ChildCommand = "bench-child"

// profileVariable names the file of a child's CPU profile.
const profileVariable = "LEEWAY_BENCH_PROFILE"

// patience bounds how long a child may take to end once its input is closed.
const patience = 10 * time.Second

// Role is what a child process does: it reads messages from in and answers on out, and returns when in is closed.
type Role func(ctx context.Context, in *json.Decoder, out *Writer) error

// Obey does what the bench says, message by message, until it closes the pipe.
func Obey[M any](in *json.Decoder, do func(M) error) error {
	for {
		var m M
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("what the bench says: %w", err)
		}
		if err := do(m); err != nil {
			return err
		}
	}
}

// Writer writes one JSON value a line, from any goroutine.
type Writer struct {
	mu sync.Mutex
	e  *json.Encoder // guarded by mu
}

// NewWriter makes one.
func NewWriter(w io.Writer) *Writer { return &Writer{e: json.NewEncoder(w)} }

// Write writes v.
func (w *Writer) Write(v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.e.Encode(v)
}

// Child is the body of the hidden subcommand.
func Child(ctx context.Context, benches []Bench, name, role string, in io.Reader, out io.Writer) error {
	for _, b := range benches {
		run := b.Roles[role]
		if b.Name != name || run == nil {
			continue
		}
		stop, err := profile()
		if err != nil {
			return err
		}
		defer stop()
		return run(ctx, json.NewDecoder(bufio.NewReader(in)), NewWriter(out))
	}
	return fmt.Errorf("bench %q has no role %q", name, role)
}

func profile() (stop func(), err error) {
	name := os.Getenv(profileVariable)
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("bench: profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("bench: profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// Process is a running child.
type Process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
	w    *Writer
}

// Command makes the command of a child for a place that the caller chooses, and says how it is started there; nil is a
// plain process beside this one.
type Command func(name string, arg ...string) (cmd *exec.Cmd, start func() error)

func beside(name string, arg ...string) (*exec.Cmd, func() error) {
	cmd := exec.Command(name, arg...)
	return cmd, cmd.Start
}

// Start runs this program again as a role of a bench.
func (r *Run) Start(make Command, benchName, role, label string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", label, err)
	}
	if make == nil {
		make = beside
	}
	cmd, start := make(self, ChildCommand, benchName, role)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	if r.Profile != "" {
		cmd.Env = append(cmd.Env, profileVariable+"="+filepath.Join(r.Profile, fmt.Sprintf("%s-%d.pprof", label, r.Number)))
	}
	cmd.Stderr = r.Log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", label, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", label, err)
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", label, err)
	}
	return &Process{name: label, cmd: cmd, in: in, out: json.NewDecoder(bufio.NewReader(out)), w: NewWriter(in)}, nil
}

// Name is the label of Start.
func (p *Process) Name() string { return p.name }

// PID is the child's process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Send writes a message to the child.
func (p *Process) Send(v any) error {
	if err := p.w.Write(v); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// Receive reads a message of the child, in order, from one goroutine.
func (p *Process) Receive(v any) error {
	if err := p.out.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// Stop closes the child's input and waits; a child that does not end is killed.
func (p *Process) Stop() error {
	_ = p.in.Close()
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	if !late.Stop() && err != nil {
		return fmt.Errorf("%s did not end within %s", p.name, patience)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s: %s", p.name, exit)
	}
	return err
}
