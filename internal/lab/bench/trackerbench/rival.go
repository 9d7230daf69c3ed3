package trackerbench

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
)

//go:embed rival.mjs
var rivalScript []byte

const (
	rivalVersion  = "11.2.3"
	rivalVariable = "LEEWAY_BITTORRENT_TRACKER"
	installWait   = 3 * time.Minute
	endWait       = 5 * time.Second
)

// missingError says why there is no rival on this machine.
type missingError struct{ err error }

func (e *missingError) Error() string {
	return fmt.Sprintf("bittorrent-tracker cannot be run: %v (npm install --ignore-scripts bittorrent-tracker@%s, and name the folder in %s)", e.err, rivalVersion, rivalVariable)
}

// rivalFolder is where bittorrent-tracker is installed: the folder named, or one in the cache, filled once by npm.
func rivalFolder(ctx context.Context) (string, error) {
	if named := os.Getenv(rivalVariable); named != "" {
		return named, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "leeway", "bittorrent-tracker-"+rivalVersion)
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "bittorrent-tracker", "server.js")); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, installWait)
	defer cancel()
	// Scripts stay off: one of its dependencies would fetch a binary, which no tracker needs.
	install := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", folder, "bittorrent-tracker@"+rivalVersion)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %.500s", err, out)
	}
	return folder, nil
}

// startRival starts bittorrent-tracker on the server's core.
func startRival(ctx context.Context, r *bench.Run, pair *hosted.Certificate, secure bool) (*process, error) {
	folder, err := rivalFolder(ctx)
	if err != nil {
		return nil, &missingError{err}
	}
	script := filepath.Join(pair.Dir, "rival.mjs")
	if err := os.WriteFile(script, rivalScript, 0o600); err != nil {
		return nil, err
	}
	args := []string{"-c", serverCore, "node", script, folder}
	if secure {
		args = append(args, pair.Cert, pair.Key)
	}
	cmd := exec.Command("taskset", args...)
	cmd.Stderr = r.Log
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, &missingError{err}
	}
	p := &process{name: "bittorrent-tracker", pid: cmd.Process.Pid}
	p.stop = func() error {
		_ = in.Close()
		late := time.AfterFunc(endWait, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&p.address); err != nil {
		return nil, &missingError{errors.Join(err, p.stop())}
	}
	return p, nil
}
