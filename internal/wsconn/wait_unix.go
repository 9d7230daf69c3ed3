//go:build unix

package wsconn

import "golang.org/x/sys/unix"

// readable asks the system whether there is something to read, or an end, without reading it.
func readable(fd uintptr) bool {
	of := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(of[:], 0)
	return n > 0 || err != nil // the reader is then told what is wrong
}

// swallow takes what there is; false says that there was nothing.
func swallow(fd uintptr) bool {
	var b [16]byte
	n, _ := unix.Read(int(fd), b[:])
	return n > 0
}

const canWait = true
