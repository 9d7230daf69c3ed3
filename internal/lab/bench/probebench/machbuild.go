package probebench

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	machWait       = time.Hour
)

// machChange is a line of mach that is not as it was published.
type machChange struct{ file, was, is string }

// machChanges are all of them (decision 104, docs/experiments/responsiveness.md).
var machChanges = []machChange{
	// Its connections have Nagle's algorithm, with which a small request waits a round trip that browsers, curl and Go do not wait.
	{"crates/nq-tokio-network/src/lib.rs", "set_nodelay(false)", "set_nodelay(true)"},
	// It adds a connection to its load each second interval, where the draft does each.
	{"crates/nq-rpm/src/lib.rs", "&& interval % 2 == 0", ""},
	// It has one probe on its way, and five values of each kind in four intervals on a slow line. Now it has one for each connection of
	// its load. They begin with these: many at the start, when answers come soon, would take all connections that an address may have.
	{
		"crates/nq-rpm/src/lib.rs", "self.new_load_generating_connection(event_tx, env, shutdown)?;",
		"self.new_load_generating_connection(event_tx.clone(), env, shutdown.clone())?; self.send_foreign_probe(event_tx, env, shutdown)?;",
	},
	// It keeps ⌊0.95·n⌋ of n values, and so leaves out one of five, where the draft wants the largest twentieth to be left out.
	{"crates/nq-stats/src/lib.rs", "(samples.len() as f64 * percentile) as usize;", "(samples.len() as f64 * percentile).ceil() as usize;"},
}

// machName is the program's in the cache: another one for other changes.
func machName(changes []machChange) string {
	sum := sha256.Sum256(fmt.Append(nil, changes))
	return fmt.Sprintf("mach-%s-%x", machCommit[:12], sum[:4])
}

// machProgram gives the path of the program, and builds it where it is not there yet.
func machProgram(ctx context.Context) (string, error) {
	if named := os.Getenv(machVariable); named != "" {
		return exec.LookPath(named)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "leeway", machName(machChanges))
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
	for _, c := range machChanges {
		if err := c.apply(folder); err != nil {
			return err
		}
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

// apply changes the file below a folder.
func (c machChange) apply(folder string) error {
	path := filepath.Join(folder, filepath.FromSlash(c.file))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(text, []byte(c.was)); n != 1 {
		return fmt.Errorf("%s has %q %d times and not once", c.file, c.was, n)
	}
	return os.WriteFile(path, bytes.Replace(text, []byte(c.was), []byte(c.is), 1), 0o600)
}
