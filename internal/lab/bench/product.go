package bench

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// binaryVariable names the file of the leeway program that benches measure.
const binaryVariable = "LEEWAY_BINARY"

// Leeway is the file of the leeway program, for benches that measure its services: the one that LEEWAY_BINARY names, otherwise the one
// beside this program. A program beside this one has to be of the same commit: a file that an earlier build left must not be measured by
// mistake. LEEWAY_BINARY may name a program of another commit, to compare the two.
func Leeway() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find leeway: %w", err)
	}
	return product(os.Getenv(binaryVariable), self)
}

func product(named, self string) (string, error) {
	if named != "" {
		file, err := filepath.Abs(named)
		if err == nil {
			_, err = os.Stat(file)
		}
		if err != nil {
			return "", fmt.Errorf("find leeway: %s: %w", binaryVariable, err)
		}
		return file, nil
	}
	file := filepath.Join(filepath.Dir(self), "leeway")
	theirs, err := commitOf(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find leeway: there is no %s (make build makes it; %s names another file)", file, binaryVariable)
	}
	if err != nil {
		return "", fmt.Errorf("find leeway: %w", err)
	}
	ours, err := commitOf(self)
	if err != nil {
		return "", fmt.Errorf("find leeway: %w", err)
	}
	if theirs != ours {
		return "", fmt.Errorf("find leeway: %s is of commit %q, this program of %q (make build makes both; %s allows another commit)", file, theirs, ours, binaryVariable)
	}
	return file, nil
}

// commitOf is the commit that a program was built from; empty when the go command noted none.
func commitOf(file string) (string, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read what %s was built from: %w", file, err)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value, nil
		}
	}
	return "", nil
}
