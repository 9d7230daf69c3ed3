//go:build unix

package app

import "syscall"

// maxFiles is how many files this process may have open: the runtime has raised it to what the system allows at most.
func maxFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}
