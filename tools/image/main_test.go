package main

import (
	"archive/tar"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestTheSameBinaryIsTheSameImage: one executable file, run by an unprivileged user, and a digest that another build gets as well.
func TestTheSameBinaryIsTheSameImage(t *testing.T) {
	first, err := pack([]byte("binary"), "amd64", "1.2.3", "abc")
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack([]byte("binary"), "amd64", "1.2.3", "abc")
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
	if err != nil || config.Config.User != unprivileged || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/leeway" {
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

// TestAFilmIsPacked below /film, readable by all, with its folders' names.
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
	image, err := pack([]byte("binary"), "amd64", "1.2.3", "abc", film)
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

// TestADigestIsTheRegistrys: what is printed for settings.env is what a registry hands out, and a name without a tag is refused.
func TestADigestIsTheRegistrys(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	text := strings.TrimPrefix(server.URL, "http://") + "/leeway:1.2.3"
	ref, err := name.NewTag(text)
	if err != nil {
		t.Fatal(err)
	}
	image, err := pack([]byte("binary"), "amd64", "1.2.3", "abc")
	if err == nil {
		err = remote.Write(ref, image)
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := pinned(text); err != nil || line != text+"@"+digest.String() {
		t.Errorf("%q, %v", line, err)
	}
	for _, bad := range []string{text[:len(text)-1], strings.TrimSuffix(text, ":1.2.3")} {
		if line, err := pinned(bad); err == nil {
			t.Errorf("%s is resolved to %s", bad, line)
		}
	}
}
