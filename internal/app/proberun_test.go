package app

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// TestProbeRun checks the line of loopback from a terminal: by TLS with a token, as JSON and as a table; and says what is wrong.
func TestProbeRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	signing, keys := keygen(t)
	listen, admin, dir := freeAddress(t), freeAddress(t), t.TempDir()
	cert, key := writePair(t, dir, "localhost")
	file, tokenFile := filepath.Join(dir, "leeway.yaml"), filepath.Join(dir, "token")
	write(t, file, fmt.Sprintf("sites:\n  - {name: paid, hosts: [paid.example.com], access: token, token_keys: %q}\n", keys))
	write(t, tokenFile, mint(t, "--key", signing, "--site", "paid", "--life", "1h")+"\n")
	stop := startService(t, admin, "probe", "serve", "--config", file, "--listen", listen, "--udp", "127.0.0.1:0", "--admin", admin, "--tls-cert", cert, "--tls-key", key)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	_, port, _ := net.SplitHostPort(listen)
	server := "https://localhost:" + port
	run := func(args ...string) (out, errs string, code int) {
		return leeway(t, nil, append([]string{"probe", "run", "--duration", "2s", "--streams", "2", "--messages", "50"}, args...)...)
	}
	out, errs, code := run("--ca", cert, "--token-file", tokenFile, "--json", server)
	var r netcheck.Results
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Version != 1 || r.Server != "localhost:"+port || len(r.Scores) != 3 {
		t.Errorf("%d %v\n%s\n%s", code, err, out, errs)
	}
	names := map[string]int{}
	for _, f := range r.Figures {
		names[f.Name]++
	}
	if names["throughput"] != 2 || names["responsiveness"] != 2 || names["loss"] != 3 || names["round_trip"] != 1 {
		t.Errorf("figures %v", names)
	}
	out, errs, code = run("--ca", cert, "--token-file", tokenFile, "--only", "quality,classes", "--dscp", "0,46", server)
	if code != 0 || !strings.Contains(out, "round trip") || !strings.Contains(out, "DSCP 46: the server read 46 on ") || !strings.Contains(errs, "classes …") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	out, errs, code = run("--ca", cert, "--token-file", tokenFile, "--gives-way", "--only", "upload", server)
	if code != 0 || !strings.Contains(out, "free capacity") || !strings.Contains(errs, "upload …") || strings.Contains(out, "throughput") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no token":         {[]string{"--ca", cert, server}, 1, "--token"},
		"unknown roots":    {[]string{server}, 1, "--ca"},
		"no server":        {[]string{"http://" + freeAddress(t)}, 1, "firewall"},
		"no address":       {[]string{"localhost"}, 2, "https://"},
		"no STUN server":   {[]string{"--ca", cert, "--token-file", tokenFile, "--only", "reach", server}, 1, "probe.stun"},
		"a phase":          {[]string{"--only", "all", server}, 2, "phase"},
		"no giving way":    {[]string{"--gives-way", "--only", "http", server}, 2, "do not give way"},
		"a DSCP":           {[]string{"--dscp", "64", server}, 2, "DSCP 64"},
		"no duration":      {[]string{"--duration", "0s", server}, 2, "--duration"},
		"a file of roots":  {[]string{"--ca", key, server}, 2, "no certificate"},
		"a file of tokens": {[]string{"--token-file", filepath.Join(dir, "none"), server}, 2, "no such file"},
	} {
		if out, errs, code := run(c.args...); code != c.code || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%s: %d %s%s", name, code, out, errs)
		}
	}
}

// TestCheckPrintsConfidence: a figure of responsiveness has its confidence below it.
func TestCheckPrintsConfidence(t *testing.T) {
	var out strings.Builder
	printCheck(&out, &netcheck.Results{
		Figures:    []netstat.Figure{netstat.RequestResponsiveness.Of(netstat.Down, 755)},
		Confidence: map[netstat.Direction]netstat.Confidence{netstat.Down: netstat.High},
	})
	if got := strings.Fields(out.String()); !strings.Contains(out.String(), "755 RPM") || !slices.Equal(got[len(got)-4:], []string{"its", "confidence", "high", "–"}) {
		t.Error(out.String())
	}
}
