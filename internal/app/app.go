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
	"strings"

	"github.com/leeway-video/leeway/internal/buildinfo"
	"github.com/leeway-video/leeway/internal/cmdline"
)

// Version of the Go binary and of the script that it serves; a test compares it with the npm package's.
const Version = "0.1.0"

// Env is what a run may touch of the process around it.
type Env struct {
	Stdout, Stderr io.Writer
	Environ        []string // KEY=value, as os.Environ gives it
	Terminal       bool     // Stderr is a terminal: logs are text, not JSON
	Colors         bool     // Stdout is a terminal that shows colors

	service string // whose section of the configuration this process reads; empty: all
}

// Process is the Env of the running process.
func Process() Env {
	e := Env{Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Terminal: isTerminal(os.Stderr)}
	e.Colors = isTerminal(os.Stdout) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
	return e
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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

// Main runs this process as leeway and returns its exit code.
func Main() int {
	return cmdline.Main("leeway", func(ctx context.Context) error { return Run(ctx, os.Args[1:], Process()) })
}

// Run parses args (without the program's name) and does what they say until it is done or ctx ends. A service that ctx
// ended has shut down cleanly and returns nil; of another command the work is not done, and a script must not go on.
func Run(ctx context.Context, args []string, env Env) error {
	var flags cli
	r := &run{env: env, flags: &flags}
	p := cmdline.Program{Name: "leeway", Description: "Peer-assisted video delivery that gives way.", Version: buildinfo.Describe("leeway " + Version), Stdout: env.Stdout, Stderr: env.Stderr, Default: keyDefault()}
	err := p.Run(ctx, &flags, args, r)
	switch {
	case ctx.Err() == nil || !errors.Is(err, context.Canceled):
		return err
	case r.serves:
		return nil
	}
	return fmt.Errorf("interrupted: %w", err)
}

// newLogger writes to w: text where a person reads, JSON where a machine does. format and level come from the
// configuration. Lines are bounded by message (logQuota).
func newLogger(w io.Writer, terminal bool, c LogConfig) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, cmdline.Usage(fmt.Errorf("log.level: %q is no level (debug, info, warn or error)", c.Level))
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration { // a count of nanoseconds in JSON
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}
	switch {
	case c.Format == "text", c.Format == "auto" && terminal:
		return slog.New(newLogQuota(redactingHandler{slog.NewTextHandler(w, options)})), nil
	case c.Format == "json", c.Format == "auto":
		return slog.New(newLogQuota(redactingHandler{slog.NewJSONHandler(w, options)})), nil
	}
	return nil, cmdline.Usage(fmt.Errorf("log.format: %q is no format (auto, text or json)", c.Format))
}
