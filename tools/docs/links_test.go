package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// skipped are folders that are not written by hand.
var skipped = map[string]bool{"node_modules": true, ".git": true, "dist": true, "build": true, "testdata": true}

// generated says whether a folder keeps what is in it out of the repository.
func generated(folder string) bool {
	text, err := os.ReadFile(filepath.Join(folder, ".gitignore"))
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), "*")
}

// eachFile calls f with the path from the root and the text of each file whose name matches.
func eachFile(t *testing.T, name *regexp.Regexp, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (skipped[d.Name()] || generated(path)) {
			return fs.SkipDir
		}
		if d.IsDir() || !name.MatchString(d.Name()) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		f(filepath.ToSlash(rel), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	literal = regexp.MustCompile("`[^`\n]*`")
	inline  = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\))?)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	marked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// slug is the anchor that GitHub gives a heading: lower case, letters, digits, blanks as hyphens.
func slug(title string) string {
	title = marked.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// anchorsOf are the anchors of a page; a heading that comes again has a number behind it.
func anchorsOf(text string) map[string]bool {
	anchors, seen := map[string]bool{}, map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := slug(m[1])
		if n := seen[name]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", name, n)] = true
		} else {
			anchors[name] = true
		}
		seen[name]++
	}
	return anchors
}

// broken says what is wrong with a link of a page; "" if nothing is, or if the link leads out of the repository.
func broken(pages map[string]map[string]bool, from, link string) string {
	target, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if target.Scheme != "" || target.Host != "" {
		return ""
	}
	path := from
	if target.Path != "" {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(from), filepath.FromSlash(target.Path)))
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			return "there is no " + path
		}
	}
	if anchors, ok := pages[path]; ok && target.Fragment != "" && !anchors[target.Fragment] {
		return path + " has no heading for #" + target.Fragment
	}
	return ""
}

// TestLinksLeadSomewhere follows every relative link and anchor of every Markdown page in the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	texts, pages := map[string]string{}, map[string]map[string]bool{}
	eachFile(t, regexp.MustCompile(`\.md$`), func(path, text string) {
		texts[path], pages[path] = text, anchorsOf(text)
	})
	links := 0
	for path, text := range texts {
		text = literal.ReplaceAllString(fenced.ReplaceAllString(text, ""), "``")
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			links++
			if wrong := broken(pages, path, m[1]); wrong != "" {
				t.Errorf("%s: (%s): %s", path, m[1], wrong)
			}
		}
	}
	if links < 150 {
		t.Errorf("only %d links found: does the expression still match them?", links)
	}
}

// TestPagesNamedInCodeExist: code, scripts and manifests name pages of docs/ and spec/ in comments and error texts.
func TestPagesNamedInCodeExist(t *testing.T) {
	named := regexp.MustCompile(`\b(?:docs|spec)/[\w./-]+\.(?:md|jsonl)\b`)
	found := 0
	eachFile(t, regexp.MustCompile(`\.(go|ts|mjs|py|yml|yaml|json|conf|env|sh)$|^[A-Za-z-]+$`), func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			return // tests name pages that must not exist
		}
		for _, name := range named.FindAllString(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	})
	if found < 20 {
		t.Errorf("only %d names found: does the expression still match them?", found)
	}
}

// TestAnchors: headings get the anchors that GitHub gives them.
func TestAnchors(t *testing.T) {
	anchors := anchorsOf("# One page\n## `leeway up`, and: more\n## Again\n## Again\n```\n# no heading\n```\n## [A link](x.md) & 2/3\n")
	for _, want := range []string{"one-page", "leeway-up-and-more", "again", "again-1", "a-link--23"} {
		if !anchors[want] {
			t.Errorf("no anchor %s in %v", want, anchors)
		}
	}
	if anchors["no-heading"] {
		t.Error("a comment in a code block has an anchor")
	}
	pages := map[string]map[string]bool{"docs/operations/seeds.md": {"terms": true}}
	if broken(pages, "docs/operations/seeds.md", "#nothing") == "" || broken(pages, "docs/operations/seeds.md", "nowhere.md") == "" || broken(pages, "docs/operations/seeds.md", "#terms") != "" {
		t.Error("a broken link is not noticed, or a good one is")
	}
}

// TestSymbolsAreWhereThePagesSay: a link whose text is a symbol leads to a file that defines or mentions it.
func TestSymbolsAreWhereThePagesSay(t *testing.T) {
	symbol := regexp.MustCompile("\\[`(\\w+)`\\]\\(([^()\\s#]+\\.(?:go|ts))\\)")
	found := 0
	eachFile(t, regexp.MustCompile(`\.md$`), func(path, text string) {
		for _, m := range symbol.FindAllStringSubmatch(text, -1) {
			found++
			file := filepath.Join(root, filepath.Dir(path), filepath.FromSlash(m[2]))
			code, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if !regexp.MustCompile(`\b` + m[1] + `\b`).Match(code) {
				t.Errorf("%s: %s has no %s", path, m[2], m[1])
			}
		}
	})
	if found < 20 {
		t.Errorf("only %d symbols found: does the expression still match them?", found)
	}
}
