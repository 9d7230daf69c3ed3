package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Forms of what SECURITY.md names in back quotes.
var (
	goTest     = regexp.MustCompile(`^((?:internal|cmd|test|tools|deploy)/[\w./-]*\w)\.((?:Test|Fuzz)\w+)$`)
	webTest    = regexp.MustCompile(`^(web/[\w./-]+\.test\.ts)(?:: (.+))?$`)
	page       = regexp.MustCompile(`^(spec/[\w./-]+)$`)
	identifier = regexp.MustCompile(`^((?:internal)/[\w/]*\w)\.(\w+)$`)
	quoted     = regexp.MustCompile("`([^`]+)`")
)

// TestAttacksAreTried: each attack that SECURITY.md lists names tests that try it, and all that the page names is there. A promise
// without a test is none.
func TestAttacksAreTried(t *testing.T) {
	root := "../.."
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range quoted.FindAllStringSubmatch(string(text), -1) {
		if problem := missing(root, q[1]); problem != "" {
			t.Errorf("`%s`: %s", q[1], problem)
		}
	}
	rows := table(string(text), "What is tried")
	if len(rows) < 25 {
		t.Errorf("%d rows; the page is not whole", len(rows))
	}
	for _, row := range rows {
		if !names(row[len(row)-1], goTest, webTest) {
			t.Errorf("the row %q does not name a test that tries it", row[0])
		}
	}
}

// names says whether a cell quotes a name of one of these forms.
func names(cell string, forms ...*regexp.Regexp) bool {
	for _, q := range quoted.FindAllStringSubmatch(cell, -1) {
		for _, form := range forms {
			if form.MatchString(q[1]) {
				return true
			}
		}
	}
	return false
}

// missing says what of a name in the page is not there. It looks for tests, pages and identifiers, and passes over all other names.
func missing(root, name string) string {
	if m := goTest.FindStringSubmatch(name); m != nil {
		if !mentions(filepath.Join(root, m[1]), "_test.go", regexp.MustCompile(`(?m)^func `+m[2]+`\(`)) {
			return "there is no such test"
		}
		return ""
	}
	if m := webTest.FindStringSubmatch(name); m != nil {
		b, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil || !strings.Contains(string(b), m[2]) {
			return "there is no such test"
		}
		return ""
	}
	if m := page.FindStringSubmatch(name); m != nil {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			return "there is no such page"
		}
		return ""
	}
	if m := identifier.FindStringSubmatch(name); m != nil && !mentions(filepath.Join(root, m[1]), ".go", regexp.MustCompile(`\b`+m[2]+`\b`)) {
		return "nothing there is called so"
	}
	return ""
}

// mentions says whether a pattern is in one of a folder's files whose names end so.
func mentions(folder, ending string, pattern *regexp.Regexp) bool {
	files, _ := filepath.Glob(filepath.Join(folder, "*"+ending))
	for _, f := range files {
		if ending == ".go" && strings.HasSuffix(f, "_test.go") {
			continue
		}
		if b, err := os.ReadFile(f); err == nil && pattern.Match(b) {
			return true
		}
	}
	return false
}

// table is the rows of the table below a heading, in cells, without its head.
func table(text, heading string) (rows [][]string) {
	_, below, _ := strings.Cut(text, "## "+heading+"\n")
	below, _, _ = strings.Cut(below, "\n## ")
	for line := range strings.Lines(below) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
	}
	return rows[min(1, len(rows)):]
}

// TestNamesThatAreNotThereAreFound: the check above can fail.
func TestNamesThatAreNotThereAreFound(t *testing.T) {
	for name, found := range map[string]bool{
		"internal/archtest.TestNamesThatAreNotThereAreFound": true,
		"internal/archtest.TestNothing":                      false,
		"internal/nowhere.TestNothing":                       false,
		"web/apps/e2e/src/hostile.test.ts":                   true,
		"web/apps/e2e/src/hostile.test.ts: hostile viewers":  true,
		"web/apps/e2e/src/hostile.test.ts: no such title":    false,
		"web/apps/e2e/src/nothing.test.ts":                   false,
		"spec/certificate.md":                                true,
		"spec/nothing.md":                                    false,
		"internal/swarm.maxMet":                              true,
		"internal/swarm.maxNothing":                          false,
		"max_sessions":                                       true, // of something else
	} {
		if problem := missing("../..", name); (problem == "") != found {
			t.Errorf("%s: %q", name, problem)
		}
	}
}
