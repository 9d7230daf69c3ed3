// Package proc reads what Linux tells of processes and of the machine, in one way for all that measures: by clocks, and not by ticks,
// which what works between them slips through.
package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident is the memory of a process that is there, bytes.
func Resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status tells no VmRSS", pid)
}
