package archtest

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTheGlossaryIsShort: a reader learns 40 terms at most.
func TestTheGlossaryIsShort(t *testing.T) {
	if n := strings.Count(read(t, filepath.Join(root(t), "docs/glossary.md")), "\n| **"); n == 0 || n > 40 {
		t.Errorf("the glossary has %d terms; at most 40", n)
	}
}

// TestSpecificationsSayWhatARuleIs: a rule without a key word is a MUST, on each page.
func TestSpecificationsSayWhatARuleIs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root(t), "spec/*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, p := range pages {
		if !strings.Contains(read(t, p), "A rule without a key word is a MUST.") {
			t.Errorf("%s does not say it", filepath.Base(p))
		}
	}
}
