package load

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/proc"
)

// tested is a server under test of another program, on this machine.
type tested struct {
	pid  int
	used map[int]float64 // of processors, seconds, by process, when it was looked at last
	at   time.Time
}

// look is how many processors the server has used since the last look, with all processes below it, and its memory in bytes. Processes
// that have ended since do not count, and take nothing from what the others have used. Once the server is gone both are 0.
func (t *tested) look(now time.Time) (processors float64, resident int64) {
	used, more := map[int]float64{}, 0.0
	for _, pid := range proc.Family(t.pid) {
		cpu, err := proc.CPU(pid)
		if err != nil {
			cpu = t.used[pid] // it has ended just now
		}
		used[pid] = cpu
		more += max(0, cpu-t.used[pid])
		bytes, _ := proc.Resident(pid)
		resident += bytes
	}
	if !t.at.IsZero() && now.After(t.at) {
		processors = more / now.Sub(t.at).Seconds()
	}
	t.used, t.at = used, now
	return processors, resident
}

// checkTested says why there is no such server.
func (r *Runner) checkTested() error {
	switch {
	case r.Tested == 0:
		return nil
	case r.Scenario.HasPeer():
		return fmt.Errorf("load: process %d cannot be the server under test: this scenario starts its own", r.Tested)
	case len(proc.Family(r.Tested)) == 0:
		return fmt.Errorf("load: there is no process %d", r.Tested)
	}
	return nil
}
