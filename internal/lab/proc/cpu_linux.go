package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// mostPID is above all that Linux gives (PID_MAX_LIMIT).
const mostPID = 1 << 22

// CPU is what a process has had of processors, seconds, with its threads that have ended: by the scheduler's own clock. The figures of
// /proc/PID/stat are sampled by ticks, which a process that sleeps thousands of times a second slips through; those of
// /proc/PID/task/*/schedstat go with their thread.
func CPU(pid int) (float64, error) {
	if pid <= 0 || pid > mostPID {
		return 0, fmt.Errorf("there is no process %d", pid)
	}
	var used unix.Timespec
	const scheduled = 2                                                        // CPUCLOCK_SCHED
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &used); err != nil { // clock_getcpuclockid(3)
		return 0, fmt.Errorf("process %d is not there: %w", pid, err)
	}
	return time.Duration(used.Nano()).Seconds(), nil
}
