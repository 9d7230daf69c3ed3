package app

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
)

func TestASiteIsSwitchedInItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	at := time.Now()
	put := func(text string) {
		t.Helper()
		write(t, file, text)
		at = at.Add(time.Second) // the clock of some file systems is that coarse
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	const two = "sites:\n  - name: a\n    hosts: [a.example]\n    off: %\n  - name: b\n    hosts: [b.example]\n"
	put(strings.Replace(two, "%", "false", 1))
	r := &run{env: Env{}, flags: &cli{Config: file}}
	path, read := r.sitesFile(&struct{}{})
	sites, err := read()
	if err != nil || path != file {
		t.Fatal(path, err)
	}
	var told []string
	var log bytes.Buffer
	w := openWatch(path, sites, read, siteChanges{off: func(site string, off bool) {
		told = append(told, map[bool]string{true: "off ", false: "on "}[off]+site)
	}}, slog.New(slog.NewTextHandler(&log, nil)))
	w.look()
	put(strings.Replace(two, "%", "true", 1))
	w.look()
	w.look()
	put(strings.Replace(two, "%", "perhaps", 1)) // half-written, or wrong
	w.look()
	if !strings.Contains(log.String(), "cannot be read again") {
		t.Errorf("log: %s", &log)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	w.look()
	put(strings.Replace(two, "%", "false", 1) + "  - name: c\n    hosts: [c.example]\n    off: true\n")
	w.look()
	if want := []string{"off a", "on a"}; !slices.Equal(told, want) {
		t.Errorf("told %v, not %v", told, want)
	}
}

// TestPackagersKeysAreReadAgain: another list of keys is told once; a wrong one changes nothing.
func TestPackagersKeysAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	at := time.Now()
	put := func(keys string) {
		t.Helper()
		write(t, file, "sites:\n  - name: a\n    hosts: [a.example]\n    packager_keys: ["+keys+"]\n")
		at = at.Add(time.Second)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	first, second := newPackagerKey(t), newPackagerKey(t)
	put(first)
	path, read := (&run{env: Env{}, flags: &cli{Config: file}}).sitesFile(&struct{}{})
	sites, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	w := openWatch(path, sites, read, siteChanges{packagers: func(site string, keys []certificate.VerifyKey) {
		for _, k := range keys {
			told = append(told, base64.RawURLEncoding.EncodeToString(k.Key))
		}
		told = append(told, site)
	}}, slog.New(slog.DiscardHandler))
	for _, keys := range []string{first, first + ", " + second, first + ", no-key", first + ", " + second, ""} {
		put(keys)
		w.look()
		w.look()
	}
	if want := []string{first, second, "a", "a"}; !slices.Equal(told, want) {
		t.Errorf("told %v, not %v", told, want)
	}
}

func newPackagerKey(t *testing.T) string {
	t.Helper()
	_, public, _, err := packagerKey(filepath.Join(t.TempDir(), "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// TestSitesAreReadAgainAsTheServiceStarted: what the environment or a flag says is missing in the file, whose sites are followed all the same.
func TestSitesAreReadAgainAsTheServiceStarted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	for name, c := range map[string]struct {
		section string
		environ []string
		flags   any
	}{
		"seed":    {"seed: {fleet: {listen: '10.0.0.7:4602'}}", []string{"LEEWAY_SEED_FLEET_SECRET=" + strings.Repeat("s", 43)}, &seedCmd{}},
		"tracker": {"nats: {nkey_file: user.nk}", nil, &trackerCmd{Listen: new("127.0.0.1:8080"), NATS: new("nats://127.0.0.1:4222")}},
	} {
		write(t, file, "sites: [{name: a, hosts: [a.example], off: true}]\n"+c.section+"\n")
		r := &run{env: Env{service: name, Environ: c.environ}, flags: &cli{Config: file}}
		_, read := r.sitesFile(c.flags)
		if sites, err := read(); err != nil || len(sites) != 1 || !sites[0].Off {
			t.Errorf("%s: %v, %v", name, sites, err)
		}
	}
}

// TestWhatChangedWhileAServiceStartedIsTold: a service may wait two minutes for its bus.
func TestWhatChangedWhileAServiceStartedIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "sites: [{name: a, hosts: [a.example]}]\n")
	path, read := (&run{env: Env{}, flags: &cli{Config: file}}).sitesFile(&struct{}{})
	sites, err := read()
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "sites: [{name: a, hosts: [a.example], off: true}]\n")
	var told []string
	w := openWatch(path, sites, read, siteChanges{off: func(site string, _ bool) { told = append(told, site) }}, slog.New(slog.DiscardHandler))
	w.look()
	w.look()
	if !slices.Equal(told, []string{"a"}) {
		t.Errorf("told %v", told)
	}
}
