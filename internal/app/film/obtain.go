package film

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ffmpegPackage ships ffmpeg as a binary, for machines without Debian's package.
const ffmpegPackage = "@ffmpeg-installer/ffmpeg"

// findFFmpeg returns ffmpeg's path: on PATH, else in the cache, else installed there by npm.
func (o Options) findFFmpeg(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("ffmpeg"); err == nil {
		return path, nil
	}
	binary := filepath.Join(o.Cache, "ffmpeg", platform(), "ffmpeg")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	return binary, o.installFFmpeg(ctx, binary)
}

// installFFmpeg has npm install into a folder of its own, and moves the program to its place when it is whole. npm writes where it
// installs: a part of the program, of an install that was cut short or still runs, would pass for all of it.
func (o Options) installFFmpeg(ctx context.Context, binary string) error {
	o.progress("film: no ffmpeg on PATH, installing %s from npm", ffmpegPackage)
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return fmt.Errorf("film: make the cache: %w", err)
	}
	work, err := os.MkdirTemp(o.Cache, ".making-ffmpeg-")
	if err != nil {
		return fmt.Errorf("film: make the cache: %w", err)
	}
	defer os.RemoveAll(work)
	if err := npm(ctx, work, "install", "--ignore-scripts", "--no-save", "--prefix", work, ffmpegPackage); err != nil {
		return fmt.Errorf("film: get ffmpeg: %w (or install it: apt-get install ffmpeg)", err)
	}
	made := filepath.Join(work, "node_modules", "@ffmpeg-installer", platform(), "ffmpeg")
	err = os.Chmod(made, 0o755) // its own install script would do it, and install scripts stay off
	if err == nil {
		err = os.Rename(made, binary)
	}
	if err != nil {
		return fmt.Errorf("film: get ffmpeg for %s: %w (install it: apt-get install ffmpeg)", platform(), err)
	}
	return nil
}

// platform is Node's name of this machine, as in "linux-x64".
func platform() string {
	arch := runtime.GOARCH
	switch arch {
	case "amd64":
		arch = "x64"
	case "386":
		arch = "ia32"
	}
	return runtime.GOOS + "-" + arch
}

// npmFile downloads a package into work and returns the path of one of its files, unpacked.
func npmFile(ctx context.Context, work, name, member string) (string, error) {
	if err := npm(ctx, work, "pack", "--silent", "--ignore-scripts", name); err != nil {
		return "", fmt.Errorf("film: download %s: %w (is the npm registry reachable?)", name, err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return "", fmt.Errorf("film: download %s: npm left %d archives where one was expected", name, len(archives))
	}
	out := filepath.Join(work, filepath.Base(member))
	if err := untar(archives[0], member, out); err != nil {
		return "", fmt.Errorf("film: unpack %s: %w", name, err)
	}
	return out, os.Remove(archives[0])
}

func npm(ctx context.Context, dir string, args ...string) error {
	path, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is not on PATH (apt-get install npm)")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("npm %s: %w: %s", strings.Join(args[:1], " "), err, lastLine(string(text)))
	}
	return nil
}

// untar writes the one named member of a .tgz to out.
func untar(archive, member, out string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("no %s in it", member)
		}
		if err != nil {
			return err
		}
		if h.Name != member {
			continue
		}
		w, err := os.Create(out)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		return errors.Join(err, w.Close())
	}
}
