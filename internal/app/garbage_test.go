package app

import (
	"runtime/debug"
	"testing"
)

// TestTheGarbageOfASeedIsBounded, unless the operator says how much there may be; and is what it was once the seed has ended.
func TestTheGarbageOfASeedIsBounded(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	stop := boundGarbage(Env{})
	if percent() != seedGarbage {
		t.Errorf("%d %%", percent())
	}
	if stop(); percent() != 100 {
		t.Errorf("%d %% afterwards", percent())
	}
	boundGarbage(Env{Environ: []string{"GOGC=70"}})
	if percent() != 100 {
		t.Errorf("%d %%, though the operator has set it", percent())
	}
}
