// Package self is what a process knows of itself: what it was built of, and what it has used.
package self

import "runtime/debug"

// Commit is what the go command noted of the tree: 12 hexadecimal digits, and whether there were changes beside it. It is empty
// when the binary was not built from a clone, or with -buildvcs=false.
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
