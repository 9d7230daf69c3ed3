// Package firstday reads the documents as a new operator does: it runs their commands and loads their files.
package firstday

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/leeway-video/leeway/internal/app"
)

// block is a fenced block of a document.
type block struct {
	file, language, text string
	line                 int
}

func (b block) String() string {
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(b.file, "../../"), b.line)
}

// blocks are those of a document, in its order.
func blocks(t *testing.T, file string) (list []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case open == nil && strings.HasPrefix(line, "```"):
			open = &block{file: file, language: line[3:], line: i + 2}
		case open != nil && line == "```":
			list, open = append(list, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return list
}

// documents are those for people that embed and operate.
func documents(t *testing.T) (list []block) {
	files, err := filepath.Glob("../../docs/operations/*.md")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, file := range append(files, "../../README.md", "../../docs/embedding.md") {
		list = append(list, blocks(t, file)...)
	}
	return list
}

// run calls leeway in this process.
func run(dir string, args ...string) (string, error) {
	var out bytes.Buffer
	err := app.Run(context.Background(), args, app.Env{Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + dir}})
	return out.String(), err
}

var (
	call    = regexp.MustCompile(`(?:^|[;|(]\s*|&&\s*|=\S+\s+)(?:build/)?leeway ((?:[a-z]+ ?)+)(.*)`)
	flag    = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
	comment = regexp.MustCompile(`(^|\s)#.*`)
)

// wrongCalls are calls in documents whose command or flags do not exist.
func wrongCalls(dir string, list []block) (wrong []string, calls int) {
	for _, b := range list {
		if b.language != "sh" {
			continue
		}
		for _, line := range strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
			m := call.FindStringSubmatch(comment.ReplaceAllString(line, ""))
			if m == nil {
				continue
			}
			calls++
			help := helpOf(dir, strings.Fields(m[1]))
			if help == "" {
				wrong = append(wrong, fmt.Sprintf("%s: there is no command in %q", b, line))
				continue
			}
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				if !regexp.MustCompile(`--(\[no-\])?` + regexp.QuoteMeta(f[1]) + `\b`).MatchString(help) {
					wrong = append(wrong, fmt.Sprintf("%s: %q has no flag --%s", b, m[1], f[1]))
				}
			}
		}
	}
	return wrong, calls
}

// TestCallsOfTheDocuments: each command and flag of each call exists.
func TestCallsOfTheDocuments(t *testing.T) {
	wrong, calls := wrongCalls(t.TempDir(), documents(t))
	if len(wrong) > 0 || calls < 30 {
		t.Errorf("%d calls; wrong are:\n%s", calls, strings.Join(wrong, "\n"))
	}
}

// helpOf is the help of the longest command that these words begin with; words behind it are arguments.
func helpOf(dir string, words []string) string {
	for n := len(words); n > 0; n-- {
		if text, err := run(dir, append(slices.Clone(words[:n]), "--help")...); err == nil {
			return text
		}
	}
	return ""
}

// siteKeys are keys of a site, which documents show without what is around them.
var siteKeys = []string{"name", "hosts", "key", "title", "access", "token_keys", "packager_keys", "policy", "off", "fetch_base", "fetch_auth", "files", "page_origins"}

// wrongFiles are YAML blocks of documents with keys or values that no service takes. What a part leaves out is missing, and a secret is
// shown as …: neither is an error of the document.
func wrongFiles(t *testing.T, dir string, list []block) (wrong []string, files int) {
	for _, b := range list {
		if b.language != "yaml" {
			continue
		}
		text := dedented(b.text)
		var top map[string]any
		if err := yaml.Unmarshal([]byte(text), &top); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", b, err))
			continue
		}
		if top["apiVersion"] != nil || top["patches"] != nil || top["resources"] != nil {
			continue // of Kubernetes
		}
		files++
		if slices.ContainsFunc(siteKeys, func(key string) bool { _, has := top[key]; return has }) {
			text = "sites:\n  -\n" + indented(text)
		}
		file := filepath.Join(dir, "leeway.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := run(dir, "config", "check", file)
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, "unknown key") || strings.Contains(line, "cannot unmarshal") || strings.Contains(line, "is no choice") || strings.Contains(line, "is no preset") {
				wrong = append(wrong, fmt.Sprintf("%s: %s", b, line))
			}
		}
	}
	return wrong, files
}

// TestFilesOfTheDocuments: each YAML block is a configuration, or a part of one.
func TestFilesOfTheDocuments(t *testing.T) {
	wrong, files := wrongFiles(t, t.TempDir(), documents(t))
	if len(wrong) > 0 || files < 12 {
		t.Errorf("%d files; wrong are:\n%s", files, strings.Join(wrong, "\n"))
	}
}

// TestMistakesOfADocumentAreFound plants some of each kind.
func TestMistakesOfADocumentAreFound(t *testing.T) {
	calls := []block{
		{language: "sh", text: "build/leeway up --sites x\n"}, {language: "sh", text: "X=1 leeway serve # starts it\n"},
		{language: "sh", text: "true && leeway token mint --key k \\\n  --lifetime 1h\n"}, {language: "sh", text: "leeway up --site x # --sites\nkubectl -n leeway get pods\n"},
	}
	if wrong, n := wrongCalls(t.TempDir(), calls); len(wrong) != 3 || n != 4 {
		t.Errorf("of %d calls are wrong: %v", n, wrong)
	}
	files := []block{
		{language: "yaml", text: "    key: {ignore: [a]}\n"}, {language: "yaml", text: "seed:\n  anounce: [a]\n"}, {language: "yaml", text: "access: open\nname: a\nhosts: [a]\n"},
		{language: "yaml", text: "key: [\n"}, {language: "yaml", text: "tracker: {listen: ':8080'}\n"},
	}
	if wrong, n := wrongFiles(t, t.TempDir(), files); len(wrong) != 4 || n != 4 {
		t.Errorf("of %d files are wrong: %v", n, wrong)
	}
}

func dedented(text string) string {
	lines := strings.Split(text, "\n")
	least := 99
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			least = min(least, len(l)-len(strings.TrimLeft(l, " ")))
		}
	}
	for i, l := range lines {
		lines[i] = l[min(least, len(l)):]
	}
	return strings.Join(lines, "\n")
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
