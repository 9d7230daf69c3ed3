package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// changelog writes the version's section of CHANGELOG.md as a page.
func (r release) changelog() error {
	text, err := os.ReadFile(filepath.Join(r.tree, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	page, err := section(string(text), r.version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "CHANGES-"+r.version+".md"), []byte(page), 0o644)
}

// section is what a changelog says of a version. A version that has no section yet is what is unreleased.
func section(changelog, version string) (string, error) {
	unreleased := ""
	for _, part := range strings.Split("\n"+changelog, "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		name, _, _ := strings.Cut(strings.Trim(heading, "[] "), " ")
		switch strings.Trim(name, "[]") {
		case version:
			return page("Leeway "+heading, body), nil
		case "Unreleased":
			unreleased = body
		}
	}
	if strings.TrimSpace(unreleased) == "" {
		return "", fmt.Errorf("CHANGELOG.md says nothing of %s, and has no section Unreleased", version)
	}
	return page("Leeway "+version, unreleased), nil
}

func page(title, body string) string {
	return "# " + title + "\n\n" + strings.ReplaceAll(strings.TrimSpace(body), "### ", "## ") + "\n"
}
