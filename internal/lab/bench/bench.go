// Package bench is the frame of `leeway-lab bench`: it runs the cases of a bench several times and prints each figure's
// median and range beside its goal and the value published elsewhere.
//
// A bench is a value: a name and cases. A case's Run measures once and returns its figures by name; baselines run in
// the same call and are figures too, so that a ratio compares two halves of one run. A new bench is a package of its
// own below this one, with a variable of type Bench that internal/lab lists.
//
// Parts that need a process of their own are roles: the bench starts this same program again (Start) and talks to it
// in JSON lines. Lock-free: a bench runs one case at a time.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Bench is one named bench.
type Bench struct {
	Name  string
	About string // one sentence
	Cases []Case
	// Sets are cases that are asked for together: names in the order in which they are measured, by a name that --case takes.
	Sets map[string][]string
	// Roles are what a child process of this bench can be (Start).
	Roles map[string]Role
}

// Case is one situation that is measured.
type Case struct {
	Name  string // parts are joined by slashes
	About string
	// Extra cases run only when --case names them, or a pattern does.
	Extra   bool
	Figures []Figure
	// Needs, if there is one, says what this machine lacks for the case. It is then skipped, aloud; one that was named fails.
	Needs func(context.Context) error
	// Takes, if there is one, is about how long a run takes after so many that count.
	Takes func(claimed int) time.Duration
	// Run measures once.
	Run func(context.Context, *Run) (Sample, error)
}

// Figure is what a case reports under one name.
type Figure struct {
	Name, Unit string
	Goal       string // ">= 0.85", "<= 1.15" or nothing
	Every      bool   // the goal is of every run, not of the median
	Optional   bool   // runs may lack it, as where another program is missing; any other goal is missed if no run has the figure, or one lacks it that is of every run
	Reference  *Reference
}

// Reference is a value published elsewhere.
type Reference struct {
	Value  float64 `json:"value"`
	Source string  `json:"source"`
}

// Sample is what one run measured.
type Sample struct {
	Values map[string]float64 // by the name of the figure; one that is missing was not measured
	// Void says why nothing is claimed from this machine or run. Such runs are left out where there are others; where
	// there are none, goals are neither met nor missed.
	Void string
}

// Run is what a case gets.
type Run struct {
	Number  int       // 0 first
	Claimed int       // runs of the case before this one that are not void
	Log     io.Writer // progress, for people
	Profile string    // folder for CPU profiles of child processes; empty is none
	Plot    string    // file for the picture of a case that draws one; empty is none
}

// Logf writes a line of progress.
func (r *Run) Logf(format string, a ...any) { fmt.Fprintf(r.Log, format+"\n", a...) }

// Options of Execute.
type Options struct {
	Cases   []string // names, patterns as path.Match has them, or sets; none is every case that is not Extra
	Runs    int
	JSON    bool
	Check   bool
	Profile string
	Plot    string
}

// ErrMissed is returned with Options.Check when a goal was missed.
var ErrMissed = errors.New("bench: a goal was missed")

// Execute runs a bench. Results go to stdout as they come, progress to stderr.
func Execute(ctx context.Context, b Bench, o Options, stdout, stderr io.Writer) error {
	cases, err := b.choose(o.Cases)
	if err != nil {
		return err
	}
	machine := describe(ctx)
	if !o.JSON {
		fmt.Fprintf(stdout, "%s: %s\n%s\n", b.Name, b.About, machine)
	}
	plan(b.Name, cases, o.Runs, stderr)
	missed := false
	var failed error
	for _, c := range cases {
		if lack := c.lack(ctx); lack != nil && len(o.Cases) == 0 {
			fmt.Fprintf(stderr, "%s %s: skipped: %v\n", b.Name, c.Name, lack)
			continue
		} else if lack != nil {
			return fmt.Errorf("bench %s, case %s: %w", b.Name, c.Name, lack)
		}
		result, err := measure(ctx, b.Name, c, o, stderr)
		if err != nil {
			err = fmt.Errorf("bench %s, case %s: %w", b.Name, c.Name, err)
			fmt.Fprintln(stderr, err)
			if failed = errors.Join(failed, err); ctx.Err() != nil {
				return failed
			}
		}
		if result == nil {
			continue // the other cases may take an hour that is not lost
		}
		result.Machine = machine
		missed = missed || result.missed()
		if o.JSON {
			err = result.writeJSON(stdout)
		} else {
			err = result.writeTable(stdout)
		}
		if err != nil {
			return err
		}
	}
	if failed == nil && missed && o.Check {
		return ErrMissed
	}
	return failed
}

func (c Case) lack(ctx context.Context) error {
	if c.Needs == nil {
		return nil
	}
	return c.Needs(ctx)
}

