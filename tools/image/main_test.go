package main

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestTheSameBinaryIsTheSameImage: one executable file, run by nobody, and a digest that another build gets as well.
func TestTheSameBinaryIsTheSameImage(t *testing.T) {
	first, err := pack([]byte("binary"), "1.2.3", "abc")
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack([]byte("binary"), "1.2.3", "abc")
	if err != nil {
		t.Fatal(err)
	}
	one, err := first.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := second.Digest(); err != nil || one != two {
		t.Errorf("%s and %s: %v", one, two, err)
	}
	config, err := first.ConfigFile()
	if err != nil || config.Config.User != nobody || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/leeway" {
		t.Errorf("%+v: %v", config, err)
	}
	files := mutate.Extract(first)
	defer files.Close()
	in := tar.NewReader(files)
	h, err := in.Next()
	if err != nil || h.Name != "leeway" || h.Mode != 0o555 {
		t.Fatalf("%+v: %v", h, err)
	}
	if text, err := io.ReadAll(in); err != nil || string(text) != "binary" {
		t.Errorf("%q: %v", text, err)
	}
	if h, err := in.Next(); err != io.EOF {
		t.Errorf("also %+v", h)
	}
}

// TestAFilmIsPacked below /film, for everybody to read, with its folders' names.
func TestAFilmIsPacked(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "240p"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"master.m3u8", "240p/seg-00000.ts"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	film, err := folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	image, err := pack([]byte("binary"), "1.2.3", "abc", film)
	if err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	found := map[string]int64{}
	for in := tar.NewReader(files); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = h.Mode
	}
	if len(found) != 3 || found["leeway"] != 0o555 || found["film/master.m3u8"] != 0o444 || found["film/240p/seg-00000.ts"] != 0o444 {
		t.Errorf("%v", found)
	}
}
