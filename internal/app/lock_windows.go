package app

import (
	"os"

	"golang.org/x/sys/windows"
)

// errLocked is what tryLock returns while another process has the file.
const errLocked = windows.ERROR_LOCK_VIOLATION

// tryLock takes a file for this process, and does not wait for it. What is locked is one byte far behind the content:
// Windows keeps other processes from reading locked bytes, and the process ID is to be read.
func tryLock(file *os.File) error {
	const exclusive = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(file.Fd()), exclusive, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
}
