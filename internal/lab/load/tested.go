package load

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/proc"
)

// tested is a server under test of another program, on this machine.
type tested struct {
	pid int
	cpu float64 // of processors, seconds, when it was looked at last
	at  time.Time
}

// look is how many processors the server has used since the last look, with all processes below it, and its memory in bytes. Threads and
// processes that have ended since do not count. Once the server is gone both are 0.
func (t *tested) look(now time.Time) (processors float64, resident int64) {
	cpu := 0.0
	for _, pid := range proc.Family(t.pid) {
		used, _ := proc.CPU(pid) // 0 of one that ended just now
		bytes, _ := proc.Resident(pid)
		cpu, resident = cpu+used, resident+bytes
	}
	if !t.at.IsZero() && now.After(t.at) {
		processors = max(0, cpu-t.cpu) / now.Sub(t.at).Seconds()
	}
	t.cpu, t.at = cpu, now
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
