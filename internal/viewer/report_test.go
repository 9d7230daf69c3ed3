package viewer

import (
	"testing"
	"time"
)

// TestAReportIsOfItsInterval: counted once, at least a millisecond long, and without pacing where nothing was sent.
func TestAReportIsOfItsInterval(t *testing.T) {
	r := newRig(t)
	observed := 0
	rep := report{loop: r.w, ledger: r.ledger, observe: func() { observed++ }, at: r.w.now}
	r.ledger.duplicate(7)
	r.w.run(20 * time.Second)
	if m := rep.take(r.engine); m.Interval != 20_000 || m.DuplicateBytes != 7 || m.Pacing != nil || observed != 1 {
		t.Errorf("%+v, observed %d times", m, observed)
	}
	if m := rep.take(nil); m.Interval != 1 || m.DuplicateBytes != 0 {
		t.Errorf("again: %+v", m)
	}
}
