package archtest

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// twins are folders that do the same in Go and in TypeScript (below web/packages/core/src).
var twins = []struct {
	folder     string
	typescript []string
}{
	{"internal/schedule", []string{"schedule/*.ts"}},
	{"internal/ledbat", []string{"ledbat/*.ts"}},
	{"internal/mesh", []string{"mesh/*.ts"}},
	{"internal/parts", []string{"parts/*.ts"}},
	{"internal/certificate", []string{"certificate/*.ts"}},
	{"internal/background", []string{"background/*.ts"}},
	{"internal/viewer", []string{"transfer/*.ts", "session/*.ts", "title/*.ts", "link/*.ts", "engine.ts", "title.ts"}},
}

// TestTwins compares the files of both languages with docs/twins.md: a file that is there in both is in the first table, and no
// other is; each other file is in the second one, with the reason.
func TestTwins(t *testing.T) {
	same, differ, found := strings.Cut(read(t, filepath.Join(root(t), "docs/twins.md")), "Where they differ:")
	if !found {
		t.Fatal("the second table is not there")
	}
	inSame, inDiffer := map[string][]string{}, filesIn(differ)
	for line := range strings.Lines(same) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| ") && len(cells) > 3 {
			if folder, list, ok := strings.Cut(cells[2], ":"); ok {
				folder = strings.Trim(folder, " `")
				inSame[folder] = append(inSame[folder], filesIn(list)...)
			}
		}
	}
	for _, twin := range twins {
		inGo := stems(t, filepath.Join(root(t), twin.folder, "*.go"))
		var inTS []string
		for _, pattern := range twin.typescript {
			inTS = append(inTS, stems(t, filepath.Join(root(t), "web/packages/core/src", pattern))...)
		}
		for _, name := range slices.Concat(inGo, inTS) {
			both := slices.Contains(inGo, name) && slices.Contains(inTS, name)
			if both != slices.Contains(inSame[twin.folder], name) {
				t.Errorf("%s: %q is in both languages: %t; the table of twins says otherwise", twin.folder, name, both)
			}
			if !both && !slices.Contains(inDiffer, name) {
				t.Errorf("%s: %q has no twin, and no row says why", twin.folder, name)
			}
		}
		for _, name := range inSame[twin.folder] {
			if !slices.Contains(inGo, name) {
				t.Errorf("%s: the table of twins names %q, which is not there", twin.folder, name)
			}
		}
	}
}

// filesIn are the quoted files of a text, without folders and endings.
func filesIn(text string) (out []string) {
	for _, q := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimSuffix(path.Base(q[1]), path.Ext(q[1])))
	}
	return out
}

// stems are the files of a pattern that are no tests, without folders and endings.
func stems(t *testing.T, pattern string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	for _, f := range files {
		stem := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
		if !strings.HasSuffix(stem, "_test") && !strings.HasSuffix(stem, ".test") && !strings.HasSuffix(stem, ".bench") {
			out = append(out, stem)
		}
	}
	return out
}
