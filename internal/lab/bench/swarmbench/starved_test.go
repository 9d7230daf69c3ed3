package swarmbench

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// reports makes reports since one mark of a machine that is idle by these shares in one quarter of a minute after another.
func reports(shares ...float64) *spare {
	s := &spare{}
	var took, idle float64
	for _, share := range shares {
		took += 15
		idle += 15 * share
		s.look(netlab.Report{Took: time.Duration(took * float64(time.Second)), Idle: idle / took})
	}
	return s
}

func TestAStarvedPeakIsNoMean(t *testing.T) {
	// Half of the time idle in the mean, nothing left in a third of the run.
	s := reports(0.9, 0.8, 0, 0.01, 0.9, 0.8)
	if err := s.certify(); err == nil || !strings.Contains(err.Error(), "2 of 6") {
		t.Errorf("%v", err)
	}
	if s.least > 0.001 {
		t.Errorf("the least was %v", s.least)
	}
	// One of twenty is an accident.
	if err := reports(0.5, 0.5, 0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5).certify(); err != nil {
		t.Error(err)
	}
	if err := (&spare{}).certify(); err != nil {
		t.Errorf("nothing was looked at: %v", err)
	}
	again := reports(0.5)
	again.look(netlab.Report{Took: 15 * time.Second, Idle: 0.5})
	if again.count != 1 {
		t.Error("a report without any time counts")
	}
}
