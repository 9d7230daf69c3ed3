package app

import (
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAnnounceProblems(t *testing.T) {
	for text, good := range map[string]bool{
		"203.0.113.9": true, "2001:db8::9": true, "node": true, "stun:turn.example.com": true, "stun:192.0.2.1:3478": true,
		"": false, "seed.example.com": false, "stun:": false, "stun://turn.example.com": false, "Node": false, "203.0.113.9:4600": false,
	} {
		if problem := announceProblem(text, "worker-1"); (problem == "") != good {
			t.Errorf("%q: %q", text, problem)
		}
	}
	if announceProblem("node", "") == "" {
		t.Error("a node without a name passed")
	}
}

// apiServer stands in for that of Kubernetes; its folder is a pod's account.
func apiServer(t *testing.T, answer http.HandlerFunc) nodeReader {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string][]byte{"token": []byte("a.b.c\n"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return nodeReader{host, port, folder}
}

func TestANodesExternalAddresses(t *testing.T) {
	n := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/worker-1" || r.Header.Get("Authorization") != "Bearer a.b.c" {
			t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		_, _ = w.Write([]byte(`{"kind":"Node","status":{"addresses":[{"type":"InternalIP","address":"10.0.0.7"},{"type":"Hostname","address":"worker-1"},
			{"type":"ExternalIP","address":"203.0.113.9"},{"type":"ExternalIP","address":"2001:db8::9"}]}}`))
	})
	got, err := n.external(t.Context(), "worker-1")
	if want := []netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8::9")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhyANodeHasNoAddress(t *testing.T) {
	answer := func(code int, body string) nodeReader {
		return apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		})
	}
	stranger := answer(200, "{}")
	stranger.folder = answer(200, "{}").folder
	if err := os.WriteFile(filepath.Join(stranger.folder, "ca.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := answer(200, "{}")
	lost.folder = t.TempDir()
	for want, n := range map[string]nodeReader{
		"no ExternalIP":      answer(200, `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.7"}]}}`),
		"ClusterRole":        answer(403, "{}"),
		"404":                answer(404, "{}"),
		"307":                answer(307, ""),
		"answer":             answer(200, "<html>"),
		"no pod":             {},
		"no certificate":     stranger,
		"no service account": lost,
	} {
		if all, err := n.external(t.Context(), "worker-1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, all, err)
		}
	}
}

func TestASeedAnnouncesWhatAServerSees(t *testing.T) {
	config := defaults(func(string) string { return "" }).Turn
	config.Listen, config.Secrets = "127.0.0.1:0", []string{turnSecret}
	relay, err := startTurn(config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer relay.stop()
	p := seedParts{listen: "127.0.0.1:0", log: slog.New(slog.DiscardHandler)}
	p.config.Announce = []string{"stun:" + relay.server.Addr().String(), "203.0.113.9"}
	got, err := p.announced(t.Context())
	if want := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("203.0.113.9")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	p.config.Announce = []string{"seed.example.com"}
	if _, err := p.announced(t.Context()); err == nil {
		t.Error("a name was announced")
	}
}

// TestAnInterruptEndsTheQuestionWhereASeedIs: a server that does not answer is asked for 4 s, and an API server for 15 s.
func TestAnInterruptEndsTheQuestionWhereASeedIs(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _, _ = silent.ReadFrom(make([]byte, 1500))
		cancel()
	}()
	p := seedParts{listen: "127.0.0.1:0", log: slog.New(slog.DiscardHandler)}
	p.config.Announce = []string{"stun:" + silent.LocalAddr().String()}
	if _, err := p.announced(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
