// Package buildinfo reads what the go command noted in this binary.
package buildinfo

import "runtime/debug"

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
