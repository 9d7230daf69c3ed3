package swarm

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// TestBalanceVectors looks at counters as spec/vectors/balance.json has them.
func TestBalanceVectors(t *testing.T) {
	raw, err := os.ReadFile("../../spec/vectors/balance.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
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
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Cases) == 0 {
		t.Fatal(len(file.Cases), err)
	}
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
