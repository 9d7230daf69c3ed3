//go:build unix

package app

import (
	"syscall"
	"time"
)

// processorTime is what the process has used of all processors; false where the system does not say.
func processorTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
