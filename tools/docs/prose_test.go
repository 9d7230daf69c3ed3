package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// person matches words for persons, which programs are not.
	person = regexp.MustCompile(`(?i)\b(who|whom|whoever|nobody|somebody|everybody|anybody)\b`)
	// people are allowed to be "who".
	people = regexp.MustCompile(`(?i)\b(operators?|owners?|publishers?|readers?|users?|persons?|people|humans?|attackers?|developers?) (who|whom)\b`)
	// testName and titled are what names a test: in Go, and in TypeScript up to the end of its title.
	testName = regexp.MustCompile(`^(Test|Benchmark|Fuzz)[A-Z]`)
	titled   = regexp.MustCompile("(?m)(?:\\b(?:it|test|describe)(?:\\.\\w+)*(?:\\([^()'\"`]*\\))?|^ *\\]\\))\\(\\s*(?:'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`]*)`)")
	camel    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	// scripted matches what a comment of TypeScript could be taken for, and comments; the first group is a comment.
	scripted = regexp.MustCompile("(?s)'(?:[^'\\\\\n]|\\\\.)*'|\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`|(//[^\n]*|/\\*.*?\\*/)")
)

// persons are the words of a text that call a program a person.
func persons(text string) []string {
	return person.FindAllString(people.ReplaceAllString(text, ""), -1)
}

// TestProgramsAreNouns: a specification says the client, the peer, the seed.
func TestProgramsAreNouns(t *testing.T) {
	pages := 0
	eachFile(t, regexp.MustCompile(`\.md$`), func(file, text string) {
		if path.Dir(file) != "spec" {
			return
		}
		pages++
		text = literal.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, line := range strings.Split(text, "\n") {
			for _, word := range persons(line) {
				t.Errorf("%s says %q: name the program\n%s", file, word, line)
			}
		}
	})
	if pages < 10 {
		t.Errorf("only %d specifications were read", pages)
	}
}

// prose is a comment or the title of a test.
type prose struct {
	line int
	text string
}

// goProse are the comments, the names of tests and the titles of subtests of a Go file.
func goProse(text string) ([]prose, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var found []prose
	add := func(at token.Pos, text string) { found = append(found, prose{set.Position(at).Line, text}) }
	for _, group := range file.Comments {
		for _, c := range group.List {
			add(c.Pos(), c.Text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if testName.MatchString(n.Name.Name) {
				add(n.Pos(), camel.ReplaceAllString(n.Name.Name, "$1 $2"))
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if ok && f.Sel.Name == "Run" && len(n.Args) == 2 {
				if title, ok := n.Args[0].(*ast.BasicLit); ok {
					add(n.Pos(), title.Value)
				}
			}
		}
		return true
	})
	return found, nil
}

// scriptProse are the comments of a TypeScript file and, of a test, the titles.
func scriptProse(name, text string) []prose {
	var found []prose
	add := func(at int, said string) {
		for i, line := range strings.Split(said, "\n") {
			found = append(found, prose{1 + strings.Count(text[:at], "\n") + i, line})
		}
	}
	for _, at := range scripted.FindAllStringSubmatchIndex(text, -1) {
		if at[2] >= 0 {
			add(at[2], text[at[2]:at[3]])
		}
	}
	if strings.Contains(name, ".test.") {
		for _, at := range titled.FindAllStringSubmatchIndex(text, -1) {
			for g := 2; g < len(at); g += 2 {
				if at[g] >= 0 {
					add(at[g], text[at[g]:at[g+1]])
				}
			}
		}
	}
	return found
}

// TestProgramsAreNounsInCode: so do comments and the names of tests.
func TestProgramsAreNounsInCode(t *testing.T) {
	seen := map[string]int{}
	eachFile(t, regexp.MustCompile(`\.(go|ts|js|mjs)$`), func(file, text string) {
		if file == "tools/docs/prose_test.go" {
			return
		}
		found := scriptProse(file, text)
		if path.Ext(file) == ".go" {
			var err error
			if found, err = goProse(text); err != nil {
				t.Error(err)
			}
		}
		seen[path.Ext(file)] += len(found)
		for _, p := range found {
			for _, word := range persons(p.text) {
				t.Errorf("%s:%d says %q: name the program (CONTRIBUTING.md, \"Prose\")\n%s", file, p.line, word, p.text)
			}
		}
	})
	if seen[".go"] < 5000 || seen[".ts"] < 2000 {
		t.Errorf("only so many comments and titles were read: %v", seen)
	}
}

// TestProseOfCodeIsFound: the reader of code finds what it is to hold to the rule, and nothing else.
func TestProseOfCodeIsFound(t *testing.T) {
	source := "package p\n\n// Nobody waits.\nfunc TestWhoIsLateGoes(t *testing.T) {\n\tt.Run(\"anybody\", nil)\n\tsay(\"somebody\")\n}\n"
	said, err := goProse(source)
	if err != nil {
		t.Fatal(err)
	}
	script := "// Whoever asks.\nit('tells everybody', () => say('// somebody'))\nit.each(rows)(`serves ${n} to whom it knows`, f)\n/**\n * An operator who reads this.\n */\nconst whose = 1\nit.each([\n  [1],\n])('holds %s and nobody up', f)\n"
	said = append(said, scriptProse("p.test.ts", script)...)
	var got []string
	for _, p := range said {
		for _, word := range persons(p.text) {
			got = append(got, fmt.Sprint(p.line, " ", word))
		}
	}
	want := "3 Nobody, 4 Who, 5 anybody, 1 Whoever, 2 everybody, 3 whom, 10 nobody"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("found %s, want %s", s, want)
	}
}
