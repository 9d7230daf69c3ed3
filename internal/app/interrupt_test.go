package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/leeway-video/leeway/internal/cmdline"
)

// TestAnInterruptIsNoSuccess: what a script does next must not take the work for done. A service that was told to end has ended well.
func TestAnInterruptIsNoSuccess(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "low.m3u8"), "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n")
	write(t, filepath.Join(dir, "1.ts"), "one")
	write(t, filepath.Join(dir, "leeway.yaml"), "sites:\n  - {name: demo, hosts: [video.example.com], access: public}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	certify := []string{"certify", "--key", filepath.Join(t.TempDir(), "packager.key"), "--site", "demo"}
	for _, c := range []struct {
		args []string
		code int
	}{
		{append(certify, dir), 1},
		{append(certify, "--stdout", filepath.Join(dir, "low.m3u8")), 1},
		{append(certify, "--watch", t.TempDir()), 0},
		{[]string{"purge", "demo", "/"}, 1},
		{[]string{"seed", "--config", filepath.Join(dir, "leeway.yaml"), "--admin", "127.0.0.1:0", "--nats", "nats://127.0.0.1:1"}, 0},
	} {
		var out, log bytes.Buffer
		err := Run(ctx, c.args, Env{Stdout: &out, Stderr: &log, Environ: []string{"HOME=" + t.TempDir()}})
		if code := cmdline.ExitCode(err); code != c.code {
			t.Errorf("%q ends with %d, not %d: %v\n%s", c.args, code, c.code, err, log.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "low.m3u8.leeway")); err == nil {
		t.Error("there is a list although nothing was signed")
	}
}
