package probebench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMachIsChangedInOnePlace: a line that is not there, or more than once, is not taken for the one that is meant.
func TestMachIsChangedInOnePlace(t *testing.T) {
	for i, c := range machChanges {
		folder := t.TempDir()
		path := filepath.Join(folder, filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "a " + c.is, c.was + c.was} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.apply(folder); err == nil {
				t.Errorf("change %d takes %q", i, text)
			}
		}
		if err := os.WriteFile(path, []byte("a "+c.was+" b"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.apply(folder); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "a "+c.is+" b" {
			t.Errorf("change %d gives %q, %v", i, got, err)
		}
	}
}

// TestAnotherMachHasAnotherName: one that was built with other changes is not taken.
func TestAnotherMachHasAnotherName(t *testing.T) {
	name := machName(machChanges)
	for i := range machChanges {
		if machName(slices.Delete(slices.Clone(machChanges), i, i+1)) == name {
			t.Errorf("the name is the same without change %d", i)
		}
	}
}

// TestMachIsTheOneNamedOrTheOneBuilt: a source without the commit gives no program, and nothing is left of the attempt.
func TestMachIsTheOneNamedOrTheOneBuilt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("TMPDIR", t.TempDir())
	named := filepath.Join(dir, "named")
	if err := os.WriteFile(named, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(machVariable, named)
	if got, err := machProgram(t.Context()); got != named || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv(machVariable, "")
	t.Setenv(sourceVariable, filepath.Join(dir, "nothing"))
	_, err := machProgram(t.Context())
	if err == nil {
		t.Fatal("a program of nothing")
	}
	wants := []string{machVariable}
	if lacks("cargo") == nil && lacks("cmake") == nil {
		wants = append(wants, sourceVariable, "a network that reaches "+filepath.Join(dir, "nothing"))
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "leeway-mach-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	built := filepath.Join(dir, "leeway", machName(machChanges))
	if err := os.MkdirAll(filepath.Dir(built), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(built, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := machProgram(t.Context()); got != built || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
