package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/clusterbench"
	"github.com/leeway-video/leeway/internal/lab/bench/idlebench"
	"github.com/leeway-video/leeway/internal/lab/bench/joinbench"
	"github.com/leeway-video/leeway/internal/lab/bench/loadbench"
	"github.com/leeway-video/leeway/internal/lab/bench/natbench"
	"github.com/leeway-video/leeway/internal/lab/bench/outagebench"
	"github.com/leeway-video/leeway/internal/lab/bench/peersbench"
	"github.com/leeway-video/leeway/internal/lab/bench/probebench"
	"github.com/leeway-video/leeway/internal/lab/bench/swarmbench"
	"github.com/leeway-video/leeway/internal/lab/bench/trackerbench"
	"github.com/leeway-video/leeway/internal/lab/bench/transferbench"
	"github.com/leeway-video/leeway/internal/lab/bench/transportbench"
	"github.com/leeway-video/leeway/internal/lab/bench/turnbench"
)

// benches are what `leeway-lab bench` can run.
func benches() []bench.Bench {
	return []bench.Bench{swarmbench.Bench, transferbench.Bench, transportbench.Bench, joinbench.Bench, idlebench.Bench, trackerbench.Bench, loadbench.Bench, clusterbench.Bench, turnbench.Bench, natbench.Bench, outagebench.Bench, peersbench.Bench, probebench.Bench}
}

type benchCmd struct {
	Name    string   `arg:"" optional:"" help:"Which bench; the list is printed when left out."`
	Case    []string `help:"Only these cases; patterns as in sweep/*." placeholder:"NAME"`
	Runs    int      `help:"Runs of each case; the median and the range are printed." default:"3" placeholder:"K"`
	JSON    bool     `name:"json" help:"One object a line, one line a case."`
	Check   bool     `help:"Exit 1 when a goal is missed."`
	Profile string   `help:"Folder for CPU profiles of the processes that are started." placeholder:"DIR" type:"existingdir"`
	Plot    string   `help:"File for the picture of a case that draws one (transport: 1 and R2); the last run's stays." placeholder:"SVG" type:"path"`
}

// Help is shown below the usage.
func (benchCmd) Help() string {
	return "Examples:\n  leeway-lab bench transfer\n  leeway-lab bench transfer --case 'sweep/*' --runs 1 --json\n  leeway-lab bench swarm --case polluted --case brown-out --runs 1"
}

// Run runs one bench.
func (c *benchCmd) Run(ctx context.Context, s *Streams) error {
	for _, b := range benches() {
		if b.Name == c.Name {
			return bench.Execute(ctx, b, bench.Options{
				Cases: c.Case, Runs: c.Runs, JSON: c.JSON, Check: c.Check, Profile: c.Profile, Plot: c.Plot,
			}, s.Stdout, s.Stderr)
		}
	}
	var list strings.Builder
	for _, b := range benches() {
		fmt.Fprintf(&list, "%-10s %s\n", b.Name, b.About)
		var further []string // a family of cases by its pattern
		for _, k := range b.Cases {
			if !k.Extra {
				fmt.Fprintf(&list, "  %-16s %s\n", k.Name, k.About)
				continue
			}
			if family, _, several := strings.Cut(k.Name, "/"); several {
				k.Name = family + "/*"
			}
			if !slices.Contains(further, k.Name) {
				further = append(further, k.Name)
			}
		}
		if len(further) > 0 {
			fmt.Fprintf(&list, "  with --case only: %s\n", strings.Join(further, ", "))
		}
	}
	if c.Name != "" {
		return cmdline.Usage(fmt.Errorf("no bench is called %q; there is\n%s", c.Name, list.String()))
	}
	_, err := fmt.Fprint(s.Stdout, list.String())
	return err
}

type benchChildCmd struct {
	Bench string `arg:""`
	Role  string `arg:""`
}

// Run is one process of a bench; the bench talks to it.
func (c *benchChildCmd) Run(ctx context.Context, s *Streams) error {
	return bench.Child(ctx, benches(), c.Bench, c.Role, s.Stdin, s.Stdout)
}
