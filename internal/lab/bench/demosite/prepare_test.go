package demosite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// program puts a script in the place of the program.
func program(t *testing.T, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "leeway")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LEEWAY_BINARY", file)
}

// TestAFilmThatCannotBePreparedIsSaidBeforeTheLab: the program is asked for the film of that segment length, its words are in the bench's
// log and in the error, and the host is not needed for it.
func TestAFilmThatCannotBePreparedIsSaidBeforeTheLab(t *testing.T) {
	program(t, "echo \"asked for $*\" >&2\nexit 1\n")
	for segment, want := range map[time.Duration]string{0: "asked for film\n", 2 * time.Second: "asked for film --segment 2s\n"} {
		var log bytes.Buffer
		for _, o := range []Options{{Segment: segment, Log: &log}, {Segment: segment}} {
			_, err := Open(t.Context(), nil, o)
			if err == nil || !strings.Contains(err.Error(), "prepare the film") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", segment, err)
			}
		}
		if log.String() != want {
			t.Errorf("%s: the log has %q", segment, log.String())
		}
	}
}

// TestTheFilmIsPreparedOutsideTheLab: in the network of the machine, from which a registry can be reached, and the servers run in the
// lab's.
func TestTheFilmIsPreparedOutsideTheLab(t *testing.T) {
	if err := netlab.Available(); err != nil {
		t.Skip(err)
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, filmless := range []bool{false, true} {
		dir := t.TempDir()
		program(t, "readlink /proc/self/ns/net > "+dir+"/$1\n[ $1 = film ]\n")
		lab, err := netlab.New(netlab.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		host, _ := lab.Attach("servers", lab.Router("core"), netlab.Path{})
		err = lab.Start()
		if err == nil {
			_, err = Open(t.Context(), host, Options{Filmless: filmless})
		}
		if closed := lab.Close(); closed != nil {
			t.Error(closed)
		}
		if err == nil || !strings.Contains(err.Error(), "ended before they were ready") {
			t.Fatal(err)
		}
		film, _ := os.ReadFile(filepath.Join(dir, "film"))
		up, err := os.ReadFile(filepath.Join(dir, "up"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(film)); filmless && got != "" || !filmless && got != ours {
			t.Errorf("the film is prepared in network %q; ours is %s", got, ours)
		}
		if got := strings.TrimSpace(string(up)); got == "" || got == ours {
			t.Errorf("the servers ran in network %q; ours is %s", got, ours)
		}
	}
}
