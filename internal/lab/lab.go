// Package lab is the composition root of leeway-lab: the commands that measure Leeway and replay what it recorded. Below it are the
// benches, the emulated networks, the load sessions and the baselines. They import the product's packages. The product imports none of
// them, so that the operator's program holds nothing of the lab. Everything is callable from a test through Run.
package lab

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/leeway-video/leeway/internal/buildinfo"
	"github.com/leeway-video/leeway/internal/cmdline"
)

// Streams are the standard streams of a run.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// cli is the command line.
type cli struct {
	Bench    benchCmd    `cmd:"" help:"Measure, and compare with baselines of the same run."`
	Load     loadCmd     `cmd:"" help:"Test what WebRTC sessions, or viewers of Leeway, a server can bear."`
	Arm      armCmd      `cmd:"" help:"Hold WebRTC sessions for a load controller."`
	Schedule scheduleCmd `cmd:"" help:"Decide again what a viewer recorded."`
	Version  versionCmd  `cmd:"" help:"Print what this program was built of."`

	BenchChild benchChildCmd `cmd:"" hidden:"" name:"bench-child"`
}

// Main runs this process as leeway-lab and returns its exit code.
func Main() int {
	return cmdline.Main("leeway-lab", func(ctx context.Context) error {
		return Run(ctx, os.Args[1:], Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	})
}

// Run parses args (without the program's name) and does what they say until it is done or ctx ends.
func Run(ctx context.Context, args []string, s Streams) error {
	p := cmdline.Program{
		Name: "leeway-lab", Description: "Measures Leeway on emulated networks, beside baselines. See docs/netlab.md and docs/benchmarks.md.",
		Stdout: s.Stdout, Stderr: s.Stderr,
	}
	return p.Run(ctx, &cli{}, args, &s)
}

type versionCmd struct{}

// Run prints the build.
func (versionCmd) Run(s *Streams) error {
	_, err := fmt.Fprintln(s.Stdout, buildinfo.Describe("leeway-lab"))
	return err
}
