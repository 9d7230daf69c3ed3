package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program builds a program that is noted to be of a commit.
func program(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	for file, text := range map[string]string{"go.mod": "module program\n", "main.go": "package main\n\nfunc main() {} // " + commit + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if commit != "" {
		run("git", "init", "-q")
		run("git", "add", ".")
		run("git", "-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-qm", commit)
	}
	run("go", "build", "-buildvcs="+map[bool]string{true: "true", false: "false"}[commit != ""], "-o", "leeway", ".")
	return filepath.Join(dir, "leeway")
}

// TestTheProgramMeasuredIsOfTheSameCommit: a file that an earlier build left beside the lab is refused, unless it is named.
func TestTheProgramMeasuredIsOfTheSameCommit(t *testing.T) {
	ours, theirs, none := program(t, "this"), program(t, "before"), program(t, "")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A lab that was built beside: the same file under another name.
	beside := func(program, lab string) string {
		t.Helper()
		dir := t.TempDir()
		if err := errors.Join(os.Link(program, filepath.Join(dir, "leeway")), os.Link(lab, filepath.Join(dir, "leeway-lab"))); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "leeway-lab")
	}
	for name, c := range map[string]struct{ named, self, file, want string }{
		"same commit":         {self: beside(ours, ours), file: "leeway"},
		"no commit at all":    {self: beside(none, none), file: "leeway"},
		"another commit":      {self: beside(theirs, ours), want: "make build makes both"},
		"a commit and none":   {self: beside(none, ours), want: "make build makes both"},
		"another, named":      {self: beside(ours, ours), named: theirs, file: theirs},
		"named and not there": {self: beside(ours, ours), named: theirs + "-not", want: binaryVariable},
		"none beside":         {self: filepath.Join(t.TempDir(), "leeway-lab"), want: "there is no "},
		"no program of Go's":  {self: beside(script, ours), want: "built from"},
	} {
		want := c.file
		if want == "leeway" {
			want = filepath.Join(filepath.Dir(c.self), "leeway")
		}
		got, err := product(c.named, c.self)
		if got != want || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
