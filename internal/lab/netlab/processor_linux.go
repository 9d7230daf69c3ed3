package netlab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userTick is the unit of /proc/stat.
const userTick = 10 * time.Millisecond

// processor is how long the machine's processors have had nothing to do, and how long the hypervisor kept them, summed
// over count of them. Idle time is measured by the kernel; busy time is sampled at timer ticks, which misses an
// emulator that works between them, and is not used.
type processor struct {
	idle, steal time.Duration
	count       int
}

func readProcessor() (processor, error) {
	body, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processor{}, err
	}
	return parseProcessor(string(body))
}

func parseProcessor(stat string) (p processor, err error) {
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line) // cpuN user nice system idle iowait irq softirq steal …
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		var times [3]time.Duration
		for i, field := range []int{4, 5, 8} {
			n, err := strconv.ParseInt(fields[field], 10, 64)
			if err != nil {
				return p, fmt.Errorf("/proc/stat: %q: %w", line, err)
			}
			times[i] = time.Duration(n) * userTick
		}
		p.idle += times[0] + times[1]
		p.steal += times[2]
		p.count++
	}
	if p.count == 0 {
		return p, fmt.Errorf("/proc/stat has no processors: %.40q", stat)
	}
	return p, nil
}
