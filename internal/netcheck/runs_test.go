package netcheck

import (
	"cmp"
	"encoding/json"
	"os"
	"testing"
	"time"
)

// way is a stream of the vectors.
type way struct {
	Messages int64
	Interval int64 `json:"interval_us"`
}

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
				Up, Down int64
			}
			way
			Down         *way
			Echoes       int64
			EchoInterval int64 `json:"echo_interval_us"`
		}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Runs) < 13 {
		t.Fatalf("%d vectors", len(v.Runs))
	}
	for _, c := range v.Runs {
		got := runs(c.Of.Messages, time.Duration(c.Of.MS)*time.Millisecond, time.Duration(c.Of.Answered)*time.Millisecond, rates{c.Of.Up, c.Of.Down})
		down := c.way
		if c.Down != nil {
			down = *c.Down
		}
		for i, want := range []way{c.way, down, {c.Echoes, cmp.Or(c.EchoInterval, echoInterval)}} {
			if got[i].Messages != want.Messages || got[i].Interval != want.Interval {
				t.Errorf("%+v: %+v", c.Of, got[i])
			}
		}
	}
}
