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
