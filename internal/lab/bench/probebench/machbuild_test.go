package probebench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMachIsChangedInOnePlace(t *testing.T) {
	got, err := sendAtOnce([]byte("tcp.set_nodelay(false).unwrap();"))
	if err != nil || string(got) != "tcp.set_nodelay(true).unwrap();" {
		t.Errorf("%s, %v", got, err)
	}
	for _, text := range []string{"", "tcp.set_nodelay(true)", "a.set_nodelay(false); b.set_nodelay(false)"} {
		if _, err := sendAtOnce([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
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
	built := filepath.Join(dir, "leeway", "mach-"+machCommit[:12])
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
