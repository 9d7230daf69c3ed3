package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// both writes the images of several processors, with the index that leads to them, as one OCI image layout in a tar file, and prints the
// digests: of the index, and of each image.
func both(out, tag, version, commit string, binaries map[string][]byte) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	lines := ""
	for _, arch := range slices.Sorted(maps.Keys(binaries)) {
		image, err := pack(binaries[arch], arch, version, commit)
		if err != nil {
			return err
		}
		digest, err := image.Digest()
		if err != nil {
			return err
		}
		lines += fmt.Sprintf("linux/%s %s@%s\n", arch, ref, digest)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := layoutFile(out, ref, index); err != nil {
		return err
	}
	fmt.Printf("IMAGE=%s@%s\n%s", ref, digest, lines)
	return nil
}

// layoutFile packs an index as an OCI image layout, under the names by which containerd and Docker import it.
func layoutFile(out string, ref name.Tag, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp("", "leeway-image")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	known := strings.Replace(ref.Name(), name.DefaultRegistry+"/", "docker.io/", 1) // as kubelets ask for it
	names := layout.WithAnnotations(map[string]string{"io.containerd.image.name": known, "org.opencontainers.image.ref.name": ref.TagStr()})
	if err := at.AppendIndex(index, names); err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	w := tar.NewWriter(file)
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error { // in the order of names
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		return add(w, path, 0o444, text)
	})
	return errors.Join(err, w.Close(), file.Close())
}
