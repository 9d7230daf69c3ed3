package schedule

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestRecordingsAreAsTheVectorsAre compares what is written with the vectors themselves, field by field.
func TestRecordingsAreAsTheVectorsAre(t *testing.T) {
	for _, c := range readVectors(t).Cases {
		var tape bytes.Buffer
		if err := Record(&tape, readInput(t, c.Input), c.Actions); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Input, Actions any
		}
		var want any
		if json.Unmarshal(tape.Bytes(), &got) != nil || json.Unmarshal(c.Input, &want) != nil {
			t.Fatal("not JSON")
		}
		a, _ := json.Marshal(got.Input)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s\ngot  %s\nwant %s", c.Name, a, b)
		}
	}
}
