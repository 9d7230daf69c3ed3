package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// figure is a metric of the benchmark, with the least change that is shown.
type figure struct {
	name, short string
	least       float64
}

// nothing is the prefix of rows that change only the dice: what they move is noise.
const nothing = "nothing"

// asItIs is the row without a change.
const asItIs = "as it is"

// table compares rows with the source as it is.
type table struct {
	figures []figure
	base    map[string][]map[string]float64
	noise   map[string]float64 // by world and figure
}

// print writes the figures of the source as it is, with the noise, and what each row changes.
func (s *suite) print(w io.Writer, known []result) {
	t := table{s.figures, map[string][]map[string]float64{}, map[string]float64{}}
	for _, r := range known {
		if r.Row == asItIs {
			maps.Copy(t.base, r.Worlds)
		}
	}
	for _, r := range known {
		if strings.HasPrefix(r.Row, nothing) {
			t.hear(r)
		}
	}
	fmt.Fprint(w, "| world |")
	for _, f := range t.figures {
		fmt.Fprintf(w, " %s |", f.short)
	}
	fmt.Fprint(w, "\n")
	for _, world := range worldsOf(t.base) {
		fmt.Fprintf(w, "| %s |", world)
		for _, f := range t.figures {
			fmt.Fprintf(w, " %.4g ± %.2g |", mean(t.base[world], f.name), t.noise[world+f.name])
		}
		fmt.Fprint(w, "\n")
	}
	for _, r := range known {
		if r.Row != asItIs {
			fmt.Fprintf(w, "| %s | %s |\n", r.Row, t.changes(r))
		}
	}
}

// hear takes what a row that changes nothing moves for noise.
func (t *table) hear(r result) {
	for world, seeds := range r.Worlds {
		for _, f := range t.figures {
			t.noise[world+f.name] = max(t.noise[world+f.name], math.Abs(mean(seeds, f.name)-mean(t.base[world], f.name)))
		}
	}
}

// changes lists the figures that a row moves beyond the noise and beyond half of the range of the differences seed by seed: their mean, ± that half.
func (t *table) changes(r result) string {
	var out []string
	for _, world := range worldsOf(r.Worlds) {
		seeds, base := r.Worlds[world], t.base[world]
		if len(seeds) != len(base) {
			continue
		}
		var moved []string
		for _, f := range t.figures {
			low, high, sum := math.Inf(1), math.Inf(-1), 0.0
			for i := range seeds {
				d := seeds[i][f.name] - base[i][f.name]
				low, high, sum = min(low, d), max(high, d), sum+d
			}
			d, spread := sum/float64(len(seeds)), (high-low)/2
			if math.Abs(d) > max(t.noise[world+f.name], f.least, spread) {
				moved = append(moved, fmt.Sprintf("%s %+.3g ± %.2g", f.short, d, spread))
			}
		}
		if len(moved) == 0 {
			moved = []string{nothing}
		}
		out = append(out, world+": "+strings.Join(moved, ", "))
	}
	return strings.Join(out, "; ")
}

func mean(seeds []map[string]float64, figure string) float64 {
	sum := 0.0
	for _, s := range seeds {
		sum += s[figure]
	}
	return sum / float64(max(1, len(seeds)))
}

func worldsOf(m map[string][]map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }
