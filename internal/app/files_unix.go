//go:build unix

package app

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a file the owner and group that another one had, where this process may do that: root.
func sameOwner(f *os.File, was fs.FileInfo) error {
	of, ok := was.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := f.Chown(int(of.Uid), int(of.Gid)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// maxFiles is how many files this process may have open: the runtime has raised it to what the system allows at most.
func maxFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}
