package replay

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// readCases reads the inputs of the vectors.
func readCases(tb testing.TB) (inputs []json.RawMessage) {
	tb.Helper()
	type cases struct {
		Cases []struct{ Input json.RawMessage }
	}
	for _, c := range spec.Vectors[cases](tb, "schedule.json").Cases {
		inputs = append(inputs, c.Input)
	}
	return inputs
}

// TestRecordingsReplay records every case of the vectors and reads it back without a difference.
func TestRecordingsReplay(t *testing.T) {
	var tape bytes.Buffer
	cases := readCases(t)
	for _, c := range cases {
		in, err := ParseInput(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Record(&tape, in, schedule.Decide(in)); err != nil {
			t.Fatal(err)
		}
	}
	if n, diffs, err := Replay(bytes.NewReader(tape.Bytes())); n != len(cases) || len(diffs) > 0 || err != nil {
		t.Errorf("replayed %d of %d: %v, %v", n, len(cases), diffs, err)
	}
	forged := strings.ReplaceAll(tape.String(), `"race"`, `"near"`)
	if _, diffs, err := Replay(strings.NewReader(forged)); len(diffs) == 0 || err != nil {
		t.Errorf("a forged recording replays: %v", err)
	}
	if strings.Contains(tape.String(), "null") && !strings.Contains(tape.String(), `"off":null`) {
		t.Error("something else than off is null")
	}
}

func TestBrokenRecordingsAreNamedByLine(t *testing.T) {
	good := `{"input":{"now_us":1,"self":"a","policy":{},"segments":[],"peers":[],"requests":[]},"actions":[]}`
	for text, want := range map[string]string{
		good + "\n{\n":   "line 2",
		`{"actions":[]}`: "line 1: input or actions are missing",
		good + "\n" + strings.Replace(good, "1", `"x"`, 1):    "line 2",
		strings.Repeat("x", maxRecord*2):                      "line 1: longer than",
		strings.Replace(good, `"now_us":1`, `"now_us":-5`, 1): "out of range",
	} {
		if _, _, err := Replay(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// TestRecordingsOfBothLanguages replays what a viewer of either language recorded and this folder keeps. The other
// language's tests read the same files.
func TestRecordingsOfBothLanguages(t *testing.T) {
	for _, name := range []string{"recorded-go.jsonl", "recorded-ts.jsonl"} {
		b := spec.Bytes(t, name)
		n, diffs, err := Replay(bytes.NewReader(b))
		if err != nil || n < 20 {
			t.Fatalf("%s: %d decisions, %v", name, n, err)
		}
		for _, d := range diffs {
			t.Errorf("%s:%d\ngot  %+v\nwant %+v", name, d.Line, d.Got, d.Want)
		}
		if len(diffs) > 0 {
			t.Log("When the rules have changed, record anew: go test ./internal/viewer -run TestRecording -update, and in web\n" +
				"LEEWAY_UPDATE=1 npx vitest run packages/core/src/schedule/replay.test.ts")
		}
		kinds := map[schedule.ActionType]bool{}
		for line := range bytes.Lines(b) {
			var r schedule.Recorded
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			for _, a := range r.Actions {
				kinds[a.Type] = true
			}
		}
		for _, k := range []schedule.ActionType{schedule.DoCertificate, schedule.DoRequest, schedule.DoOrigin, schedule.DoWake} { // else nothing much is compared
			if !kinds[k] {
				t.Errorf("%s: nothing of type %s in it", name, k)
			}
		}
	}
}
