package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile is what sha256sum -c reads.
const sumsFile = "SHA256SUMS"

// sums writes the digest of every other file of a folder.
func sums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		if file.Name() == sumsFile || !file.Type().IsRegular() {
			continue
		}
		digest, err := digestOf(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", digest, file.Name())
	}
	if lines.Len() == 0 {
		return fmt.Errorf("%s has no file to sum up", dir)
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(lines.String()), 0o644)
}

func digestOf(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}