// plan says what a long measurement will take, so that the person at the terminal knows when to come back.
func plan(name string, cases []Case, runs int, w io.Writer) {
	var each []string
	total := time.Duration(0)
	for _, c := range cases {
		if c.Takes == nil {
			return
		}
		for n := range max(runs, 1) {
			total += c.Takes(n)
		}
		each = append(each, fmt.Sprintf("%s %s", c.Name, c.Takes(1)))
	}
	fmt.Fprintf(w, "%s: about %s for %d runs of each case; a run: %s\n", name, total.Round(time.Minute), max(runs, 1), strings.Join(each, ", "))
}

// choose returns the cases that sets name, in their order, and then those that the patterns name, in the bench's.
func (b Bench) choose(patterns []string) ([]Case, error) {
	var out []Case
	matched, taken := map[string]bool{}, map[string]bool{}
	for _, p := range patterns {
		for _, name := range b.Sets[p] {
			i := slices.IndexFunc(b.Cases, func(c Case) bool { return c.Name == name })
			if matched[p] = true; !taken[name] {
				out, taken[name] = append(out, b.Cases[i]), true
			}
		}
	}
	for _, c := range b.Cases {
		take := len(patterns) == 0 && !c.Extra
		for _, p := range patterns {
			ok, err := path.Match(p, c.Name)
			if err != nil {
				return nil, fmt.Errorf("bench %s: case pattern %q: %w", b.Name, p, err)
			}
			if ok {
				matched[p], take = true, true
			}
		}
		if take && !taken[c.Name] {
			out = append(out, c)
		}
	}
	for _, p := range patterns {
		if !matched[p] {
			return nil, fmt.Errorf("bench %s has no case %q; it has %s", b.Name, p, strings.Join(b.names(), ", "))
		}
	}
	return out, nil
}

func (b Bench) names() []string {
	names := slices.Sorted(maps.Keys(b.Sets))
	for _, c := range b.Cases {
		names = append(names, c.Name)
	}
	return names
}

// measure runs a case. A run that fails is told of in the error; what the others measured is there all the same.
func measure(ctx context.Context, name string, c Case, o Options, stderr io.Writer) (*Result, error) {
	result := &Result{Bench: name, Case: c.Name}
	var samples, void []Sample
	var took []float64
	var failed error
	for i := range max(o.Runs, 1) {
		fmt.Fprintf(stderr, "%s %s: run %d of %d\n", name, c.Name, i+1, max(o.Runs, 1))
		started := time.Now()
		sample, err := c.Run(ctx, &Run{Number: i, Claimed: len(samples) - len(void), Log: stderr, Profile: o.Profile, Plot: o.Plot})
		if ctx.Err() != nil {
			return nil, errors.Join(failed, err, ctx.Err())
		}
		if err != nil {
			fmt.Fprintf(stderr, "%s %s: run %d failed: %v\n", name, c.Name, i+1, err)
			failed = errors.Join(failed, err)
			result.Failed++
			continue
		}
		if samples = append(samples, sample); sample.Void != "" {
			void = append(void, sample)
			fmt.Fprintf(stderr, "%s %s: nothing is claimed: %s\n", name, c.Name, sample.Void)
		}
		took = append(took, time.Since(started).Seconds())
		fmt.Fprintf(stderr, "%s %s: %.1f s; %d of %d runs count\n", name, c.Name, took[len(took)-1], len(samples)-len(void), i+1)
	}
	if len(samples) == 0 {
		return nil, failed
	}
	for _, v := range void {
		if !slices.Contains(result.Void, v.Void) {
			result.Void = append(result.Void, v.Void)
		}
	}
	result.Certified = len(samples) - len(void)
	if result.Certified > 0 { // what the others measured stands
		result.LeftOut = len(void)
		samples = slices.DeleteFunc(samples, func(s Sample) bool { return s.Void != "" })
	}
	result.Runs, result.Seconds = len(samples), Figure{}.of(took, true).Median
	if err := result.sum(c, samples); err != nil {
		return nil, errors.Join(failed, err)
	}
	return result, failed
}

// sum makes the figures of what was measured.
func (r *Result) sum(c Case, samples []Sample) error {
	values := map[string][]float64{}
	for _, s := range samples {
		for k, v := range s.Values {
			values[k] = append(values[k], v)
		}
	}
	for _, f := range c.Figures {
		if v := values[f.Name]; len(v) > 0 {
			m := f.of(v, r.Certified == 0)
			if len(v) < len(samples) {
				m.Runs = len(v)
				if m.Met != nil && f.Every && !f.Optional {
					*m.Met = false
				}
			}
			r.Figures = append(r.Figures, m)
			delete(values, f.Name)
		} else if f.Goal != "" && !f.Optional {
			r.Unmeasured = append(r.Unmeasured, f.Name)
		}
	}
	for k := range values {
		return fmt.Errorf("figure %q is not declared", k)
	}
	return nil
}
