package main

import (
	"maps"
	"strings"
	"testing"
)

// TestOnlyWhatIsBeyondNoiseIsShown: a change is shown if it is larger than what other dice change, and than half of the range of its seeds.
func TestOnlyWhatIsBeyondNoiseIsShown(t *testing.T) {
	world := func(values ...float64) map[string][]map[string]float64 {
		var seeds []map[string]float64
		for _, v := range values {
			seeds = append(seeds, map[string]float64{"twice-%": v})
		}
		return map[string][]map[string]float64{"eight": seeds}
	}
	s := suite{figures: []figure{{"twice-%", "twice", 0.05}}}
	known := []result{
		{asItIs, world(1, 2, 3)},
		{nothing + ": other dice, 1", world(1.5, 2.5, 3.5)},
		{"within noise", world(1.4, 2.4, 3.4)},
		{"beyond it", world(2, 3, 4)},
		{"of one seed alone", world(1, 2, 9)},
	}
	var out strings.Builder
	s.print(&out, known)
	for _, line := range []string{
		"| eight | 2 ± 0.5 |",
		"| within noise | eight: nothing |",
		"| beyond it | eight: twice +1 ± 0 |",
		"| of one seed alone | eight: nothing |",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%q is not in\n%s", line, &out)
		}
	}
}

func TestLinesOfABenchmarkAreRead(t *testing.T) {
	r := result{Worlds: map[string][]map[string]float64{}}
	r.parse("Elsewhere", "goos: linux\nBenchmarkElsewhere/eight/0-2  \t 1\t 54 ns/op\t 52.3 offload-%\t 2.5 twice-%\nBenchmarkOther/eight/0-2 1 5 ns/op 1 twice-%\n")
	if got := r.Worlds["eight"]; len(r.Worlds) != 1 || len(got) != 1 || !maps.Equal(got[0], map[string]float64{"offload-%": 52.3, "twice-%": 2.5}) {
		t.Errorf("read %v", r.Worlds)
	}
}

// TestATextThatIsNotThereOnceIsNotReplaced: a row that no longer fits the source must not measure the source as it is.
func TestATextThatIsNotThereOnceIsNotReplaced(t *testing.T) {
	if b, err := substitute([]byte("a b"), "b", "c"); err != nil || string(b) != "a c" {
		t.Errorf("%q, %v", b, err)
	}
	for _, source := range []string{"a", "b b"} {
		if _, err := substitute([]byte(source), "b", "c"); err == nil {
			t.Errorf("%q was changed", source)
		}
	}
}

// TestEachRowFitsTheSource: a row whose text is gone would measure nothing.
func TestEachRowFitsTheSource(t *testing.T) {
	t.Chdir("../..")
	if err := check(); err != nil {
		t.Error(err)
	}
}
