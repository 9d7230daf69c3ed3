// Package docs holds documents to what they take from elsewhere in the repository.
package docs

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func number(text string) (float64, error) {
	return strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
}

// measured is the median of a figure in docs/benchmarks/results.jsonl; false where no result is of that case.
func measured(t *testing.T, results []result, bench, name, figure string) (float64, bool) {
	t.Helper()
	for _, r := range results {
		if r.Bench != bench || r.Case != name {
			continue
		}
		for _, f := range r.Figures {
			if f.Name == figure {
				return f.Median, true
			}
		}
		t.Fatalf("bench %s --case %s has no figure %s in docs/benchmarks/results.jsonl", bench, name, figure)
	}
	return 0, false
}

// result is a line of docs/benchmarks/results.jsonl: a case and its figures.
type result struct {
	Bench, Case string
	Figures     []struct {
		Name   string
		Median float64
	}
}

func results(t *testing.T) []result {
	t.Helper()
	var all []result
	for line := range strings.Lines(page(t, "benchmarks/results.jsonl")) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestSizingIsWhatWasMeasured: each figure of docs/operations/sizing.md that names its row is that row's, to the two digits that scripts/sizing.mjs
// writes.
func TestSizingIsWhatWasMeasured(t *testing.T) {
	turned := map[string]func(float64) float64{
		" kB": func(v float64) float64 { return v / 1e3 }, " MB": func(v float64) float64 { return v / 1e6 },
		" s": func(v float64) float64 { return v }, " Mbit/s": func(v float64) float64 { return 8000 / v }, "": func(v float64) float64 { return v },
	}
	recorded, operations := results(t), page(t, "operations/sizing.md")
	known := 0
	for _, m := range regexp.MustCompile(`([\d.,]+)( kB| MB| s| Mbit/s)?<!-- (\S+) (\S+) (\S+) -->`).FindAllStringSubmatch(operations, -1) {
		shown, err := number(m[1])
		if err != nil {
			t.Fatal(err)
		}
		value, ok := measured(t, recorded, m[3], m[4], m[5])
		if !ok {
			t.Errorf("bench %s --case %s is not in docs/benchmarks/results.jsonl", m[3], m[4])
			continue
		}
		known++
		if want := turned[m[2]](value); math.Abs(shown-want) > 0.055*want {
			t.Errorf("bench %s --case %s: %s is %s%s in docs/operations/sizing.md and %.3g in docs/benchmarks/results.jsonl; node scripts/benchmarks.mjs writes both",
				m[3], m[4], m[5], m[1], m[2], want)
		}
	}
	if known < 9 {
		t.Errorf("only %d figures name a row that is there: has the form changed?", known)
	}
}
