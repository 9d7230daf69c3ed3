package demosite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPrepareSaysWhatFailed: the program is asked for the film of that segment length, and its words are in the bench's log.
func TestPrepareSaysWhatFailed(t *testing.T) {
	program := filepath.Join(t.TempDir(), "leeway")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"asked for $*\" >&2\n[ \"$3\" != 6s ]\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LEEWAY_BINARY", program)
	for segment, want := range map[time.Duration]string{0: "asked for film\n", 2 * time.Second: "asked for film --segment 2s\n"} {
		var log bytes.Buffer
		if err := Prepare(t.Context(), segment, &log); err != nil || log.String() != want {
			t.Errorf("%s: %v, %q", segment, err, log.String())
		}
	}
	if err := Prepare(t.Context(), 6*time.Second, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "prepare the film") {
		t.Errorf("a program that fails: %v", err)
	}
}
