package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/cmdline"
)

const lockFile = "lock"

// lockFolder takes a data folder for this process, and returns how to let go of it. Two seeds that write one store would
// remove each other's pieces. The kernel releases the lock of a process that dies, so a file left behind blocks no process.
func lockFolder(dir string) (release func(), err error) {
	const hint = "choose a folder that can be written: --data-dir"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w (%s)", err, hint)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w (%s)", err, hint)
	}
	if err := tryLock(file); err != nil {
		defer file.Close()
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("lock the data folder %s: %w", dir, err)
		}
		return nil, cmdline.Usage(fmt.Errorf("%s is in use by another Leeway%s: stop that one, or give this one a folder of its own by --data-dir", dir, holder(file)))
	}
	// The process ID is for the error message of another process. The lock itself needs no content, and a disk that is full takes none.
	_ = file.Truncate(0)
	_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return func() { _ = file.Close() }, nil
}

// holder names the process that wrote the lock, if it can be read.
func holder(file *os.File) string {
	text := make([]byte, 20)
	n, _ := file.ReadAt(text, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
