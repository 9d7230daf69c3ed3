package schedule

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Ranks []struct {
		Segment, Peer string
		Piece         int
		Rank          uint32
	}
	Cases []struct {
		Name, Why string
		Input     json.RawMessage
		Actions   []Action
	}
}

func readVectors(tb testing.TB) vectors { return spec.Vectors[vectors](tb, "schedule.json") }

func readInput(tb testing.TB, b []byte) (in Input) {
	tb.Helper()
	if err := json.Unmarshal(b, &in); err != nil {
		tb.Fatal(err)
	}
	return in
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	for _, r := range v.Ranks {
		if got := Rank(r.Segment, r.Piece, r.Peer); got != r.Rank {
			t.Errorf("rank of %s %d %s is %d, want %d", r.Segment, r.Piece, r.Peer, got, r.Rank)
		}
	}
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			in := readInput(t, c.Input)
			got := Decide(in)
			if !slices.Equal(got, c.Actions) {
				t.Errorf("%s\ngot  %+v\nwant %+v", c.Why, got, c.Actions)
			}
			if problem := audit(in, got); problem != "" {
				t.Error(problem)
			}
		})
	}
}
