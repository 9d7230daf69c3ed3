package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
)

// freeAddress is an address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+lastPort.Add(1)%12_000)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// lastPort is the last one that was given away, above 20,000: below those that the kernel gives to a program that asks for any.
var lastPort = func() *atomic.Uint32 {
	var n atomic.Uint32
	n.Store(rand.Uint32N(12_000))
	return &n
}()

// writeSite writes a configuration with one site, whose origin is a test's server, and sections beside it.
func writeSite(t *testing.T, file, origin, base string, certifyFrom int, sections map[string]any) string {
	t.Helper()
	sections["sites"] = []any{map[string]any{
		"name": "demo", "hosts": []string{strings.TrimPrefix(origin, "http://")}, "fetch_base": origin + base,
		"policy": map[string]any{"certify_from": certifyFrom, "control_group_permille": 0},
	}}
	text, err := json.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text))
	return file
}

// startService runs a command until stop and waits until its admin port says that it is ready.
func startService(t *testing.T, admin string, args ...string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	errs := newLockedBuffer()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, args, Env{Stdout: errs, Stderr: errs, Environ: []string{"HOME=" + t.TempDir()}})
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); ; {
		if r, err := client.Get("http://" + admin + "/readyz"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return func() error { cancel(); return <-ended }
			}
		}
		select {
		case err := <-ended:
			cancel()
			t.Fatalf("leeway %v ended: %v\n%s", args, err, errs)
		case <-deadline:
			cancel()
			t.Fatalf("leeway %v is not ready:\n%s", args, errs)
		case <-tick.C:
		}
	}
}

// TestTrackerAndSeedApart runs two services joined by NATS, takes one away and brings it back.
func TestTrackerAndSeedApart(t *testing.T) {
	defer goleak.VerifyNone(t)
	public, trackerAdmin, seedAdmin, bus := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	dir := t.TempDir()
	config := func(name string, nats map[string]string) string {
		text, err := json.Marshal(map[string]any{
			"sites":   []any{map[string]any{"name": "demo", "hosts": []string{"video.example.com"}, "fetch_base": "http://127.0.0.1:9"}},
			"tracker": map[string]any{"listen": public, "admin": trackerAdmin, "data_dir": filepath.Join(dir, "tracker")},
			"seed":    map[string]any{"listen": "127.0.0.1:0", "admin": seedAdmin, "data_dir": filepath.Join(dir, "seed")},
			"nats":    nats,
		})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		write(t, file, string(text))
		return file
	}
	tracker := config("tracker.yaml", map[string]string{"listen": bus})
	stopTracker := startService(t, trackerAdmin, "tracker", "--config", tracker)
	seed := config("seed.yaml", map[string]string{"url": "nats://" + bus})
	stopSeed := startService(t, seedAdmin, "seed", "--config", seed)

	if code, text := fetch(t, "GET", "http://"+public+"/"); code != http.StatusUpgradeRequired || !strings.Contains(text, "WebSocket") {
		t.Errorf("a browser at the tracker: %d %s", code, text)
	}
	if code, _ := fetch(t, "GET", "http://"+public+"/leeway.js"); code != 200 {
		t.Errorf("script: %d", code)
	}
	if _, errs, code := leeway(t, nil, "--config", seed, "purge", "demo", "/a/", "--admin", seedAdmin); code != 0 {
		t.Errorf("a purge by way of the seed: %d %s", code, errs)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stopTracker(); err != nil {
		t.Errorf("tracker: %v", err)
	}
	testkit.Eventually(t, "a seed without its bus is not ready", func() bool { // it hears of the end by its connection
		code, text := fetch(t, "GET", "http://"+seedAdmin+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "bus")
	})
	stopTracker = startService(t, trackerAdmin, "tracker", "--config", tracker)
	for _, stop := range []func() error{stopSeed, stopTracker} {
		begin := time.Now()
		if err := stop(); err != nil || time.Since(begin) > 8*time.Second {
			t.Errorf("stopped after %v: %v", time.Since(begin), err)
		}
	}
}

func TestServicesWithoutASiteSayWhatToDo(t *testing.T) {
	for _, service := range []string{"tracker", "seed"} {
		_, errs, code := leeway(t, []string{"LEEWAY_TRACKER_LISTEN=127.0.0.1:0", "LEEWAY_TRACKER_ADMIN=127.0.0.1:0", "LEEWAY_SEED_ADMIN=127.0.0.1:0"}, service)
		if code != 2 || !strings.Contains(errs, "no site is configured") {
			t.Errorf("%s: %d %s", service, code, errs)
		}
	}
}
