// Package cmdline parses the command lines of leeway and leeway-lab, and tells mistakes of the caller from failures.
package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// UsageError is the caller's mistake: a wrong flag, file, name or setting.
type UsageError struct{ error }

// Usage makes an error a mistake of the caller.
func Usage(err error) error { return &UsageError{err} }

// Unwrap returns what was said.
func (e *UsageError) Unwrap() error { return e.error }

// ExitCode is 0 for nil, 2 for a mistake of the caller, what the error itself says if it has a method ExitStatus, and 1 for everything else.
func ExitCode(err error) int {
	var usage *UsageError
	var coded interface{ ExitStatus() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	case errors.As(err, &coded):
		return coded.ExitStatus()
	}
	return 1
}

// Main runs a program until it is done, interrupted or terminated, reports its error and returns its exit code.
func Main(name string, run func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the first one's shutdown
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	return ExitCode(err)
}

// Program is what the help of a program says about it.
type Program struct {
	Name, Description string
	Version           string // printed by --version, where the grammar has a kong.VersionFlag
	Stdout, Stderr    io.Writer

	// Default is what a flag without a default tag stands for where it is not given; empty, or no function: the help says nothing of it.
	Default func(*kong.Value) string
}

// help is the line about a flag or an argument, with its default.
func (p Program) help(v *kong.Value) string {
	line := kong.DefaultHelpValueFormatter(v)
	value := v.Default
	if !v.HasDefault && p.Default != nil {
		value = p.Default(v)
	}
	if slices.Contains([]string{"", "0", "0s", "false"}, value) || strings.Contains(strings.ToLower(line), "default") {
		return line
	}
	return strings.TrimSpace(strings.TrimSuffix(line, ".") + " (default " + value + ").")
}

// Run parses args (without the program's name) into grammar and runs the command that they name. Commands get ctx and binds.
// Without args it prints the help; `help COMMAND` is `COMMAND --help`.
func (p Program) Run(ctx context.Context, grammar any, args []string, binds ...any) error {
	helped := false
	parser, err := kong.New(grammar,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { helped = true }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.ValueFormatter(p.help),
		kong.Vars{"version": p.Version},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return fmt.Errorf("build the command line of %s: %w", p.Name, err)
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	case args[0] == completeWord:
		return complete(p.Stdout, parser.Model.Node, args[1:])
	}
	parsed, err := parser.Parse(args)
	if helped {
		return nil
	}
	if err != nil {
		return Usage(fmt.Errorf("%w (%[2]s --help lists commands, %[2]s COMMAND --help its flags)", err, p.Name))
	}
	return parsed.Run(binds...)
}
