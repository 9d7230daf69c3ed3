package cmcd

import (
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vector struct {
	Name, Report string
	Events       []struct {
		Type, State string
		Status      *int64
		StartMS     *int64 `json:"start_ms"`
	}
	Malformed int
}

func vectors(t testing.TB) []vector {
	return spec.Vectors[struct{ Reports []vector }](t, "cmcd.json").Reports
}

func TestVectors(t *testing.T) {
	said := func(n *int64) int64 {
		if n == nil {
			return none
		}
		return *n
	}
	for _, v := range vectors(t) {
		var want []Event
		for _, e := range v.Events {
			want = append(want, Event{e.Type, e.State, said(e.Status), said(e.StartMS)})
		}
		if got, malformed := Parse([]byte(v.Report)); !slices.Equal(got, want) || malformed != v.Malformed {
			t.Errorf("%s: %+v, %d malformed; want %+v, %d", v.Name, got, malformed, want, v.Malformed)
		}
	}
}

func TestEveryStateHasATokenAndAName(t *testing.T) {
	if len(states) != len(States) {
		t.Fatalf("%d tokens, %d names", len(states), len(States))
	}
	for token, name := range states {
		if !slices.Contains(States, name) {
			t.Errorf("%s is %q, which is no state", token, name)
		}
	}
}

// TestAReportIsBounded: what is beyond the bounds of a report is not read.
func TestAReportIsBounded(t *testing.T) {
	const line = "e=t,ts=1,v=2\n"
	events, malformed := Parse([]byte(strings.Repeat(line, MaxEvents)))
	if len(events) != MaxEvents || malformed != 0 {
		t.Errorf("%d events, %d malformed", len(events), malformed)
	}
	if events, malformed = Parse([]byte(strings.Repeat(line, 3*MaxEvents))); len(events) != MaxEvents || malformed != 1 {
		t.Errorf("too many: %d events, %d malformed", len(events), malformed)
	}
	if events, malformed = Parse([]byte(line + strings.Repeat("\n", MaxReport))); len(events) != 0 || malformed != 1 {
		t.Errorf("too long: %d events, %d malformed", len(events), malformed)
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Report))
	}
	f.Fuzz(func(t *testing.T, report []byte) {
		events, malformed := Parse(report)
		if len(events) > MaxEvents || malformed > MaxEvents+1 {
			t.Fatalf("%d events, %d malformed", len(events), malformed)
		}
		for _, e := range events {
			if !slices.Contains(Types, e.Type) || e.State != "" && !slices.Contains(States, e.State) || e.Status < none || e.Status > maxStatus || e.StartMS < none {
				t.Fatalf("%+v", e)
			}
		}
	})
}

// BenchmarkParse is what a report costs: one of a player, and the dearest of its length.
func BenchmarkParse(b *testing.B) {
	var keys strings.Builder
	for i := range 26 * 26 * 26 {
		if keys.Len() > MaxReport-8 {
			break
		}
		keys.WriteString(string([]byte{'a' + byte(i%26), 'a' + byte(i/26%26), 'a' + byte(i/676), ','}))
	}
	for name, report := range map[string]string{"player": vectors(b)[0].Report, "dearest": keys.String() + "e=t"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(report)))
			for b.Loop() {
				Parse([]byte(report))
			}
		})
	}
}
