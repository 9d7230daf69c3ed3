package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fromTime are the constants of package time, in µs: the page counts so, and only the ratio matters to the code.
const fromTime = `package time
type Duration float64
const (
	Microsecond Duration = 1
	Millisecond = 1000 * Microsecond
	Second = 1000 * Millisecond
	Minute = 60 * Second
)`

var (
	tsConstant = regexp.MustCompile(`(?m)^(?:export )?const ([A-Za-z]+) = ([0-9][^;{\[]*|packet[^;{\[]*);`)
	policyKey  = regexp.MustCompile(`(?m)^\s+([a-z_]+): ([0-9_]+),$`)
)

// TestConstants: each number of the control law and the schedule has a row in docs/experiments/constants.md, with a unit, a rule and a
// measurement or reason, and the same value in both languages.
func TestConstants(t *testing.T) {
	root := "../.."
	sections := strings.Split(read(t, filepath.Join(root, "docs/experiments/constants.md")), "\n## ")[1:]
	if len(sections) != 3 {
		t.Fatalf("%d sections", len(sections))
	}
	for _, s := range sections {
		title, _, _ := strings.Cut(s, "\n")
		inGo, inTS := map[string]float64{}, map[string]float64{}
		for line := range strings.Lines(s) {
			if !strings.HasPrefix(line, "Of `") {
				continue
			}
			for _, q := range quoted.FindAllStringSubmatch(line, -1) {
				file := filepath.Join(root, q[1])
				if strings.HasSuffix(file, ".go") {
					goNumbers(t, file, inGo)
				} else {
					tsNumbers(t, read(t, file), inTS)
				}
			}
		}
		for _, problem := range compareConstants(s, inGo, inTS) {
			t.Errorf("%s: %s", title, problem)
		}
	}
}

func compareConstants(section string, inGo, inTS map[string]float64) (problems []string) {
	rows := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		name, twin := cells[0], cells[1]
		var value float64
		if _, err := fmt.Sscanf(strings.ReplaceAll(cells[2], ",", ""), "%g", &value); err != nil || cells[3] == "" || cells[4] == "" || cells[5] == "" {
			problems = append(problems, "a cell is empty or no number: "+line)
		}
		if got, ok := inGo[name]; !ok || got != value {
			problems = append(problems, fmt.Sprintf("%s is %v here and %v in Go (there: %t)", name, value, got, ok))
		}
		rows[name] = true
		if twin == "–" {
			continue
		}
		if twin == "" {
			twin = strings.ToLower(name[:1]) + strings.ReplaceAll(name[1:], "RTT", "Rtt")
		}
		if got, ok := inTS[twin]; !ok || got != value {
			problems = append(problems, fmt.Sprintf("%s is %v here and %v in TypeScript (there: %t)", twin, value, got, ok))
		}
	}
	for name := range inGo {
		if !rows[name] {
			problems = append(problems, name+" has no row")
		}
	}
	return problems
}

// goNumbers collects the numeric constants of a file, those of other files of its package being known, and the fields of DefaultPolicy.
func goNumbers(t *testing.T, file string, into map[string]float64) {
	t.Helper()
	fset := token.NewFileSet()
	parsed := map[string]*ast.File{}
	matches, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, m := range matches {
		if strings.HasSuffix(m, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, m, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed[m], files = f, append(files, f)
	}
	if parsed[file] == nil {
		t.Fatalf("%s is not there", file)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: onlyTime{}, Error: func(error) {}} // other imports are unknown, and no constant here needs them
	_, _ = conf.Check("p", fset, files, info)
	ast.Inspect(parsed[file], func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return false
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if c, ok := info.Defs[name].(*types.Const); ok && name.Name != "_" {
					number(name.Name, c.Val(), into)
				}
				if name.Name == "DefaultPolicy" {
					for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
						kv := e.(*ast.KeyValueExpr)
						number(kv.Key.(*ast.Ident).Name, info.Types[kv.Value].Value, into)
					}
				}
			}
		}
		return true
	})
	for name := range recordLimits {
		delete(into, name)
	}
}

// recordLimits bound what a recording may have, and the lanes are names: no part of the rules.
var recordLimits = map[string]bool{
	"maxRecord": true, "maxPieces": true, "maxSegments": true, "maxPeers": true, "maxRequests": true, "maxValue": true, "maxMoment": true,
	"Foreground": true, "Background": true,
}

func number(name string, v constant.Value, into map[string]float64) {
	if v == nil || v.Kind() != constant.Int && v.Kind() != constant.Float {
		return
	}
	into[name], _ = constant.Float64Val(constant.ToFloat(v))
}

// tsNumbers collects the numeric constants at the top of a module, times in µs, and the fields of its default policy.
func tsNumbers(t *testing.T, text string, into map[string]float64) {
	t.Helper()
	source := "package p\n"
	for _, m := range tsConstant.FindAllStringSubmatch(text, -1) {
		value := m[2]
		if base, power, ok := strings.Cut(value, " ** "); ok && base == "2" {
			value = "1 << " + power
		}
		source += fmt.Sprintf("const %s = %s\n", m[1], strings.ReplaceAll(value, "1 / 16", "1.0 / 16"))
	}
	if _, policy, ok := strings.Cut(text, "defaultPolicy: Policy = {"); ok {
		policy, _, _ = strings.Cut(policy, "};")
		for _, m := range policyKey.FindAllStringSubmatch(policy, -1) {
			source += fmt.Sprintf("const %s = %s\n", m[1], m[2])
		}
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := (&types.Config{}).Check("p", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pkg.Scope().Names() {
		number(name, pkg.Scope().Lookup(name).(*types.Const).Val(), into)
		if strings.HasSuffix(name, "Ms") {
			into[name] *= 1000
		}
	}
}

type onlyTime struct{}

func (onlyTime) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, fmt.Errorf("%s is not needed", path)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "time.go", fromTime, 0)
	if err != nil {
		return nil, err
	}
	return (&types.Config{}).Check("time", fset, []*ast.File{f}, nil)
}
