package replay

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// FuzzReplay: whatever a file holds, replaying it ends, and what it accepts can be recorded again and replays alike.
func FuzzReplay(f *testing.F) {
	for _, name := range []string{"recorded-go.jsonl", "recorded-ts.jsonl"} {
		for i, line := range bytes.Split(spec.Bytes(f, name), []byte("\n")) {
			if i%8 == 0 {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, err := Replay(bytes.NewReader(b))
		if err != nil {
			return
		}
		var first struct{ Input json.RawMessage }
		line, _, _ := bytes.Cut(bytes.TrimLeft(b, "\n"), []byte("\n"))
		if json.Unmarshal(line, &first) != nil {
			return
		}
		in, err := ParseInput(first.Input)
		if err != nil {
			return
		}
		var tape bytes.Buffer
		if err := schedule.Record(&tape, in, schedule.Decide(in)); err != nil {
			t.Fatal(err)
		}
		if n, diffs, err := Replay(&tape); n != 1 || len(diffs) > 0 || err != nil {
			t.Errorf("recorded again: %d, %v, %v", n, diffs, err)
		}
	})
}

// FuzzDecide: whatever a recording holds, the schedule decides it, and twice the same.
func FuzzDecide(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := ParseInput(b)
		if err != nil {
			return
		}
		if !reflect.DeepEqual(schedule.Decide(in), schedule.Decide(in)) {
			t.Fatal("decided otherwise the second time")
		}
	})
}
