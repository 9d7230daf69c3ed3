// Command image packs the binary into a container image: one file on nothing, run by an unprivileged user, the same bytes for the
// same binary. It needs no container engine.
//
//	go run ./image -binary ../build/image/leeway -version 0.1.0 -out ../build/leeway-image.tar -tag leewayvideo/leeway:0.1.0
//	go run ./image -binary amd64/leeway -arm64 arm64/leeway -version 0.1.0 -out leeway-oci.tar -tag leewayvideo/leeway:0.1.0
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// unprivileged is the user and group of the process, known by number only: the image has no /etc/passwd.
const unprivileged = "65532:65532"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run() error {
	binary := flag.String("binary", "", "static binary to pack")
	version := flag.String("version", "", "its version")
	commit := flag.String("commit", "", "commit that it was built from")
	arm64 := flag.String("arm64", "", "the same for arm64: writes both as one OCI image layout, by the index that registries hand out")
	out := flag.String("out", "", "file for the image, in the format of docker save")
	tag := flag.String("tag", "", "name of the image")
	film := flag.String("film", "", "folder of a film to pack as well, as /film: an image for leeway origin")
	resolve := flag.String("resolve", "", "packs nothing: prints this name of an image with the digest that its registry has for it")
	read := flag.String("read", "", "packs nothing: checks an OCI image layout and unpacks its images below the folder -out")
	push := flag.Bool("push", false, "send it to the registry that the tag names, with the credentials of docker login")
	flag.Parse()
	if *resolve != "" {
		line, err := pinned(*resolve)
		if err == nil {
			fmt.Println(line)
		}
		return err
	}
	if *read != "" {
		return readBack(*read, *out)
	}
	text, err := os.ReadFile(*binary)
	if err != nil {
		return err
	}
	if *arm64 != "" {
		other, err := os.ReadFile(*arm64)
		if err != nil {
			return err
		}
		return both(*out, *tag, *version, *commit, map[string][]byte{"amd64": text, "arm64": other})
	}
	layers := [][]byte{}
	if *film != "" {
		files, err := folder(*film)
		if err != nil {
			return err
		}
		layers = append(layers, files)
	}
	image, err := pack(text, "amd64", *version, *commit, layers...)
	if err != nil {
		return err
	}
	ref, err := name.NewTag(*tag)
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(*out, ref, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	key := "IMAGE" // as settings.env has it
	if *film != "" {
		key = "FILM_IMAGE"
	}
	fmt.Printf("%s\n%s=%s@%s\n", *out, key, ref, digest)
	if *push {
		return remote.Write(ref, image, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	return nil
}

// pinned is a name with a tag and the digest that the registry has for it: of an index, where there is one for several machines.
func pinned(text string) (string, error) {
	ref, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return "", err
	}
	found, err := remote.Head(ref, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", err
	}
	return text + "@" + found.Digest.String(), nil
}

// pack makes the image. No time is written into it, so that every build of the same binary gets the same digest.
// layers are further tar files.
func pack(binary []byte, arch, version, commit string, layers ...[]byte) (v1.Image, error) {
	files, err := root(binary)
	if err != nil {
		return nil, err
	}
	image := empty.Image
	for _, text := range append(layers, files) { // what changes seldom comes first
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{
		User: unprivileged, Entrypoint: []string{"/leeway"}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": "Leeway", "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version": version, "org.opencontainers.image.revision": commit,
		},
	}
	return mutate.ConfigFile(image, file)
}

// root is the file system: the binary, which carries script, page and CA roots.
func root(binary []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := add(w, "leeway", 0o555, binary); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

// folder is a film's folder as /film.
func folder(dir string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		return add(w, "film/"+path, 0o444, text)
	})
	if err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

func add(w *tar.Writer, name string, mode int64, text []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}
