package app

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestReferenceIsCurrent: what is embedded, and the page, are what the structs and their comments say now.
func TestReferenceIsCurrent(t *testing.T) {
	found := map[string]string{}
	for _, file := range []string{"config.go", "../site/config.go"} {
		commented(t, file, found)
	}
	text, err := json.MarshalIndent(found, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "meanings.json", string(text)+"\n")
	if *update {
		meaningsText = text
	}
	keys, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	byVersion := map[string][]string{}
	for i, k := range keys {
		if k.Since == "" {
			keys[i].Since = Version // until the file has it, the comparison below fails
		}
		byVersion[keys[i].Since] = append(byVersion[keys[i].Since], k.Key)
	}
	text, err = json.MarshalIndent(byVersion, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "since.json", string(text)+"\n")
	if *update {
		sinceText = text
	}
	for _, k := range keys {
		if k.Meaning == "" || strings.Contains(k.Type, "number") && k.Unit == "" {
			t.Errorf("%s: meaning %q, unit %q", k.Key, k.Meaning, k.Unit)
		}
	}
	golden(t, "../../docs/operations/config.md", referencePage(keys))
	if out, errs, code := leeway(t, nil, "config", "reference"); code != 0 || out != referencePage(keys) {
		t.Errorf("the command prints something else: %d %s", code, errs)
	}
}

// TestSomePageNamesEachKey: the reference lists keys; what one is for stands where its subject is explained.
func TestSomePageNamesEachKey(t *testing.T) {
	keys, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	pages := textOf(t, "../../docs", "../../spec", "../../deploy", "../../README.md")
	for _, k := range keys {
		name := k.Key[strings.LastIndexByte(k.Key, '.')+1:]
		if !strings.Contains(pages, name) && !strings.Contains(pages, strings.ReplaceAll(name, "_", "-")) {
			t.Errorf("%s is on no page but the reference", k.Key)
		}
	}
}

// TestAKeyCameWithOneVersion: the page and the command say with which.
func TestAKeyCameWithOneVersion(t *testing.T) {
	if by, err := keyVersions([]byte(`{"0.1.0": ["log.level"], "0.2.0": ["log.format"]}`)); err != nil || by["log.level"] != "0.1.0" || by["log.format"] != "0.2.0" {
		t.Errorf("%v, %v", by, err)
	}
	if _, err := keyVersions([]byte(`{"0.1.0": ["log.level"], "0.2.0": ["log.level"]}`)); err == nil || !strings.Contains(err.Error(), "log.level") {
		t.Errorf("a key that came twice: %v", err)
	}
	page := referencePage([]keyDoc{{Key: "log.level", Type: "text", Default: "info", Meaning: "how much", Since: "0.2.0"}})
	if !strings.Contains(page, "| `level` | text | `info` | 0.2.0 | how much |") {
		t.Error(page)
	}
}

// commented collects what the comments of a file's struct fields say, constants by their values.
func commented(t *testing.T, file string, into map[string]string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					if lit, ok := n.Values[i].(*ast.BasicLit); ok {
						constants[name.Name] = strings.Trim(lit.Value, `"`)
					}
				}
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						into[parsed.Name.Name+"."+n.Name.Name+"."+name.Name] = sentence(name.Name, f)
					}
				}
			}
		}
		return true
	})
	word := regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)
	for key, text := range into {
		into[key] = word.ReplaceAllStringFunc(text, func(w string) string {
			if value, ok := constants[w]; ok {
				return "`" + value + "`"
			}
			return w
		})
	}
}

// sentence is a field's comment. From a comment above the field it takes the field's name away.
func sentence(name string, f *ast.Field) string {
	text := f.Comment.Text()
	if text == "" {
		text = f.Doc.Text()
		for _, verb := range []string{" is ", " are ", " has ", " says "} {
			text = strings.TrimPrefix(text, name+verb)
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// TestSchema: a validator takes the files that are right by the schema that the command prints, and refuses those that are not.
func TestSchema(t *testing.T) {
	out, errs, code := leeway(t, nil, "config", "schema")
	if code != 0 {
		t.Fatal(errs)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("leeway.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("leeway.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	printed, _, _ := leeway(t, nil, "--config", "testdata/check/fine.yaml", "config", "print")
	texts := map[string]string{"config print": printed}
	for _, file := range []string{
		"testdata/check/fine.yaml", "testdata/check/empty-sections.yaml", "testdata/check/environment.yaml",
		"../../deploy/k8s/overlays/dev/leeway.yaml", "../../deploy/k8s/overlays/production/leeway.yaml", "testdata/check/unknown-keys.yaml", "testdata/check/wrong-types.yaml", "testdata/check/times.yaml",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	for i, text := range []string{"sites: [{name: a, hosts: [a.test], access: nobody}]", "log: {level: loud}", "seed: {rate: 1.5}", "turn: {drain: 5}", "tracker: {trusted_proxies: 10.0.0.0/8}"} {
		texts["wrong "+strconv.Itoa(i)] = text
	}
	for name, text := range texts {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = schema.Validate(value)
		base := filepath.Base(name)
		wrong := strings.HasPrefix(name, "wrong") || strings.HasPrefix(base, "unknown") || strings.HasPrefix(base, "wrong") || strings.HasPrefix(base, "times")
		if (err != nil) != wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
