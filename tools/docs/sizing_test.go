// Package docs holds documents to what they take from elsewhere in the repository.
package docs

import (
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

// measured is what docs/benchmarks.md shows for a figure of a case; false where it has no such case.
func measured(t *testing.T, benchmarks, bench, name, figure string) (float64, bool) {
	t.Helper()
	_, section, ok := strings.Cut(benchmarks, "\n## `leeway bench "+bench+" --case "+name+"`\n")
	if !ok {
		return 0, false
	}
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(figure) + ` \| ([\d.,]+)`).FindStringSubmatch(section)
	if row == nil {
		t.Fatalf("bench %s --case %s has no figure %s in docs/benchmarks.md", bench, name, figure)
	}
	value, err := number(row[1])
	if err != nil {
		t.Fatal(err)
	}
	return value, true
}

// TestSizingIsWhatWasMeasured: each figure of operations.md that names its row is that row's, to the two digits that scripts/sizing.mjs
// writes.
func TestSizingIsWhatWasMeasured(t *testing.T) {
	turned := map[string]func(float64) float64{
		" kB": func(v float64) float64 { return v / 1e3 }, " MB": func(v float64) float64 { return v / 1e6 },
		" s": func(v float64) float64 { return v }, " Mbit/s": func(v float64) float64 { return 8000 / v }, "": func(v float64) float64 { return v },
	}
	benchmarks, operations := page(t, "benchmarks.md"), page(t, "operations.md")
	known := 0
	for _, m := range regexp.MustCompile(`([\d.,]+)( kB| MB| s| Mbit/s)?<!-- (\S+) (\S+) (\S+) -->`).FindAllStringSubmatch(operations, -1) {
		shown, err := number(m[1])
		if err != nil {
			t.Fatal(err)
		}
		value, ok := measured(t, benchmarks, m[3], m[4], m[5])
		if !ok {
			t.Errorf("bench %s --case %s is not in docs/benchmarks.md", m[3], m[4])
			continue
		}
		known++
		if want := turned[m[2]](value); math.Abs(shown-want) > 0.055*want {
			t.Errorf("bench %s --case %s: %s is %s%s in docs/operations.md and %.3g in docs/benchmarks.md; node scripts/benchmarks.mjs writes both",
				m[3], m[4], m[5], m[1], m[2], want)
		}
	}
	if known < 9 {
		t.Errorf("only %d figures name a row that is there: has the form changed?", known)
	}
}
