package originhttp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUpSilent has the kernel end a connection whose other end has not confirmed what was sent for that long. When a
// machine changes its address, browsers end the connections of the old one. Go does not learn of the change, and a request would
// wait for its answer until its timeout.
func giveUpSilent(c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silentFor.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}
