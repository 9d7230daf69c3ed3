package transferbench

import (
	"io"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
)

// TestMain makes the test binary an end of a path where a bench asks for one.
func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

// TestEveryKindMoves runs each kind of path end for a moment, in processes as the bench does.
func TestEveryKindMoves(t *testing.T) {
	r := &bench.Run{Log: io.Discard}
	for _, l := range []load{
		{kind: kindLink, channels: 2, message: 16384, links: 2}, {kind: kindDefault, channels: 1, message: bareMessage, links: 1},
		{kind: kindTuned, channels: 1, message: bareMessage, links: 1}, {kind: kindTCP, links: 2},
	} {
		var o *outcome
		var err error
		// On a busy machine nothing may arrive in a short time.
		for l.run = 200 * time.Millisecond; (o == nil || o.rate <= 0) && err == nil && l.run < 30*time.Second; l.run *= 5 {
			o, err = move(t.Context(), r, l, here, here, here)
		}
		if err != nil {
			t.Errorf("%s: %v", l.kind, err)
			continue
		}
		if o.rate <= 0 || o.cpu <= 0 {
			t.Errorf("%s: %+v", l.kind, o)
		}
		if known := o.buffers != [2]int{}; known != (l.kind == kindLink) {
			t.Errorf("%s: socket buffers %v", l.kind, o.buffers)
		}
	}
}

func TestSmallBuffersVoidTheRun(t *testing.T) {
	if why := capped([2]int{212992, 4 << 20}); why == "" {
		t.Error("a capped kernel claims")
	}
	if why := capped([2]int{4 << 20, 4 << 20}); why != "" {
		t.Error(why)
	}
}

func TestSilenceIsTheLongestGapBetweenArrivals(t *testing.T) {
	m := &meter{}
	base := time.Now().UnixNano()
	for _, at := range []time.Duration{0, 20, 25, 500, 510} {
		m.note(base + int64(at*time.Millisecond) - int64(time.Second))
	}
	if _, quiet := m.end(); quiet < 475*time.Millisecond || quiet > time.Minute {
		t.Errorf("longest silence %s", quiet)
	}
	if _, quiet := (&meter{}).end(); quiet != 0 {
		t.Errorf("silence of %s before anything came", quiet)
	}
}

func TestCasesHaveTheFiguresTheyPromise(t *testing.T) {
	want := map[string][]string{
		"loopback":   {"goodput_vs_default", "goodput_vs_tuned", "cpu_vs_tuned", "goodput_vs_cubic"},
		"path/25ms":  {"goodput_vs_cubic", "longest_silence"},
		"path/50ms":  {"goodput_vs_cubic", "longest_silence"},
		"peers/25ms": {"goodput_vs_cubic"},
	}
	for _, c := range Bench.Cases {
		has := map[string]bool{}
		for _, f := range c.Figures {
			has[f.Name] = f.Goal != ""
		}
		for _, name := range want[c.Name] {
			if goal, ok := has[name]; !ok || !goal && name != "goodput_vs_cubic" {
				t.Errorf("%s: %s is missing, or its goal", c.Name, name)
			}
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("cases are missing: %v", want)
	}
}
