package natbench

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// said is what a viewer says after so many seconds, with these links.
func said(seconds float64, linked ...string) viewer.Summary {
	s := viewer.Summary{WatchedMs: int64(seconds * 1000), Linked: map[string]int{}}
	for _, l := range linked {
		s.Linked[l]++
	}
	return s
}

func TestJudge(t *testing.T) {
	const d, r, s = "viewer/direct", "viewer/relay", "seed/direct"
	failed := said(9, s)
	failed.Stats = signal.Stats{LinkFailures: map[string]int64{"timeout": 1}}
	off := said(9)
	off.Off = "udp-blocked"
	for name, c := range map[string]struct {
		said  []viewer.Summary
		want  result
		since time.Duration
	}{
		"nothing":                 {nil, result{}, 0},
		"a link of its own":       {[]viewer.Summary{said(1), said(2, s), said(3, s, d), said(4, s, d)}, meets, 3 * time.Second},
		"a relay, then directly":  {[]viewer.Summary{said(1), said(2, s, r), said(3, s, d, r)}, meets, 3 * time.Second},
		"a relay":                 {[]viewer.Summary{said(1, s), said(2, r)}, relays, 2 * time.Second},
		"lost again":              {[]viewer.Summary{said(1, s), said(2, s, d), said(3, s), failed}, bySeed, 3 * time.Second},
		"no peer":                 {[]viewer.Summary{said(1), off}, alone, time.Second},
		"lost and found":          {[]viewer.Summary{said(1, d), said(2), said(3, d)}, meets, 3 * time.Second},
		"the seed, behind relays": {[]viewer.Summary{said(1, "seed/relay")}, result{way: seedOnly}, time.Second},
	} {
		if got, since := judge(c.said); got != c.want || since != c.since {
			t.Errorf("%s: %v since %v, want %v since %v", name, got, since, c.want, c.since)
		}
	}
}

func TestFiguresOfVerdicts(t *testing.T) {
	good := verdict{row: row{a: public, b: public, want: meets}, got: meets, since: time.Second}
	again := verdict{row: row{a: symmetric, b: symmetric, want: bySeed}, got: bySeed, since: 2 * time.Second, stalls: 3, failed: 3}
	once := again
	once.failed, once.stalls, once.err = 2, 0, errors.New("two\nlines")
	v := figures([]verdict{good, again, once}).Values
	for name, want := range map[string]float64{"rows": 3, "as_expected": 2. / 3, "slowest": 2, "slowest_vs_open": 2, "stalls": 3, "failed_again": 1} {
		if v[name] != want {
			t.Errorf("%s is %g, want %g", name, v[name], want)
		}
	}
	var table strings.Builder
	describe(&table, []verdict{good, {row: good.row, got: bySeed}, once})
	if text := table.String(); strings.Count(text, "\n") != 4+2 || !strings.Contains(text, "NOT AS EXPECTED") || !strings.Contains(text, "two lines") {
		t.Error(text)
	}
}

func TestRowsHaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rows {
		if names[r.name()] {
			t.Errorf("there are two rows %s", r.name())
		}
		names[r.name()] = true
	}
	for _, nats := range []edge{cone, restricted, symmetric} { // each pair of kinds, both ways, and each kind behind one address
		for _, other := range []edge{cone, restricted, symmetric} {
			if !names[string(nats+"-"+other)] {
				t.Errorf("no row %s-%s", nats, other)
			}
		}
		for _, kind := range []string{"/together", "/together/isolated", "/together/isolated/hairpin"} {
			if !names[string(nats+"-"+nats)+kind] {
				t.Errorf("no row %s-%s%s", nats, nats, kind)
			}
		}
	}
	if len(some("restricted-restricted/chromium", "cone-cone", "restricted-restricted", "symmetric-symmetric", "restricted-symmetric/plain")) != 5 {
		t.Error("a row of the smoke is not there")
	}
	if n := len(longer(some("restricted-symmetric/plain", "symmetric-symmetric/plain"))); n != 2 || rows[0].watch != 0 {
		t.Errorf("%d rows are watched for longer, and the table's %v", n, rows[0].watch)
	}
}
