package app

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/testkit"
)

func TestAFolderHasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	release, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockFolder(dir)
	if cmdline.ExitCode(err) != 2 || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a second owner: %v", err)
	}
	release()
	again, err := lockFolder(dir)
	if err != nil {
		t.Fatalf("after it was let go: %v", err)
	}
	again()
}

func TestALockFileLeftBehindLocksNoProcessOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, lockFile), []byte("123456789 and more than a number"), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestAFullDiskKeepsNoSeedOut: what the lock file cannot hold is for an error message alone.
func TestAFullDiskKeepsNoSeedOut(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(full, filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	release, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := lockFolder(dir); cmdline.ExitCode(err) != 2 {
		t.Errorf("a second owner: %v", err)
	}
}

func TestTwoSeedsDoNotShareAStore(t *testing.T) {
	dir, film := t.TempDir(), testkit.TinyFilm(t)
	first := startUp(t, "--data-dir="+dir, "--media="+film)
	_, err := tryUp(t, "--data-dir="+dir, "--media="+film)
	if err == nil || !strings.Contains(err.Error(), "in use by another Leeway") {
		t.Errorf("the second one: %v", err)
	}
	if err := first.stop(); err != nil {
		t.Errorf("the first one: %v", err)
	}
	startUp(t, "--data-dir="+dir, "--media="+film)
}
