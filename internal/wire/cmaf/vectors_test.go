package cmaf

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// TestVectorsAreCut: pages that load certificates of chunks find the same ends.
func TestVectorsAreCut(t *testing.T) {
	file := spec.Vectors[struct {
		Segments []struct {
			Name, Hex string
			Ends      []int64
		}
	}](t, "chunks.json")
	for _, s := range file.Segments {
		data, err := hex.DecodeString(s.Hex)
		if err != nil {
			t.Fatal(s.Name, err)
		}
		var c Cutter
		if ends, _ := c.Add(data); !slices.Equal(ends, s.Ends) {
			t.Errorf("%s: chunks end at %v, want %v", s.Name, ends, s.Ends)
		}
	}
}
