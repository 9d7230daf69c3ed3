package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary a child where Start asks for one.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == ChildCommand {
		if err := Child(context.Background(), []Bench{echoBench}, os.Args[2], os.Args[3], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var echoBench = Bench{Name: "echo", Roles: map[string]Role{
	"echo": func(_ context.Context, in *json.Decoder, out *Writer) error {
		for {
			var v any
			if err := in.Decode(&v); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := out.Write(v); err != nil {
				return err
			}
		}
	},
}}

// fake measures the values of a list, one a run.
func fake(name string, extra bool, goal string, void string, values ...float64) Case {
	return Case{
		Name: name, Extra: extra, Figures: []Figure{{Name: "x", Unit: "s", Goal: goal, Reference: &Reference{7, "a paper"}}},
		Run: func(_ context.Context, r *Run) (Sample, error) {
			return Sample{Values: map[string]float64{"x": values[r.Number]}, Void: void}, nil
		},
	}
}

func run(t *testing.T, o Options, cases ...Case) ([]Result, error) {
	t.Helper()
	var out bytes.Buffer
	o.JSON = true
	err := Execute(context.Background(), Bench{Name: "b", Cases: cases}, o, &out, io.Discard)
	var results []Result
	for line := range strings.Lines(out.String()) {
		var r Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		results = append(results, r)
	}
	return results, err
}

// TestGoalsOfEveryRun: one run of three that misses is a miss, where the median would be none.
func TestGoalsOfEveryRun(t *testing.T) {
	for _, every := range []bool{false, true} {
		c := fake("c", false, "<= 3", "", 1, 2, 9)
		c.Figures[0].Every = every
		results, err := run(t, Options{Runs: 3, Check: true}, c)
		if missed := errors.Is(err, ErrMissed); missed != every || *results[0].Figures[0].Met == every {
			t.Errorf("every run %v: %v, %+v", every, err, results[0].Figures[0])
		}
	}
}

func TestMedianRangeAndGoal(t *testing.T) {
	results, err := run(t, Options{Runs: 4, Check: true}, fake("a", false, ">= 3", "", 9, 1, 4, 2))
	if err != nil || len(results) != 1 {
		t.Fatalf("%v, %+v", err, results)
	}
	f := results[0].Figures[0]
	if f.Median != 3 || f.Min != 1 || f.Max != 9 || f.Met == nil || !*f.Met || *f.Goal != ">= 3" || f.Reference.Value != 7 {
		t.Errorf("%+v", f)
	}
	if r := results[0]; r.Bench != "b" || r.Case != "a" || r.Runs != 4 || r.Machine.Cores < 1 || r.Machine.Go == "" {
		t.Errorf("%+v", r)
	}
}

func TestAMissedGoalFailsOnlyACheck(t *testing.T) {
	c := fake("a", false, "<= 1", "", 2)
	if _, err := run(t, Options{Runs: 1}, c); err != nil {
		t.Errorf("without check: %v", err)
	}
	if _, err := run(t, Options{Runs: 1, Check: true}, c); !errors.Is(err, ErrMissed) {
		t.Errorf("with check: %v", err)
	}
}

// TestAGoalOfAFigureThatNoRunHasIsMissed: it is open where nothing is claimed, and where the figure may be missing.
func TestAGoalOfAFigureThatNoRunHasIsMissed(t *testing.T) {
	for _, c := range []struct {
		void     string
		optional bool
		missed   bool
		row      string
	}{{"", false, true, "y  not measured  goal MISSED"}, {"busy", false, false, "y  not measured  goal open"}, {"", true, false, ""}} {
		one := fake("a", false, "<= 3", c.void, 2, 2)
		one.Figures = append(one.Figures, Figure{Name: "y", Goal: "<= 1", Optional: c.optional}, Figure{Name: "z"})
		results, err := run(t, Options{Runs: 2, Check: true}, one)
		if missed := errors.Is(err, ErrMissed); missed != c.missed || len(results[0].Figures) != 1 || slices.Contains(results[0].Unmeasured, "z") {
			t.Errorf("%+v: %v, %+v", c, err, results[0])
		}
		var table bytes.Buffer
		if err := results[0].writeTable(&table); err != nil {
			t.Fatal(err)
		}
		rows := strings.Join(strings.Fields(table.String()), " ")
		if want := strings.Join(strings.Fields(c.row), " "); want != "" && !strings.Contains(rows, want) || want == "" && strings.Contains(rows, "not measured") {
			t.Errorf("%+v:\n%s", c, table.String())
		}
	}
}

// TestAFigureThatSomeRunsLack: it is told of how many runs it is, and a goal of every run is missed by one that lacks it.
func TestAFigureThatSomeRunsLack(t *testing.T) {
	for _, every := range []bool{false, true} {
		c := fake("a", false, "<= 3", "", 1, 2, 9)
		c.Figures[0].Every = every
		measure := c.Run
		c.Run = func(ctx context.Context, r *Run) (Sample, error) {
			s, err := measure(ctx, r)
			if r.Number == 2 {
				delete(s.Values, "x")
			}
			return s, err
		}
		results, err := run(t, Options{Runs: 3, Check: true}, c)
		if f := results[0].Figures[0]; errors.Is(err, ErrMissed) != every || f.Runs != 2 || *f.Met == every {
			t.Errorf("every run %v: %v, %+v", every, err, f)
		}
		var table bytes.Buffer
		if err := results[0].writeTable(&table); err != nil || !strings.Contains(table.String(), "of 2 runs goal <= 3") {
			t.Errorf("%v\n%s", err, table.String())
		}
	}
}

func TestAVoidRunClaimsNothing(t *testing.T) {
	results, err := run(t, Options{Runs: 1, Check: true}, fake("a", false, "<= 1", "small buffers", 2))
	if err != nil || results[0].Figures[0].Met != nil {
		t.Errorf("%v, %+v", err, results)
	}
}

func TestVoidRunsAreLeftOutWhereThereAreOthers(t *testing.T) {
	c := fake("a", false, "<= 3", "", 9, 2, 3, 9)
	measure := c.Run
	c.Run = func(ctx context.Context, r *Run) (Sample, error) {
		s, err := measure(ctx, r)
		if s.Values["x"] == 9 {
			s.Void = "busy"
		}
		return s, err
	}
	results, err := run(t, Options{Runs: 4, Check: true}, c)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Runs != 2 || r.LeftOut != 2 || r.Certified != 2 || !slices.Equal(r.Void, []string{"busy"}) || r.Figures[0].Max != 3 || r.Figures[0].Met == nil {
		t.Errorf("%+v", r)
	}
	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil || !strings.Contains(table.String(), "left out (2 in all): busy") ||
		!strings.Contains(table.String(), "2 of 4 runs count") {
		t.Errorf("%v\n%s", err, table.String())
	}
}

func TestACaseThatFailsDoesNotEndTheOthers(t *testing.T) {
	broken, whole := fake("a", false, "", "", 1), fake("b", false, "", "", 1)
	broken.Run = func(context.Context, *Run) (Sample, error) { return Sample{}, errors.New("the links did not open") }
	results, err := run(t, Options{Runs: 1}, broken, whole)
	if err == nil || !strings.Contains(err.Error(), "case a: the links") || len(results) != 1 || results[0].Case != "b" {
		t.Errorf("%v, %+v", err, results)
	}
}

func TestARunThatFailsDoesNotEndItsCase(t *testing.T) {
	c := fake("a", false, "<= 3", "", 2, 0, 3)
	measure := c.Run
	c.Run = func(ctx context.Context, r *Run) (Sample, error) {
		if r.Number == 1 {
			return Sample{}, errors.New("the links did not open")
		}
		return measure(ctx, r)
	}
	results, err := run(t, Options{Runs: 3}, c)
	if err == nil || !strings.Contains(err.Error(), "case a: the links") || len(results) != 1 {
		t.Fatalf("%v, %+v", err, results)
	}
	if r := results[0]; r.Runs != 2 || r.Failed != 1 || r.Certified != 2 || r.Figures[0].Median != 2.5 {
		t.Errorf("%+v", r)
	}
}

func TestASetIsMeasuredInItsOrder(t *testing.T) {
	b := Bench{Name: "x", Sets: map[string][]string{"first": {"c", "a"}}}
	for _, name := range []string{"a", "b", "c", "d"} {
		b.Cases = append(b.Cases, fake(name, name == "c", "", "", 1, 1))
		b.Cases[len(b.Cases)-1].Takes = func(claimed int) time.Duration { return time.Duration(3-claimed) * time.Minute }
	}
	var out, said bytes.Buffer
	if err := Execute(context.Background(), b, Options{Cases: []string{"first", "b", "a"}, Runs: 2}, &out, &said); err != nil {
		t.Fatal(err)
	}
	table := out.String()
	if c, a, b := strings.Index(table, "\nc, "), strings.Index(table, "\na, "), strings.Index(table, "\nb, "); c < 0 || a < c || b < a || strings.Contains(table, "\nd, ") {
		t.Error(table)
	}
	if plan, _, _ := strings.Cut(said.String(), "\n"); plan != "x: about 15m0s for 2 runs of each case; a run: c 2m0s, a 2m0s, b 2m0s" {
		t.Errorf("the plan is %q", plan)
	}
}

func TestCasesAreChosenByPattern(t *testing.T) {
	cases := []Case{fake("a", false, "", "", 1), fake("s/1", true, "", "", 1), fake("s/2", true, "", "", 1)}
	for _, c := range []struct {
		patterns []string
		want     string
	}{{nil, "a"}, {[]string{"s/*"}, "s/1 s/2"}, {[]string{"s/2", "a"}, "a s/2"}} {
		results, err := run(t, Options{Cases: c.patterns}, cases...)
		var got []string
		for _, r := range results {
			got = append(got, r.Case)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, %v", c.patterns, got, err)
		}
	}
	if _, err := run(t, Options{Cases: []string{"a", "b*"}}, cases...); err == nil || !strings.Contains(err.Error(), "s/1") {
		t.Errorf("a pattern that nothing matches: %v", err)
	}
}

func TestACaseThatTheMachineCannotRunIsSkippedAloud(t *testing.T) {
	lacking := fake("b", false, "", "", 1)
	lacking.Needs = func(context.Context) error { return errors.New("no browser") }
	able := fake("a", false, "", "", 1)
	able.Needs = func(context.Context) error { return nil }
	var out, said bytes.Buffer
	b := Bench{Name: "x", Cases: []Case{lacking, able}}
	if err := Execute(context.Background(), b, Options{Runs: 1, JSON: true}, &out, &said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "x b: skipped: no browser") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("said %q, results %q", said.String(), out.String())
	}
	if err := Execute(context.Background(), b, Options{Cases: []string{"b"}, Runs: 1}, io.Discard, io.Discard); err == nil {
		t.Error("a case that was named and cannot run is passed over")
	}
}

func TestAnUndeclaredFigureIsAMistake(t *testing.T) {
	c := fake("a", false, "", "", 1)
	c.Figures[0].Name = "y"
	if _, err := run(t, Options{Runs: 1}, c); err == nil {
		t.Error("taken")
	}
}

func TestTableNamesWhatIsMissed(t *testing.T) {
	var out bytes.Buffer
	b := Bench{Name: "b", Cases: []Case{fake("a", false, "<= 1", "", 2)}}
	if err := Execute(context.Background(), b, Options{Runs: 1}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "MISSED") || !strings.Contains(out.String(), "a paper") {
		t.Error(out.String())
	}
}

func TestAChildAnswersAndEnds(t *testing.T) {
	r := &Run{Log: io.Discard}
	p, err := r.Start(nil, "echo", "echo", "the echo")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Send("hello"); err != nil {
		t.Error(err)
	}
	var got string
	if err := p.Receive(&got); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	p, err = r.Start(nil, "echo", "no such role", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a child that failed: %v", err)
	}
}
