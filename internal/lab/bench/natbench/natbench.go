// Package natbench is `leeway-lab bench nat`: two real viewers for every row of a table of networks, each behind a gateway of
// that kind, meet through a real tracker, seed and relay, or do not. A row says how its newcomer is to be served and why not
// better; what comes of it is seen by the viewers themselves.
package natbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/viewer"
)

const benchName = "nat"

// meetsWithin is how soon a row is to be what it is.
const meetsWithin = 5 * time.Second

// atOnce is how many rows play at the same time.
const atOnce = 6

// Bench is what `leeway-lab bench` runs.
var Bench = bench.Bench{
	Name:  benchName,
	About: "Pairs of viewers behind every combination of NATs: which pairs meet, by which way, how soon, and why not.",
	Cases: append([]bench.Case{
		{Name: "table", About: "all rows", Figures: tableFigures, Needs: inLab, Run: tableOf(rows)},
		{Name: "chromium", About: "rows with Chromium as one end, or both", Figures: tableFigures, Needs: inLabWithBrowser, Run: tableOf(browserRows)},
		{Name: "smoke", About: "four rows, and one with Chromium", Extra: true, Figures: untimed(tableFigures), Needs: inLabWithBrowser, Run: tableOf(some("restricted-restricted/chromium", "cone-cone", "restricted-restricted", "symmetric-symmetric", "restricted-symmetric/plain"))},
		{Name: "again", About: "pairs that cannot meet, for longer than a pair is left alone", Extra: true, Figures: tableFigures, Needs: inLab, Run: tableOf(longer(some("restricted-symmetric/plain", "symmetric-symmetric/plain")))},
		{Name: "relayed", About: "two symmetric NATs, and neither seed nor origin can serve", Figures: relayedFigures, Needs: inLab, Run: relayed(headlessBoth)},
		{Name: "relayed/chromium", About: "the same, and both are Chromium", Figures: relayedFigures, Needs: inLabWithBrowser, Run: relayed(chromiumBoth)},
		{Name: "rebinding", About: "a NAT forgets every mapping in mid-play", Figures: rebindingFigures, Needs: inLab, Run: rebinding},
		{Name: "roaming", About: "a viewer changes its network in mid-play, or sleeps for a minute", Figures: roamingFigures, Needs: inLab, Run: roaming(roamers)},
		{Name: "roaming/chromium", About: "the same, and the viewer is Chromium", Figures: roamingFigures, Needs: inLabWithBrowser, Run: roaming(browserRoamers)},
	}, single()...),
	Roles: map[string]bench.Role{roleViewer: watchRole},
}

var tableFigures = []bench.Figure{
	{Name: "rows", Unit: ""},
	{Name: "as_expected", Unit: "of 1", Goal: ">= 1"},
	{Name: "slowest", Unit: "s", Goal: fmt.Sprintf("<= %g", meetsWithin.Seconds())},
	{Name: "slowest_vs_open", Unit: "×"},
	{Name: "stalls", Unit: "", Goal: "<= 0"},
	{Name: "failed_again", Unit: "", Goal: "<= 0"},
	{Name: "relay_as_offload", Unit: "of 1", Goal: "<= 0"}, // where a relay is the way
}

// untimed has nothing claimed that a machine with other work may miss by being slow.
func untimed(figures []bench.Figure) []bench.Figure {
	figures = slices.Clone(figures)
	for i, f := range figures {
		if f.Name == "slowest" || f.Name == "stalls" {
			figures[i].Goal = ""
		}
	}
	return figures
}

// single are the rows, each as a case.
func single() (out []bench.Case) {
	for _, r := range rows {
		out = append(out, bench.Case{Name: "row/" + r.name(), About: r.want.String(), Extra: true, Figures: tableFigures, Needs: inLab, Run: tableOf([]row{r})})
	}
	for _, r := range browserRows {
		out = append(out, bench.Case{Name: "row/" + r.name(), About: r.want.String(), Extra: true, Figures: tableFigures, Needs: inLabWithBrowser, Run: tableOf([]row{r})})
	}
	for _, r := range slices.Concat(roamers, browserRoamers) {
		c := bench.Case{Name: "roaming/" + r.title(), About: r.want.String(), Extra: true, Figures: roamingFigures, Needs: inLab, Run: roaming([]roamer{r})}
		if r.browser {
			c.Needs = inLabWithBrowser
		}
		out = append(out, c)
	}
	return out
}

