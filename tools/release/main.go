// Command release writes the parts of a release that are not built by another tool: archives of the binaries, their bills of
// materials, the changelog of the version, and the checksums of everything. What it writes depends on the commit alone.
//
//	go run ./release archives -tree .. -binaries ../build/bin -out ../build/release/0.1.0 -version 0.1.0 -time 1764133200
//	go run ./release changelog -tree .. -out ../build/release/0.1.0 -version 0.1.0
//	go run ./release chart -tree .. -out ../build/release/0.1.0 -version 0.1.0 -time 1764133200
//	go run ./release sums -out ../build/release/0.1.0
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what the flags say.
type release struct {
	tree     string    // a checkout
	binaries string    // folder of folders GOOS-GOARCH
	out      string    // folder that the release is written to
	version  string    // of the program
	time     time.Time // of the commit
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say what to write: archives, chart, changelog or sums")
	}
	var r release
	var seconds int64
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&r.tree, "tree", "..", "checkout")
	flags.StringVar(&r.binaries, "binaries", "", "folder with a folder GOOS-GOARCH for each binary")
	flags.StringVar(&r.out, "out", "", "folder to write to")
	flags.StringVar(&r.version, "version", "", "version of the program")
	flags.Int64Var(&seconds, "time", 0, "time of the commit, in seconds since 1970")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	r.time = time.Unix(seconds, 0).UTC()
	if r.out == "" {
		return errors.New("-out is missing: the folder to write to")
	}
	switch args[0] {
	case "archives":
		return r.archives()
	case "changelog":
		return r.changelog()
	case "chart":
		return r.chart()
	case "sums":
		return sums(r.out)
	}
	return fmt.Errorf("there is no %q to write: archives, chart, changelog or sums", args[0])
}

// archives packs each binary and writes its bill of materials beside the archive.
func (r release) archives() error {
	found, err := filepath.Glob(filepath.Join(r.binaries, "*", "leeway*"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no binary in %s: %w", filepath.Join(r.binaries, "GOOS-GOARCH"), errors.Join(err, os.ErrNotExist))
	}
	for _, binary := range found {
		name := "leeway-" + r.version + "-" + filepath.Base(filepath.Dir(binary))
		if err := r.archive(binary, name); err != nil {
			return fmt.Errorf("pack %s: %w", binary, err)
		}
		if err := r.bill(binary, filepath.Join(r.out, name+".cdx.json")); err != nil {
			return fmt.Errorf("list what is in %s: %w", binary, err)
		}
	}
	return nil
}
