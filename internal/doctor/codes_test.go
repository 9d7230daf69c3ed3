package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCodesAreExplained: a code that a check can say has a row in the operators' page.
func TestCodesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:fail|warn|foreign)\("([a-z-]+)"|"(bad-[a-z]+|token-[a-z]+)": `).FindAllStringSubmatch(string(text), -1) {
			seen++
			code := m[1] + m[2]
			if strings.HasSuffix(code, "-") {
				code += "…" // the rest says for what
			}
			if !strings.Contains(string(page), "`"+code+"`") {
				t.Errorf("%s: the code %s is not in docs/operations/troubleshooting.md", file, code)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d codes were found", seen)
	}
}

// TestCodesOfThePageAreExplained: so has each code of leeway.doctor(), there or among the notices.
func TestCodesOfThePageAreExplained(t *testing.T) {
	var pages []byte
	for _, name := range []string{"../../docs/operations/troubleshooting.md", "../../docs/embedding.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page...)
	}
	files, err := filepath.Glob("../../web/packages/panel/src/doctor/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".test.ts") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:fail|warn)\(\s*'([a-z-]+)'`).FindAllStringSubmatch(string(text), -1) {
			seen++
			if !strings.Contains(string(pages), "`"+m[1]+"`") {
				t.Errorf("%s: the code %s is neither in docs/operations/troubleshooting.md nor in docs/embedding.md", file, m[1])
			}
		}
	}
	if seen < 25 {
		t.Errorf("only %d codes were found", seen)
	}
}
