package ingest_test

import (
	"errors"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestAFullDiskIsToldToTheOperator, and is no upload that broke off: the packager cannot mend it. A file may not be longer than a limit of
// the process here, which is as if there were no more room.
func TestAFullDiskIsToldToTheOperator(t *testing.T) {
	const room = 1000
	s := newStation(t)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	full := before
	full.Cur = room
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	status, text := s.do(http.MethodPut, "/0.ts", strings.NewReader(strings.Repeat("x", 2*room)))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if status != http.StatusInternalServerError || len(s.errs) != 1 || !errors.Is(s.errs[0], syscall.EFBIG) {
		t.Errorf("answered %d (%s), told %v", status, text, s.errs)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}
