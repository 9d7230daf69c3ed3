// Command image packs the binary into a container image: one file on nothing, as nobody, the same bytes for the same binary.
// It needs no container engine.
//
//	go run ./image -binary ../build/image/leeway -version 0.1.0 -out ../build/leeway-image.tar -tag leewayvideo/leeway:0.1.0
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nobody is the user and group of the process, known by number only: the image has no /etc/passwd.
const nobody = "65532:65532"

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
	out := flag.String("out", "", "file for the image, in the format of docker save")
	tag := flag.String("tag", "", "name of the image")
	push := flag.Bool("push", false, "send it to the registry that the tag names, with the credentials of docker login")
	flag.Parse()
	text, err := os.ReadFile(*binary)
	if err != nil {
		return err
	}
	image, err := pack(text, *version, *commit)
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
	fmt.Printf("%s\n%s@%s\n", *out, ref, digest)
	if *push {
		return remote.Write(ref, image, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	return nil
}

// pack makes the image. No time is written into it, so that whoever builds the binary again gets the same digest.
func pack(binary []byte, version, commit string) (v1.Image, error) {
	files, err := root(binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", "amd64", v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{
		User: nobody, Entrypoint: []string{"/leeway"}, WorkingDir: "/",
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
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "leeway", Mode: 0o555, Size: int64(len(binary)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}
