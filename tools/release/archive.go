package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// beside goes into every archive, and servers into those of systems that services run on.
var (
	beside  = []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}
	servers = []string{"deploy/host", "alerts/leeway.yml", "dashboards"}
)

// entry is a file of an archive.
type entry struct {
	name string // with the archive's own folder
	mode fs.FileMode
	text []byte
}

// archive packs a binary with what belongs beside it: a tar file, or for Windows a zip file.
func (r release) archive(binary, name string) error {
	windows := strings.HasSuffix(binary, ".exe")
	parts := beside
	if strings.Contains(name, "-linux-") {
		parts = append(parts[:len(parts):len(parts)], servers...)
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	entries := []entry{{path.Join(name, filepath.Base(binary)), 0o755, text}}
	for _, part := range parts {
		more, err := collect(r.tree, part, name)
		if err != nil {
			return err
		}
		entries = append(entries, more...)
	}
	if windows {
		return write(filepath.Join(r.out, name+".zip"), func(w io.Writer) error { return zipped(w, entries, r.time) })
	}
	return write(filepath.Join(r.out, name+".tar.gz"), func(w io.Writer) error { return tarred(w, entries, r.time) })
}

// collect reads a file of the tree, or those of a folder but for Go sources and dotfiles, which are the checkout's own.
func collect(tree, part, folder string) ([]entry, error) {
	var entries []entry
	root := os.DirFS(tree)
	err := fs.WalkDir(root, part, func(at string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() || strings.HasSuffix(at, ".go") || strings.HasPrefix(found.Name(), ".") {
			return err
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		text, err := fs.ReadFile(root, at)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		entries = append(entries, entry{path.Join(folder, at), mode, text})
		return nil
	})
	return entries, err
}

// write makes a file, and removes it where it could not be finished.
func write(file string, fill func(io.Writer) error) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

// tarred writes entries without owners, all of one time: the same files give the same bytes.
func tarred(w io.Writer, entries []entry, at time.Time) error {
	packed := gzip.NewWriter(w)
	out := tar.NewWriter(packed)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.text)), ModTime: at, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(e.text); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), packed.Close())
}

func zipped(w io.Writer, entries []entry, at time.Time) error {
	out := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(e.mode)
		file, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.text); err != nil {
			return err
		}
	}
	return out.Close()
}
