package probebench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// mach is Cloudflare's client of draft-ietf-ippm-responsiveness, which has nothing of Leeway in it. Its commit is fixed, and the bench
// builds it once, into the user's cache.
const (
	machCommit     = "10469a165265c7ce6ebbfdedf022aafdb024e825" // networkquality-rs 3.3.0, 2026-08-03
	machRepository = "https://github.com/cloudflare/networkquality-rs"
	// machVariable names a program that is built already, sourceVariable another place of the repository.
	machVariable   = "LEEWAY_MACH"
	sourceVariable = "LEEWAY_MACH_SOURCE"
	// machNetwork is the file with what is changed.
	machNetwork = "crates/nq-tokio-network/src/lib.rs"
	machWait    = time.Hour
)

// machProgram gives the path of the program, and builds it where it is not there yet.
func machProgram(ctx context.Context) (string, error) {
	if named := os.Getenv(machVariable); named != "" {
		return exec.LookPath(named)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "leeway", "mach-"+machCommit[:12])
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	for _, tool := range []string{"git", "cargo", "cmake"} {
		if err := lacks(tool); err != nil {
			return "", fmt.Errorf("mach cannot be built: %w (or name it in %s)", err, machVariable)
		}
	}
	source := os.Getenv(sourceVariable)
	if source == "" {
		source = machRepository
	}
	if err := buildMach(ctx, source, program); err != nil {
		return "", fmt.Errorf("no mach, which %s may name where it is built already: %w", machVariable, err)
	}
	return program, nil
}

// buildMach fetches the commit, changes it and builds the program, in a folder that is removed then.
func buildMach(ctx context.Context, source, program string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, machWait)
	defer cancel()
	folder, err := os.MkdirTemp("", "leeway-mach-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "CARGO_TARGET_DIR=target", "CARGO_PROFILE_RELEASE_DEBUG=0", "CARGO_PROFILE_RELEASE_STRIP=true")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, args[0], err, out[max(0, len(out)-1000):])
		}
		return nil
	}
	if err := run("git", "init", "--quiet"); err != nil {
		return err
	}
	if err := run("git", "fetch", "--quiet", "--depth", "1", source, machCommit); err != nil {
		return fmt.Errorf("it cannot be fetched, which takes a network that reaches %s, or a place of the repository with this commit in %s: %w", source, sourceVariable, err)
	}
	if err := run("git", "checkout", "--quiet", machCommit); err != nil {
		return err
	}
	path := filepath.Join(folder, filepath.FromSlash(machNetwork))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = sendAtOnce(text); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	if err := run("cargo", "fetch", "--locked"); err != nil {
		return fmt.Errorf("what it is made of cannot be fetched, which takes a network that reaches cargo's registry: %w", err)
	}
	if err := run("cargo", "build", "--release", "--locked", "--bin", "mach"); err != nil {
		return fmt.Errorf("it cannot be built, which takes libclang (apt-get install libclang-dev): %w", err)
	}
	built, err := os.ReadFile(filepath.Join(folder, "target", "release", "mach"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(program+".new", built, 0o755); err != nil {
		return err
	}
	return os.Rename(program+".new", program)
}

// sendAtOnce is the one change to mach: its connections have Nagle's algorithm, with which a small request waits a round trip that
// browsers, curl and Go do not wait.
func sendAtOnce(text []byte) ([]byte, error) {
	waits, sends := []byte("set_nodelay(false)"), []byte("set_nodelay(true)")
	if n := bytes.Count(text, waits); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times and not once", machNetwork, waits, n)
	}
	return bytes.Replace(text, waits, sends, 1), nil
}
