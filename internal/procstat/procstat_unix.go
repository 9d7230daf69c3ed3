//go:build unix

// Package procstat reads what this process has used.
package procstat

import (
	"syscall"
	"time"
)

// CPU is the processor time that this process has used, of all its threads; 0 where the system does not say.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
