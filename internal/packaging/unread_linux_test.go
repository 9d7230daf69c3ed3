package packaging

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestAFolderThatCannotBeReadHoldsUpNothingElse, such as the lost+found of a volume. It is told once.
func TestAFolderThatCannotBeReadHoldsUpNothingElse(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	if err := os.Mkdir(filepath.Join(p.dir, "lost+found"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		runtime.LockOSThread() // the thread alone gets the rights of another user
		defer runtime.UnlockOSThread()
		const other = 65534
		if _, _, err := syscall.RawSyscall(syscall.SYS_SETFSUID, other, 0, 0); err != 0 {
			t.Fatal(err)
		}
		defer func() { _, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0) }()
	}
	files, err := p.Playlists()
	if len(files) != 1 || err == nil || !strings.Contains(err.Error(), "lost+found") {
		t.Errorf("%q, %v", files, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var told []error
	if err := p.Watch(ctx, nil, func(_ string, _ *Plan, err error) { told = append(told, err) }); err != nil || len(told) != 1 || !strings.Contains(told[0].Error(), "lost+found") {
		t.Errorf("%v, told %v", err, told)
	}
}
