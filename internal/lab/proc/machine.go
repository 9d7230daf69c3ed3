package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userTick is the unit of /proc/stat.
const userTick = 10 * time.Millisecond

// Processors is how long the machine's processors have had nothing to do, and how long the hypervisor kept them, summed
// over Count of them. Idle time is measured by the kernel; busy time is sampled at timer ticks, which misses a
// program that works between them, and is not used.
type Processors struct {
	At          time.Time
	Idle, Steal time.Duration
	Count       int
}

// ReadProcessors reads what the machine's processors have done since it started.
func ReadProcessors() (Processors, error) {
	body, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Processors{}, err
	}
	return parse(string(body), time.Now())
}

func parse(stat string, at time.Time) (p Processors, err error) {
	p.At = at
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
		p.Idle += times[0] + times[1]
		p.Steal += times[2]
		p.Count++
	}
	if p.Count == 0 {
		return p, fmt.Errorf("/proc/stat has no processors: %.40q", stat)
	}
	return p, nil
}

// Since is which part of the time from then to p the processors had nothing to do, and which part the hypervisor kept them.
func (p Processors) Since(then Processors) (idle, steal float64) {
	total := p.At.Sub(then.At).Seconds() * float64(p.Count)
	if total <= 0 {
		return 0, 0
	}
	return min((p.Idle-then.Idle).Seconds()/total, 1), min((p.Steal-then.Steal).Seconds()/total, 1)
}
