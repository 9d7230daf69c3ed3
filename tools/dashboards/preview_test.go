package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// answering is a Prometheus that has an answer for each query; nil has none.
func answering(t *testing.T, answer func(query string) []any) recording {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil || r.URL.Path != "/api/v1/query_range" {
			t.Errorf("asked %s", r.URL)
		}
		if strings.Contains(q.Get("query"), "$") {
			t.Errorf("a variable is left in %s", q.Get("query"))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"result": answer(q.Get("query"))}})
	}))
	t.Cleanup(server.Close)
	to := time.Unix(1_700_000_000, 0)
	return recording{address: server.URL, from: to.Add(-5 * time.Minute), to: to, step: 5 * time.Second}
}

func aSeries(labels map[string]string, values ...string) any {
	var points []any
	for i, v := range values {
		points = append(points, []any{1_700_000_000 - 300 + 5*i, v})
	}
	return map[string]any{"metric": labels, "values": points}
}

// TestPreviewDrawsEveryPanel: each panel of each dashboard is on the page, with what its queries brought.
func TestPreviewDrawsEveryPanel(t *testing.T) {
	labels := map[string]string{}
	for _, l := range []string{"site", "source", "path", "variant", "reason", "outcome", "type", "direction", "role", "kind", "lane", "instance", "tier", "scope", "code", "subject"} {
		labels[l] = "a-" + l
	}
	r := answering(t, func(string) []any { return []any{aSeries(labels, "1", "NaN", "3.5")} })
	folder := t.TempDir()
	if err := preview(r, folder); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(filepath.Join(folder, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boards {
		one, err := os.ReadFile(filepath.Join(folder, strings.TrimSuffix(b.file(), ".json")+".html"))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range []string{string(one), string(all)} {
			for _, p := range b.panels() {
				if !strings.Contains(page, "<h3>"+strings.NewReplacer("'", "&#39;", "&", "&amp;").Replace(p.title)+"</h3>") {
					t.Errorf("%s: %q is not on the page", b.uid, p.title)
				}
			}
		}
		if n := strings.Count(string(one), "<svg"); n != len(b.panels()) || strings.Contains(string(one), "NaN") {
			t.Errorf("%s: %d pictures of %d panels", b.uid, n, len(b.panels()))
		}
	}
}

// TestPreviewNamesWhatIsEmpty: a query that brings nothing, or no numbers, is an error, unless it may.
func TestPreviewNamesWhatIsEmpty(t *testing.T) {
	r := answering(t, func(query string) []any {
		switch query {
		case "none":
			return []any{}
		case "nan":
			return []any{aSeries(nil, "NaN", "+Inf")}
		}
		return []any{aSeries(nil, "1", "2")}
	})
	for _, c := range []struct {
		series []series
		empty  bool
	}{
		{[]series{{expr: "some"}}, false},
		{[]series{{expr: "none"}}, true},
		{[]series{{expr: "some"}, {expr: "nan"}}, true},
		{[]series{{expr: "some"}, {expr: "nan", rare: true}}, false},
	} {
		if _, err := (panel{title: "t", unit: units.Number, series: c.series}).show(r, false); (err != nil) != c.empty {
			t.Errorf("%+v: %v", c.series, err)
		}
	}
}

func TestNumbersAreShort(t *testing.T) {
	for _, c := range []struct {
		unit string
		v    float64
		want string
	}{
		{units.Number, 0, "0"}, {units.Number, 0.000172, "0.00017"}, {units.Number, 12.34, "12.3"}, {units.Number, 1_234_567, "1.23 M"}, {units.Number, -0.5, "-0.5"},
		{units.PercentUnit, 0.305, "30.5 %"}, {units.BytesSI, 8_600_000, "8.6 MB"}, {units.BytesIEC, 1 << 20, "1 MiB"}, {units.BytesPerSecondSI, 999, "999 B/s"},
		{units.BitsPerSecondSI, 1_880_000, "1.88 Mbit/s"}, {units.Seconds, 0.0198, "19.8 ms"}, {units.Seconds, 0.000099, "99 µs"}, {units.Seconds, 90, "90 s"}, {units.Seconds, 0, "0 s"},
	} {
		if got := strings.TrimSpace(format(c.unit, c.v)); got != c.want {
			t.Errorf("%v %s is %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// TestAxesEndAtRoundNumbers above what is drawn, and not far above.
func TestAxesEndAtRoundNumbers(t *testing.T) {
	for _, high := range []float64{1e-6, 0.013, 0.5, 1, 7, 43, 99.5, 101, 1234, 5e9} {
		l := drawnLine{points: []point{{0, 0}, {1, high}}}
		_, low, end := chart{lines: []drawnLine{l}}.scale()
		if low != 0 || end < high || end > 1.3*high {
			t.Errorf("%v is drawn from %v to %v", high, low, end)
		}
	}
	stack := chart{stacked: true, lines: []drawnLine{{points: []point{{0, 1}}}, {points: []point{{0, 2}}}}}
	if lines, _, _ := stack.scale(); fmt.Sprint(lines[1].points) != fmt.Sprint([]point{{0, 3}}) {
		t.Errorf("stacked: %v", strconv.Quote(fmt.Sprint(lines)))
	}
}
