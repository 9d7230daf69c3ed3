package swarm

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// TestBalanceVectors looks at counters as spec/vectors/balance.json has them.
func TestBalanceVectors(t *testing.T) {
	file := spec.Vectors[struct {
		Cases []struct {
			Name  string
			Looks []struct {
				At      int64 `json:"at_ms"`
				Cost    int64
				Saved   int64
				Viewers int
				Rests   bool
			}
		}
	}](t, "balance.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var b Balance
			rested := false
			for i, l := range c.Looks {
				changed := b.Look(Flows{Cost: l.Cost, Saved: l.Saved}, l.Viewers, time.UnixMilli(l.At))
				if b.Rests() != l.Rests || changed != (l.Rests != rested) {
					t.Fatalf("look %d, at %d ms: rests %v, changed %v", i, l.At, b.Rests(), changed)
				}
				rested = l.Rests
			}
		})
	}
}
