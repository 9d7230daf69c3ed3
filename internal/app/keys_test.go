package app

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestSecretIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var wg sync.WaitGroup
	secrets := make([]string, 8)
	for i := range secrets {
		wg.Go(func() {
			s, err := trackerSecret(dir)
			if err != nil {
				t.Error(err)
			}
			secrets[i] = string(s)
		})
	}
	wg.Wait()
	for _, s := range secrets {
		if s != secrets[0] || len(s) != secretBytes {
			t.Fatalf("secrets differ, or have %d bytes", len(s))
		}
	}
	info, err := os.Stat(filepath.Join(dir, secretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestADamagedSecretIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, secretFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trackerSecret(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("%v", err)
	}
}

// TestOneSecretForEveryKey: what leeway secret prints is taken by every key that takes a secret, and is another each time.
func TestOneSecretForEveryKey(t *testing.T) {
	secret, errs, code := leeway(t, nil, "secret")
	other, _, _ := leeway(t, nil, "secret")
	if secret = strings.TrimSpace(secret); code != 0 || len(secret) != 43 || secret == strings.TrimSpace(other) {
		t.Fatalf("%d %q %s", code, secret, errs)
	}
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, strings.ReplaceAll(`sites: [{name: demo, hosts: [video.example.com], access: public}]
admin: {token: SECRET}
tracker: {secret: SECRET, ice_servers: [{urls: ["turn:turn.example.com"], secret: SECRET}], webtorrent: {token: SECRET}}
seed: {fleet: {listen: "127.0.0.1:4602", secret: SECRET}}
turn: {secrets: [SECRET]}
nats: {user: u, password: SECRET}
`, "SECRET", secret))
	if out, errs, code := leeway(t, nil, "config", "check", file); code != 0 {
		t.Errorf("%s%s", out, errs)
	}
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(secret) + "="
	if b, err := decodeSecret(standard, "here"); err != nil || len(b) != secretBytes {
		t.Errorf("the other alphabet of base64: %v", err)
	}
}

// TestCallersMistakesAreUsage: what only the caller can mend ends with 2.
func TestCallersMistakesAreUsage(t *testing.T) {
	for _, line := range []string{
		"nix", "doctor", "doctor x", "doctor --config /nix", "viewer x", "viewer --record /nix/x http://127.0.0.1:9/b", "viewer --token-file /nix http://127.0.0.1:9/x",
		"token keygen /nix/x", "token mint --key /nix --site x", "film /nix", "switch demo maybe", "purge", "config check", "config check /nix", "help nix", "completion tcsh",
	} {
		if _, errs, code := leeway(t, nil, strings.Fields(line)...); code != 2 || errs == "" {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}
