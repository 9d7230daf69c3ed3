package loadbench

import (
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
	"github.com/leeway-video/leeway/internal/lab/load"
)

// TestMain makes the test binary an arm where the bench asks for one.
func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

// TestSessionsOpenBetweenTheProcesses: more sessions than one socket can have.
func TestSessionsOpenBetweenTheProcesses(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	c, err := load.Listen(load.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ctx: t.Context(), c: c, stack: armwire.Link, figures: map[string]float64{}}
	defer func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}()
	for name, s := range map[string]*side{theArm: &w.arm, theTested: &w.tested} {
		if *s, err = start(t.Context(), &bench.Run{Log: io.Discard}, c, name, 4); err != nil {
			t.Fatal(err)
		}
	}
	before, _, err := w.memory()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs, took, err := w.open(12, "")
	if err != nil || took <= 0 {
		t.Fatal(took, err)
	}
	after, _, err := w.memory()
	if err != nil || before <= 0 || after <= before {
		t.Errorf("memory of %d bytes, then of %d, %v", before, after, err)
	}
	if _, armCPU, testedCPU, err := w.counts(theirs); err != nil || armCPU <= 0 || testedCPU <= 0 {
		t.Errorf("processor time %v and %v, %v", armCPU, testedCPU, err)
	}
	if err := w.destroy(ours, theirs); err != nil {
		t.Error(err)
	}
	if _, _, _, err := w.open(16, ""); err != nil { // every pair of addresses
		t.Error(err)
	}
}
