package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// readBack unpacks a file that `both` wrote, checks each digest in it, and writes the files of each image to a folder dir/ARCH.
func readBack(file, dir string) error {
	at := filepath.Join(dir, "layout")
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := untar(in, at); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := checkBlobs(filepath.Join(at, "blobs", "sha256")); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	top, err := layout.ImageIndexFromPath(at)
	if err != nil {
		return err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("%s has %d entries, one is expected", file, len(manifest.Manifests))
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Printf("%s@%s\n", manifest.Manifests[0].Annotations["io.containerd.image.name"], manifest.Manifests[0].Digest)
	images, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, found := range images.Manifests {
		image, err := index.Image(found.Digest)
		if err == nil {
			err = extract(image, filepath.Join(dir, found.Platform.Architecture))
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", file, found.Platform, err)
		}
		fmt.Printf("%s@%s\n", found.Platform, found.Digest)
	}
	return nil
}

// checkBlobs says whether each blob is what its name says. The library checks layers alone.
func checkBlobs(dir string) error {
	blobs, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		text, err := os.ReadFile(filepath.Join(dir, blob.Name()))
		if err != nil {
			return err
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(text)); sum != blob.Name() {
			return fmt.Errorf("blob %s has the digest %s", blob.Name(), sum)
		}
	}
	return nil
}

func extract(image v1.Image, dir string) error {
	files := mutate.Extract(image)
	return errors.Join(untar(files, dir), files.Close())
}

// untar writes the regular files of a tar file below a folder; one that would be elsewhere is an error.
func untar(in io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(in); ; {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("%s is not a file", h.Name)
		}
		text, err := io.ReadAll(files)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(h.Name), 0o755)
		}
		if err == nil {
			err = root.WriteFile(h.Name, text, h.FileInfo().Mode().Perm()|0o600)
		}
		if err != nil {
			return err
		}
	}
}
