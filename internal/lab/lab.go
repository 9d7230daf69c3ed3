// Package lab is the composition root of leeway-lab: the commands that measure Leeway and replay what it recorded. Below it are the
// benches, the emulated networks, the load sessions and the baselines. They import the product's packages. The product imports none of
// them, so that the operator's program holds nothing of the lab. Everything is callable from a test through Run.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/leeway-video/leeway/internal/buildinfo"
)

// Streams are the standard streams of a run.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// cli is the command line.
type cli struct {
	Bench    benchCmd    `cmd:"" help:"Measure, and compare with baselines of the same run."`
	Schedule scheduleCmd `cmd:"" help:"Decide again what a viewer recorded."`
	Version  versionCmd  `cmd:"" help:"Print what this program was built of."`

	BenchChild benchChildCmd `cmd:"" hidden:"" name:"bench-child"`
}

// usageError is the caller's mistake: a wrong flag or name.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// ExitCode is 0 for nil, 2 for a mistake on the command line and 1 for everything else.
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

// Run parses args (without the program's name) and does what they say until it is done or ctx ends.
func Run(ctx context.Context, args []string, s Streams) error {
	var flags cli
	helped := false
	parser, err := kong.New(&flags,
		kong.Name("leeway-lab"),
		kong.Description("Measures Leeway on emulated networks, beside baselines. See docs/netlab.md and docs/benchmarks.md."),
		kong.Writers(s.Stdout, s.Stderr),
		kong.Exit(func(int) { helped = true }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return fmt.Errorf("lab: build the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if helped {
		return nil
	}
	if err != nil {
		return &usageError{fmt.Errorf("%w (leeway-lab --help lists commands, leeway-lab COMMAND --help its flags)", err)}
	}
	return parsed.Run(&s)
}

type versionCmd struct{}

// Run prints the build.
func (versionCmd) Run(s *Streams) error {
	commit, changed := buildinfo.Commit()
	if commit != "" {
		commit = " commit " + commit
	}
	if changed {
		commit += " with local changes"
	}
	_, err := fmt.Fprintf(s.Stdout, "leeway-lab%s %s %s/%s\n", commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
