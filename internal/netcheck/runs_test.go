package netcheck

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

func TestRunsAreTheVectors(t *testing.T) {
	b, err := os.ReadFile("../../spec/vectors/quality.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Runs []struct {
			Of struct {
				Messages int64
				MS       int64
				Answered int64 `json:"answered_ms"`
			}
			Messages int64
			Interval int64 `json:"interval_us"`
			Echoes   int64
		}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Runs) < 8 {
		t.Fatalf("%d vectors", len(v.Runs))
	}
	for _, c := range v.Runs {
		got := runs(c.Of.Messages, time.Duration(c.Of.MS)*time.Millisecond, time.Duration(c.Of.Answered)*time.Millisecond)
		for _, way := range got[:2] {
			if way.Messages != c.Messages || way.Interval != c.Interval {
				t.Errorf("%+v: %+v", c, way)
			}
		}
		if got[2].Messages != c.Echoes || got[2].Interval != echoInterval {
			t.Errorf("%+v: %+v", c, got[2])
		}
	}
}
