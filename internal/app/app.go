// Package app is the composition root of the binary: the only place that knows flags, the environment, the configuration
// file and every adapter. Everything is callable from a test through Run.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/leeway-video/leeway/internal/buildinfo"
)

// Version of the Go binary and of the script that it serves; a test compares it with the npm package's.
const Version = "0.1.0"

// Env is what a run may touch of the process around it.
type Env struct {
	Stdout, Stderr io.Writer
	Environ        []string // KEY=value, as os.Environ gives it
	Terminal       bool     // Stderr is a terminal: logs are text, not JSON

	service string // whose section of the configuration this process reads; empty: all
}

// Process is the Env of the running process.
func Process() Env {
	info, err := os.Stderr.Stat()
	return Env{
		Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}
}

// Getenv returns the last value of key, or nothing.
func (e Env) Getenv(key string) string {
	value := ""
	for _, kv := range e.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			value = v
		}
	}
	return value
}

// usageError is the caller's mistake: a wrong flag, file or setting.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// ExitCode is 0 for nil, 2 for a mistake in flags or configuration and 1 for everything else.
func ExitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	}
	return 1
}

// Run parses args (without the program's name) and does what they say until it is done or ctx ends; a service that ctx
// ended has shut down cleanly and returns nil.
func Run(ctx context.Context, args []string, env Env) error {
	var flags cli
	helped := false
	parser, err := kong.New(&flags,
		kong.Name("leeway"),
		kong.Description("Peer-assisted video delivery that gives way."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(int) { helped = true }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return fmt.Errorf("app: build the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if helped {
		return nil
	}
	if err != nil {
		return &usageError{fmt.Errorf("%w (leeway --help lists commands, leeway COMMAND --help its flags)", err)}
	}
	err = parsed.Run(&run{env: env, flags: &flags})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// newLogger writes to w: text where a person reads, JSON where a machine does. format and level come from the
// configuration. Lines are bounded by message (logQuota).
func newLogger(w io.Writer, terminal bool, c LogConfig) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, &usageError{fmt.Errorf("log.level: %q is no level (debug, info, warn or error)", c.Level)}
	}
	options := &slog.HandlerOptions{Level: level}
	switch {
	case c.Format == "text", c.Format == "auto" && terminal:
		return slog.New(newLogQuota(redactingHandler{slog.NewTextHandler(w, options)})), nil
	case c.Format == "json", c.Format == "auto":
		return slog.New(newLogQuota(redactingHandler{slog.NewJSONHandler(w, options)})), nil
	}
	return nil, &usageError{fmt.Errorf("log.format: %q is no format (auto, text or json)", c.Format)}
}

// buildInfo is what `leeway version` prints.
func buildInfo() string {
	commit, changed := buildinfo.Commit()
	if commit != "" {
		commit = " commit " + commit
	}
	if changed {
		commit += " with local changes"
	}
	return fmt.Sprintf("leeway %s%s %s %s/%s", Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
