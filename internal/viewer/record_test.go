package viewer

import (
	"bytes"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/replay"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// TestRecording records a viewer whose peers are of every kind: one that holds everything, one that falls silent, a seed,
// and an origin that breaks off. -update keeps the recording for the tests of both languages, which replay it.
func TestRecording(t *testing.T) {
	var tape bytes.Buffer
	s := newScene(t, fourSeconds(7, 80_000))
	s.seed.node.up.Rate = 15_000 // below the bitrate: some segments become urgent
	s.viewer(access{up: 20_000, down: 1e6}, nil)
	s.w.run(4 * time.Second)
	silent := s.viewer(fast, nil)
	s.w.run(6 * time.Second)
	s.viewer(access{up: 250_000, down: 100_000}, func(c *Config) { c.Record = &tape; c.Buffer = 9 * time.Second })
	s.w.run(1700 * time.Millisecond)
	for _, l := range silent.simLinks() {
		l.garble = lose
	}
	s.w.run(90 * time.Second)
	s.check()
	n, diffs, err := replay.Replay(bytes.NewReader(tape.Bytes()))
	if n < 20 || len(diffs) > 0 || err != nil {
		t.Errorf("replayed %d decisions: %d differ, %v", n, len(diffs), err)
	}
	if *spec.Update {
		spec.Write(t, "recorded-go.jsonl", tape.Bytes())
	}
}
