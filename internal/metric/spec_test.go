package metric

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSetsAreThePages compares the closed label sets that services share with the list in spec/metrics.md.
func TestSetsAreThePages(t *testing.T) {
	page, err := os.ReadFile("../../spec/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "Label sets: ")
	text, _, ended := strings.Cut(rest, ".\n")
	if !found || !ended {
		t.Fatal("the page has no list of label sets")
	}
	want := map[string][]string{
		"source": Sources, "path": Paths, "lane": Lanes, "role": Roles, "variant": Variants, "reason": Reasons,
	}
	form := regexp.MustCompile("^`([a-z]+)`[^=]*= ?(.*)$")
	for _, part := range strings.Split(strings.ReplaceAll(text, "\n", " "), " · ") {
		m := form.FindStringSubmatch(part)
		if m == nil {
			t.Errorf("cannot read %q", part)
			continue
		}
		values := strings.Split(strings.TrimSpace(m[2]), ", ")
		if !slices.Equal(values, want[m[1]]) {
			t.Errorf("%s is %v here, on the page %v", m[1], want[m[1]], values)
		}
		delete(want, m[1])
	}
	for name := range want {
		t.Errorf("%s is not on the page", name)
	}
}

// TestEachReasonHasARow: what can be counted is explained, with what to do, here and in the document for operators.
func TestEachReasonHasARow(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## Why not from peers\n")
	table, _, ended := strings.Cut(rest, "\n## ")
	if !found || !ended {
		t.Fatal("the page has no table of reasons")
	}
	var rows []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	if all := AllReasons(); len(rows) != 1+len(all) || len(all) != len(Reasons) {
		t.Fatalf("%d rows, %d reasons, %d of them counted", len(rows)-1, len(all), len(Reasons))
	}
	for i, r := range AllReasons() {
		if want := "| " + r.Name + " | " + r.Meaning + " | " + r.Do + " |"; rows[i+1] != want || r.Name != Reasons[i] || len(r.Meaning) < 10 || len(r.Do) < 10 {
			t.Errorf("the page has\n%s\nand the code\n%s", rows[i+1], want)
		}
	}
}
