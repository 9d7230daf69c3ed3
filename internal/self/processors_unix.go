//go:build unix

package self

import (
	"syscall"
	"time"
)

// Processors is the processor time that this process has used, of all its threads; 0 where the system does not say.
func Processors() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
