package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
)

// certify runs the command and returns what it wrote.
func certify(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = Run(context.Background(), append([]string{"certify"}, args...), Env{Stdout: &out, Stderr: &log})
	return out.String(), log.String(), err
}

func TestCertify(t *testing.T) {
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "packager.key")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXTINF:4,\n2.ts\n#EXT-X-ENDLIST\n"
	flags := []string{"--key", key, "--site", "demo", "--path", "/media/"}
	if _, _, err := certify(t, append(flags, dir)...); err == nil || !strings.Contains(err.Error(), "no media playlist") {
		t.Errorf("an empty folder: %v", err)
	}
	write("master.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n")
	write("low.m3u8", list)
	write("1.ts", "one")
	if _, _, err := certify(t, append(flags, dir)...); err == nil || !strings.Contains(err.Error(), "2.ts") {
		t.Errorf("a file that is missing: %v", err)
	}
	write("2.ts", "two")
	if _, log, err := certify(t, append(flags, dir)...); err != nil || !strings.Contains(log, "low.m3u8: 2 segments, 1 of them unchanged") {
		t.Errorf("%v\n%s", err, log)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "low.m3u8.leeway"))
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := certify(t, append(flags, "--stdout", filepath.Join(dir, "low.m3u8"))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{stored, []byte(out)} {
		if entries, err := certificate.ParseList(b); err != nil || len(entries) != 2 || entries[1].Name != "/media/2.ts" {
			t.Errorf("%v: %v", entries, err)
		}
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
}

// TestThePublicHalfIsALineOfTheConfiguration, and the same at each call.
func TestThePublicHalfIsALineOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "packager.key")
	first, log, err := certify(t, "--key", key, "--public")
	if err != nil || !strings.Contains(log, "--public") {
		t.Fatalf("%v\n%s", err, log)
	}
	again, log, err := certify(t, "--key", key, "--public")
	if err != nil || again != first || log != "" {
		t.Errorf("%v: %q after %q\n%s", err, again, first, log)
	}
	file := filepath.Join(dir, "leeway.yaml")
	write(t, file, "sites:\n  - name: demo\n    hosts: [video.example.com]\n    "+first)
	r := &run{env: Env{}, flags: &cli{Config: file}}
	_, read := r.sitesFile(&struct{}{})
	sites, err := read()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := site.New(sites[0])
	if err != nil || len(rules.Packagers()) != 1 || !strings.Contains(first, rules.Packagers()[0].KeyID.String()) {
		t.Errorf("%q: %+v, %v", first, rules, err)
	}
}

func TestCertifySaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bad.key"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.m3u8"), []byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "good.key")
	for _, c := range []struct {
		want string
		args []string
		code int
	}{
		{"name the site with --site", []string{"--key", key, dir}, 2},
		{"not PEM", []string{"--key", filepath.Join(dir, "bad.key"), "--site", "demo", dir}, 1},
		{"no such file", []string{"--key", key, "--site", "demo", filepath.Join(dir, "none")}, 2},
		{"begins and ends with /", []string{"--key", key, "--site", "demo", "--path", "/media", dir}, 2},
		{"31 days", []string{"--key", key, "--site", "demo", "--life", "1000h", dir}, 2},
		{"--stdout takes one playlist", []string{"--key", key, "--site", "demo", "--stdout", dir}, 2},
		{"--watch takes a folder", []string{"--key", key, "--site", "demo", "--watch", filepath.Join(dir, "a.m3u8")}, 2},
		{"name a folder", []string{"--key", key, "--site", "demo"}, 2},
		{"name a folder", []string{"--key", key, "--public", dir}, 2},
		{"lists other playlists", []string{"--key", key, "--site", "demo", filepath.Join(dir, "a.m3u8")}, 1},
	} {
		_, _, err := certify(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || cmdline.ExitCode(err) != c.code {
			t.Errorf("%q: %v, exit code %d", c.args, err, cmdline.ExitCode(err))
		}
	}
}

// TestCertifyReceivesFromThisMachineAlone: it asks for no password. What is pushed is signed, and an interrupt ends it.
func TestCertifyReceivesFromThisMachineAlone(t *testing.T) {
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "packager.key")
	flags := []string{"--key", key, "--site", "demo"}
	for _, at := range []string{"0.0.0.0:0", "192.0.2.1:80", ":80", "localhost:80", "8090"} {
		if _, _, err := certify(t, append(flags, "--receive", at, dir)...); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if _, _, err := certify(t, append(flags, "--receive", "127.0.0.1:0", "--watch", dir)...); err == nil {
		t.Error("--watch and --receive at a time")
	}
	ctx, cancel := context.WithCancel(t.Context())
	said, ended := newLockedBuffer(), make(chan error, 1)
	go func() {
		ended <- Run(ctx, append([]string{"certify", "--receive", "127.0.0.1:0"}, append(flags, dir)...), Env{Stdout: io.Discard, Stderr: said})
	}()
	var base string
	testkit.Eventually(t, "an address is said", func() bool {
		_, after, _ := strings.Cut(said.String(), " at ")
		base, _, _ = strings.Cut(after, " into")
		return base != ""
	})
	for _, one := range [][2]string{{"1.ts", "one"}, {"low.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n"}} {
		file, text := one[0], one[1]
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, base+file, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s", file, got.Status)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "low.m3u8.leeway")); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
