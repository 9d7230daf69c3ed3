package netcheck

import (
	"cmp"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// way is a stream of the vectors.
type way struct {
	Messages int64
	Interval int64 `json:"interval_us"`
}

func TestRunsAreTheVectors(t *testing.T) {
	v := spec.Vectors[struct {
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
	}](t, "quality.json")
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
