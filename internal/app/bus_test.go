package app

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/natsbus"
)

// TestServicesWaitForNATS: services that start before their NATS server are alive and not ready, can be stopped, and begin when it is there.
func TestServicesWaitForNATS(t *testing.T) {
	defer goleak.VerifyNone(t)
	bus := freeAddress(t)
	l, err := net.Listen("tcp", bus) // a server that is not up yet, which keeps the port for the one that will be
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	dir := t.TempDir()
	service := func(name, admin string) string {
		text, err := json.Marshal(map[string]any{
			"sites": []any{map[string]any{"name": "demo", "hosts": []string{"video.example.com"}, "fetch_base": "http://127.0.0.1:9"}},
			name:    map[string]any{"listen": "127.0.0.1:0", "admin": admin, "data_dir": filepath.Join(dir, name)},
			"nats":  map[string]string{"url": "nats://" + bus},
		})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name+".yaml")
		write(t, file, string(text))
		return file
	}
	type running struct {
		admin string
		stop  func() error
	}
	begin := func(name string) running {
		admin := freeAddress(t)
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		ended := make(chan error, 1)
		args := []string{name, "--config", service(name, admin)}
		go func() {
			ended <- Run(ctx, args, Env{Stdout: newLockedBuffer(), Stderr: newLockedBuffer(), Environ: []string{"HOME=" + dir}})
		}()
		return running{admin, func() error { cancel(); return <-ended }}
	}
	waits := func(r running) {
		t.Helper()
		awaitAdmin(t, r.admin, "/readyz", http.StatusServiceUnavailable, "waiting for NATS")
		awaitAdmin(t, r.admin, "/healthz", http.StatusOK, "ok")
	}
	given := begin("seed")
	waits(given)
	if err := given.stop(); err != nil {
		t.Errorf("stopped while it waited: %v", err)
	}
	both := []running{begin("tracker"), begin("seed")}
	for _, r := range both {
		waits(r)
	}
	_ = l.Close()
	server, err := natsbus.Open(natsbus.Config{Listen: bus})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range both {
		awaitAdmin(t, r.admin, "/readyz", http.StatusOK, "ready")
	}
	for _, r := range both {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// awaitAdmin asks an admin port until it answers with status and text.
func awaitAdmin(t *testing.T, admin, path string, status int, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last string
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.After(time.Minute); ; {
		if r, err := client.Get("http://" + admin + path); err == nil {
			body, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if last = string(body); r.StatusCode == status && strings.Contains(last, text) {
				return
			}
		}
		select {
		case <-deadline:
			t.Fatalf("%s%s: %q", admin, path, last)
		case <-tick.C:
		}
	}
}
