package cmaf

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestVectorsAreCut: pages that load certificates of chunks find the same ends.
func TestVectorsAreCut(t *testing.T) {
	raw, err := os.ReadFile("../../../spec/vectors/chunks.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Segments []struct {
			Name, Hex string
			Ends      []int64
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Segments) == 0 {
		t.Fatal(err)
	}
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
