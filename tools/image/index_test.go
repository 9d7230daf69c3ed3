package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// TestBothProcessorsHaveAnImage: the file is an OCI image layout with one index, which leads to an image of each processor; that of amd64 is
// the one that is packed alone. The same binaries give the same file.
func TestBothProcessorsHaveAnImage(t *testing.T) {
	binaries := map[string][]byte{"amd64": []byte("binary"), "arm64": []byte("another")}
	dir := t.TempDir()
	var files [2][]byte
	for i := range files {
		out := filepath.Join(dir, "oci.tar")
		if err := both(out, "leewayvideo/leeway:1.2.3", "1.2.3", "abc", binaries); err != nil {
			t.Fatal(err)
		}
		var err error
		if files[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the same binaries give another file")
	}
	if err := readBack(filepath.Join(dir, "oci.tar"), dir); err != nil {
		t.Fatal(err)
	}
	for arch, binary := range binaries {
		if text, err := os.ReadFile(filepath.Join(dir, arch, "leeway")); err != nil || !bytes.Equal(text, binary) {
			t.Errorf("%s holds %q: %v", arch, text, err)
		}
	}
	top, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/leewayvideo/leeway:1.2.3" {
		t.Fatalf("%+v: %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil || len(images.Manifests) != len(binaries) {
		t.Fatalf("%+v: %v", images, err)
	}
	for _, found := range images.Manifests {
		image, err := index.Image(found.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != found.Platform.Architecture || config.OS != "linux" {
			t.Errorf("%+v: %v", config, err)
		}
		alone, err := pack(binaries[config.Architecture], config.Architecture, "1.2.3", "abc")
		if err != nil {
			t.Fatal(err)
		}
		if digest, err := alone.Digest(); err != nil || digest != found.Digest {
			t.Errorf("packed alone it is %s, in the index %s: %v", digest, found.Digest, err)
		}
	}
	if err := both(filepath.Join(dir, "x"), "not a name", "1", "", binaries); err == nil {
		t.Error("a wrong name is taken")
	}
}

// TestADamagedLayoutIsRefused, a blob changed or a part of the file missing.
func TestADamagedLayoutIsRefused(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "oci.tar")
	if err := both(out, "leewayvideo/leeway:1.2.3", "1.2.3", "abc", map[string][]byte{"amd64": []byte("binary"), "arm64": []byte("another")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"changed": bytes.Replace(text, []byte("65532:65532"), []byte("0:0 "+"      0"), 1),
		"short":   text[:len(text)/2],
		"empty":   nil,
	} {
		if err := os.WriteFile(out, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readBack(out, filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
