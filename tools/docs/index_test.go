package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// row is a row of a page's index: the file, and what stands behind it.
var row = regexp.MustCompile(`\]\(([0-9a-z-]+\.md)\)(?: \| (.+) \|)?`)

// TestPagesAreInTheirIndex: a decision or an experiment that its folder's README does not have is found by no reader. A row of the
// experiments is how the page begins, so that each begins with its result.
func TestPagesAreInTheirIndex(t *testing.T) {
	for _, folder := range []string{"docs/decisions", "docs/experiments"} {
		index, err := os.ReadFile(filepath.Join(root, folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]string{}
		for _, m := range row.FindAllStringSubmatch(string(index), -1) {
			rows[m[1]] = m[2]
		}
		pages, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(pages) < 10 {
			t.Fatalf("%s: %d pages, %v", folder, len(pages), err)
		}
		for _, page := range pages {
			name := filepath.Base(page)
			if name == "README.md" {
				continue
			}
			result, listed := rows[name]
			if !listed {
				t.Errorf("%s/%s is not in the README of its folder", folder, name)
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if _, body, _ := strings.Cut(string(text), "\n"); !strings.HasPrefix(strings.TrimSpace(body), result) {
				t.Errorf("%s/%s does not begin with what its index says: %s", folder, name, result)
			}
		}
	}
}
