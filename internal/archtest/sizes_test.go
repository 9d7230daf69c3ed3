package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Bounds of a type. One above them is split into parts that own their state, or the comment of the type ends with "Large: " and the
// reason why it is one thing.
const (
	mostMethods = 25
	mostFields  = 15
)

// size is what a type has.
type size struct {
	name            string // PACKAGE.TYPE, the package below internal/
	at              string // file and line
	methods, fields int
	reason          string // what stands after "Large: " in the comment of the type
}

func (s *size) large() bool { return s.methods > mostMethods || s.fields > mostFields }

// sizes counts methods and fields of the types of the files, by package and name.
func sizes(files map[string]*ast.File, positions *token.FileSet) map[string]*size {
	all := map[string]*size{}
	of := func(path, name string) *size {
		name = strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/") + "." + name
		if all[name] == nil {
			all[name] = &size{name: name}
		}
		return all[name]
	}
	for path, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					of(path, receiver(d.Recv.List[0].Type)).methods++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						s := of(path, t.Name.Name)
						s.at = fmt.Sprintf("%s:%d", path, positions.Position(t.Pos()).Line)
						s.declared(t, d.Doc.Text()+t.Doc.Text())
					}
				}
			}
		}
	}
	return all
}

// declared takes in what a declaration says.
func (s *size) declared(t *ast.TypeSpec, comment string) {
	if _, reason, ok := strings.Cut(comment, "Large: "); ok {
		s.reason = strings.TrimSpace(reason)
	}
	switch u := t.Type.(type) {
	case *ast.StructType:
		s.fields = u.Fields.NumFields()
	case *ast.InterfaceType:
		s.methods += u.Methods.NumFields()
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// problem says what is wrong with a type's size; empty: nothing.
func (s *size) problem() string {
	switch {
	case s.large() && s.reason == "":
		return "it is above the bounds: split it, or end its comment with \"Large: \" and the reason"
	case !s.large() && s.reason != "":
		return "it is within the bounds: take the reason out of its comment"
	}
	return ""
}

// TestTypesHaveASize counts methods and fields of the product's types, and prints those above the bounds (go test -v).
func TestTypesHaveASize(t *testing.T) {
	positions, files := token.NewFileSet(), map[string]*ast.File{}
	for _, f := range sources(t) {
		if f.test || ofLab(f.room) {
			continue
		}
		parsed, err := parser.ParseFile(positions, filepath.Join(root(t), f.path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[f.path] = parsed
	}
	all := sizes(files, positions)
	order := slices.SortedFunc(maps.Values(all), func(a, b *size) int {
		return cmp.Or(b.methods+b.fields-a.methods-a.fields, strings.Compare(a.name, b.name))
	})
	for _, s := range order {
		if problem := s.problem(); problem != "" {
			t.Errorf("%s: %s has %d methods and %d fields (bounds %d and %d): %s", s.at, s.name, s.methods, s.fields, mostMethods, mostFields, problem)
		}
		if s.large() {
			t.Logf("%3d methods %3d fields  %s (%s)  %s", s.methods, s.fields, s.name, s.at, s.reason)
		}
	}
}

// TestSizesAreCounted: the check above can fail.
func TestSizesAreCounted(t *testing.T) {
	const text = `package a
// T is one thing. Large: of a reason.
type T[K any] struct { a, b int; T2; c []int }
func (t *T[K]) One() {}
func (T[K]) Two() {}
type (
	// T2 is another.
	T2 struct{}
	I interface { One(); Two() }
)
func (T2) one() {}
func free() {}
`
	positions := token.NewFileSet()
	f, err := parser.ParseFile(positions, "a.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := sizes(map[string]*ast.File{"internal/a/a.go": f}, positions)
	for name, want := range map[string]size{"a.T": {methods: 2, fields: 4, reason: "of a reason."}, "a.T2": {methods: 1}, "a.I": {methods: 2}} {
		if got := all[name]; got == nil || got.methods != want.methods || got.fields != want.fields || got.reason != want.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, c := range []struct {
		size
		fine bool
	}{
		{size{methods: mostMethods, fields: mostFields}, true},
		{size{methods: mostMethods + 1}, false},
		{size{fields: mostFields + 1}, false},
		{size{fields: mostFields + 1, reason: "one"}, true},
		{size{reason: "one"}, false},
	} {
		if problem := c.problem(); (problem == "") != c.fine {
			t.Errorf("%+v: %q", c, problem)
		}
	}
}
