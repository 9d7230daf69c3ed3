// Package proc reads what Linux tells of processes and of the machine, in one way for all that measures: by clocks, and not by ticks,
// which what works between them slips through.
package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CPU is what a process has had of processors, seconds: of each thread, by the scheduler's own clock. The figures of
// /proc/PID/stat are sampled by ticks, which a process that sleeps thousands of times a second slips through.
func CPU(pid int) (float64, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(err, fmt.Errorf("process %d is not there, or the kernel keeps no schedstat", pid))
	}
	total := int64(0)
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // it ended just now
		}
		if err != nil {
			return 0, err
		}
		on, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseInt(on, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		total += ns
	}
	return float64(total) / 1e9, nil
}

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
