package probebench

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

func TestWastedIsThePatternOfRFC3357(t *testing.T) {
	lost := make([]bool, 12)
	for _, i := range []int{2, 3, 4, 7, 11} {
		lost[i] = true
	}
	p := wasted(lost)
	if want := []int64{0, 1, 1, 3, 4}; !slices.Equal(p.distances, want) {
		t.Errorf("distances %v, want %v", p.distances, want)
	}
	if want := []netstat.Period{{First: 2, Length: 3}, {First: 7, Length: 1}, {First: 11, Length: 1}}; !slices.Equal(p.periods, want) {
		t.Errorf("periods %v, want %v", p.periods, want)
	}
	if p := wasted(make([]bool, 3)); p.distances != nil || p.periods != nil {
		t.Errorf("nothing was lost: %v", p)
	}
}

func TestBitsOfAMark(t *testing.T) {
	for _, c := range []struct {
		seen [][2]int64
		want int
	}{
		{nil, 0},
		{[][2]int64{{63, 100}}, 6},
		{[][2]int64{{0, 5}, {63, 95}}, 6}, // what connects before the mark is set
		{[][2]int64{{0, 50}, {63, 50}}, 0},
		{[][2]int64{{7, 100}}, 3},
	} {
		if got := bitsOf(c.seen, 63); got != c.want {
			t.Errorf("%v: %d bits, want %d", c.seen, got, c.want)
		}
	}
}

func TestMeanOfTrips(t *testing.T) {
	began := time.Unix(0, 0)
	all := trips{all: []trip{{began, time.Second}, {began.Add(2 * time.Second), 10 * ms}, {began.Add(3 * time.Second), 20 * ms}, {began.Add(9 * time.Second), time.Second}}}
	if v, err := all.mean(began.Add(time.Second), began.Add(8*time.Second)); err != nil || math.Abs(v-0.015) > 1e-9 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := all.mean(began.Add(20*time.Second), began.Add(30*time.Second)); err == nil {
		t.Error("a mean of nothing")
	}
}

func TestWhatACheckSays(t *testing.T) {
	var begun []netcheck.Phase
	p := plan{begins: func(p netcheck.Phase) { begun = append(begun, p) }}
	p.hear(strings.NewReader("baseline …\ndownload …\nnonsense\nupload …\n"))
	if want := []netcheck.Phase{netcheck.Baseline, netcheck.Download, netcheck.Upload}; !slices.Equal(begun, want) {
		t.Errorf("%v", begun)
	}
	r := results{netcheck.Results{Figures: []netstat.Figure{netstat.Loss.Of(netstat.Down, 0.5)}}}
	if v, err := r.value(netstat.Loss, netstat.Down); v != 0.5 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := r.value(netstat.Loss, netstat.Up); err == nil {
		t.Error("a figure that is not there has a value")
	}
}

// TestThePageHasThePlanOfATerminal: the same phases, and the same part of them left out.
func TestThePageHasThePlanOfATerminal(t *testing.T) {
	got := plan{phases: []netcheck.Phase{netcheck.Download, netcheck.Upload}, duration: longTime}.ofPage()
	if want := (pagePlan{Download: true, Upload: true, Connections: 4, Seconds: 10, RampUp: 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestAwaitTakesResultsOrSaysWhy: what a page says last.
func TestAwaitTakesResultsOrSaysWhy(t *testing.T) {
	for _, c := range []struct {
		word pageWord
		want string
		said bool // by the check itself
	}{
		{pageWord{Type: "results", Results: []byte(`{"figures":[{"name":"loss","direction":"down","value":0.25}]}`)}, "", false},
		{pageWord{Type: "results", Results: []byte(`[]`)}, "results of the check", false},
		{pageWord{Type: "results", Results: []byte(`{"channel":"blocked","channel_reason":"no UDP"}`)}, "no UDP", true},
		{pageWord{Type: "failed", Why: "no way"}, "no way", true},
	} {
		words := make(chan pageWord, 2)
		words <- pageWord{Type: "phase", Phase: netcheck.Download}
		words <- c.word
		r, err := plan{}.await(context.Background(), words, nil)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, new(*endedError)) != c.said {
				t.Errorf("%s: %v", c.word.Type, err)
			}
			continue
		}
		if v, e := r.value(netstat.Loss, netstat.Down); err != nil || e != nil || v != 0.25 {
			t.Errorf("%v, %v, %v", v, err, e)
		}
	}
}

// TestCasesAreNamedOnce: --case takes names. Cases of browsers, of another client, and of further lines that give way run only when they are
// named.
func TestCasesAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Bench.Cases {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		extra := strings.HasSuffix(c.Name, "chromium") || strings.HasSuffix(c.Name, "firefox") || strings.HasPrefix(c.Name, "rpm/") ||
			strings.HasPrefix(c.Name, "gives-way/") && c.Name != "gives-way/20m-50ms"
		if extra != c.Extra {
			t.Errorf("%s: extra is %v", c.Name, c.Extra)
		}
		if len(c.Figures) == 0 || c.About == "" || c.Run == nil {
			t.Errorf("%s has no figures, text or run", c.Name)
		}
	}
}
