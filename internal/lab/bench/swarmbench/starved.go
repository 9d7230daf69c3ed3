package swarmbench

import (
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// A lab is certified by the mean over a run, and a swarm has a peak: a machine may be idle while viewers come and go, and
// have nothing left for a minute in between. Then browsers miss frames and whatever waits for its time slice is late.
const (
	starvedBelow = 0.05 // idle share of a quarter of a minute
	starvedMost  = 0.1  // of all quarters
)

// spare follows how much of the machine was left, by reports since one mark.
type spare struct {
	took           time.Duration // of the last report
	idle           time.Duration // in it, of one processor
	least          float64       // of all quarters
	starved, count int
}

// look takes the next report.
func (s *spare) look(r netlab.Report) {
	took, idle := r.Took, time.Duration(r.Idle*float64(r.Took))
	if took <= s.took {
		return
	}
	share := float64(idle-s.idle) / float64(took-s.took)
	if s.count == 0 || share < s.least {
		s.least = share
	}
	s.count++
	if share < starvedBelow {
		s.starved++
	}
	s.took, s.idle = took, idle
}

// certify says what was wrong with the machine, if anything.
func (s *spare) certify() error {
	if float64(s.starved) <= starvedMost*float64(s.count) {
		return nil
	}
	return fmt.Errorf("the processors were idle less than %.0f %% of the time in %d of %d looks (the least: %.1f %%): what was played then is about the machine",
		100*starvedBelow, s.starved, s.count, 100*s.least)
}