func inLab(context.Context) error { return netlab.Available() }

// some are the rows of these names.
func some(names ...string) (out []row) {
	for _, r := range slices.Concat(browserRows, rows) { // what takes longest begins first
		if slices.Contains(names, r.name()) {
			out = append(out, r)
		}
	}
	return out
}

// longer has rows watched until a pair that failed could have been introduced again.
func longer(list []row) []row {
	for i := range list {
		list[i].watch = 90 * time.Second
	}
	return list
}

// verdict is what came of a row.
type verdict struct {
	row
	got    result        // when it was watched long enough
	since  time.Duration // from when on it was so, by the newcomer's clock
	stalls int64
	failed int64 // links to viewers and seeds that never opened, of both
	lost   int   // links that ended when a NAT had lost its mappings, of both
	err    error

	newcomer viewer.Summary // its last word
	course   string         // how links and failures of both came and went
}

func (v verdict) good() bool {
	bytes := v.newcomer.Stats.Bytes
	served := !v.hidden || bytes["peer_relay"] > 0 && bytes["peer"] == 0
	return v.err == nil && v.got == v.want && v.lost == 0 && served
}

// tableOf measures rows.
func tableOf(list []row) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
		s, err := build(ctx, r, list)
		if err != nil {
			return sample, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		verdicts := s.play(ctx, r, list)
		if ctx.Err() != nil {
			return sample, ctx.Err()
		}
		describe(r.Log, verdicts)
		report, err := s.lab.Report()
		if err != nil {
			return sample, err
		}
		r.Logf("lab: %v", report)
		return figures(verdicts), nil
	}
}

// play has all rows played, some at a time.
func (s *stage) play(ctx context.Context, r *bench.Run, list []row) []verdict {
	out := make([]verdict, len(list))
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, w := range list {
		for range w.weight() {
			free <- struct{}{}
		}
		wg.Go(func() {
			out[i] = s.watch(ctx, r, i, w)
			for range w.weight() {
				<-free
			}
		})
	}
	wg.Wait()
	return out
}

func figures(verdicts []verdict) bench.Sample {
	var good, again, offload float64
	var stalls int64
	var slowest, open time.Duration
	for _, v := range verdicts {
		if v.good() {
			good++
		}
		stalls += v.stalls
		if v.want.way == byRelay {
			offload = max(offload, v.newcomer.Offload)
		}
		slowest = max(slowest, v.since)
		if v.a == public && v.b == public {
			open = v.since
		}
		if pairs := int64(1); v.want.way == seedOnly && v.failed > 2*pairs { // each side counts the one attempt
			again++
		}
	}
	values := map[string]float64{
		"rows": float64(len(verdicts)), "as_expected": good / float64(len(verdicts)), "slowest": slowest.Seconds(),
		"stalls": float64(stalls), "failed_again": again, "relay_as_offload": offload,
	}
	if open > 0 {
		values["slowest_vs_open"] = slowest.Seconds() / open.Seconds()
	}
	return bench.Sample{Values: values}
}

// describe prints the table.
func describe(w io.Writer, verdicts []verdict) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\texpected\tcame to\tafter\tstalls\t")
	for _, v := range verdicts {
		fmt.Fprintf(t, "%s\t%v\t%v\t%.1f s\t%d\t%s\n", v.name(), v.want, v.got, v.since.Seconds(), v.stalls, remark(v.err, v.good()))
	}
	_ = t.Flush()
	for _, v := range verdicts {
		if !v.good() || v.since > meetsWithin {
			fmt.Fprintf(w, "  %s:%s\n", v.name(), v.course)
		}
	}
}

// remark is what is to be said of a row that is not as it should be.
func remark(err error, good bool) string {
	switch {
	case err != nil:
		return strings.ReplaceAll(err.Error(), "\n", " ")
	case !good:
		return "NOT AS EXPECTED"
	}
	return ""
}
