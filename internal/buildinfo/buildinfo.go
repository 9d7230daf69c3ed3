// Package buildinfo reads what the go command noted in this binary.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Commit is the commit that the binary was built from, as 12 hexadecimal digits, and whether the tree had changes beside it. It is
// empty if the binary was not built from a clone, or with -buildvcs=false.
func Commit() (revision string, changed bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	return revision, changed
}

// Describe is a line about this binary: the program, its commit, and what it was built with and for.
func Describe(program string) string {
	commit, changed := Commit()
	if commit != "" {
		commit = " commit " + commit
	}
	if changed {
		commit += " with local changes"
	}
	return fmt.Sprintf("%s%s %s %s/%s", program, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
