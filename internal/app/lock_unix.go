//go:build unix

package app

import (
	"os"
	"syscall"
)

// errLocked is what tryLock returns while another process has the file.
const errLocked = syscall.EWOULDBLOCK

// tryLock takes a file for this process, and does not wait for it.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
