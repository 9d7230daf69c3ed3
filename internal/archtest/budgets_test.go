package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// charged lists the parties of spec/budgets.md that a cost can be charged to.
var charged = []string{"address", "subnet", "subject", "session", "link", "title", "site", "process"}

var metricName = regexp.MustCompile(`^leeway_[a-z_]+$`)

// TestBudgets: each resource that a stranger can make a process spend has a party that is charged, a bound in code, an answer at the
// bound, a metric or the reason for none, and a test; and all that the page names is there.
func TestBudgets(t *testing.T) {
	root := "../.."
	text := read(t, filepath.Join(root, "spec/budgets.md"))
	metrics := read(t, filepath.Join(root, "spec/metrics.md"))
	for _, q := range quoted.FindAllStringSubmatch(text, -1) {
		if problem := missing(root, q[1]); problem != "" {
			t.Errorf("`%s`: %s", q[1], problem)
		}
		if metricName.MatchString(q[1]) && !strings.Contains(metrics, "`"+q[1]+"`") {
			t.Errorf("`%s` is not in spec/metrics.md", q[1])
		}
	}
	for _, section := range []struct {
		title string
		least int // rows
	}{{"Tracker", 20}, {"Seed", 8}, {"Link of two peers", 4}, {"Relay", 4}, {"Probe", 6}, {"Packager", 2}, {"Logs and admin", 1}} {
		rows := table(text, section.title)
		if len(rows) < section.least {
			t.Errorf("%s: %d rows, at least %d expected", section.title, len(rows), section.least)
		}
		for _, row := range rows {
			if problem := budget(row); problem != "" {
				t.Errorf("%s: %s: %s", section.title, strings.TrimSpace(row[0]), problem)
			}
		}
	}
}

// budget says what a row of spec/budgets.md lacks.
func budget(row []string) string {
	if len(row) != 7 {
		return "a row has seven cells"
	}
	for _, cell := range row {
		if strings.TrimSpace(cell) == "" {
			return "a cell is empty"
		}
	}
	switch {
	case !slices.Contains(charged, strings.TrimSpace(row[2])):
		return "charged to none of " + strings.Join(charged, ", ")
	case !names(row[3], identifier):
		return "the bound names nothing in code that holds it"
	case !names(row[5], metricName) && !strings.HasPrefix(strings.TrimSpace(row[5]), "none: "):
		return "neither a metric nor the reason for none"
	case !names(row[6], goTest, webTest):
		return "no test tries to exceed it"
	}
	return ""
}

// TestRowsThatLackSomethingAreFound: the check above can fail.
func TestRowsThatLackSomethingAreFound(t *testing.T) {
	whole := []string{"links", "peer", "link", "10: `internal/seed.MaxLinks`", "refused", "`leeway_seed_links`", "`internal/seed.TestX`"}
	if problem := budget(whole); problem != "" {
		t.Error(problem)
	}
	for cell, text := range map[int]string{0: " ", 2: "everybody", 3: "10", 5: "later", 6: "by hand"} {
		row := slices.Clone(whole)
		row[cell] = text
		if budget(row) == "" {
			t.Errorf("a row with %q in cell %d passes", text, cell)
		}
	}
	if budget(whole[:6]) == "" {
		t.Error("a row of six cells passes")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
