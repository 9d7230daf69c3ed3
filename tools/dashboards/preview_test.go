package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// grafana answers as Grafana's backend does, with the series that come of each query.
func grafana(t *testing.T, answer func(query string) []any) *recording {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/datasources", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"uid":"logs","type":"loki","jsonData":{}},{"uid":"here","type":"prometheus","jsonData":{"timeInterval":"5s"}}]`)
	})
	mux.HandleFunc("GET /api/datasources/uid/here/resources/api/v1/label/site/values", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":["demo","a.b"]}`)
	})
	mux.HandleFunc("POST /api/ds/query", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Queries []struct {
				RefID, Expr, LegendFormat string
				Range, Instant            bool
				IntervalMs, MaxDataPoints int
				Datasource                struct{ UID string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Queries) != 1 {
			t.Errorf("asked %+v: %v", asked, err)
			return
		}
		q := asked.Queries[0]
		if strings.Contains(strings.ReplaceAll(q.Expr, "$__", ""), "$") || q.Datasource.UID != "here" || q.IntervalMs != 5000 || q.LegendFormat == "" || q.Range == q.Instant {
			t.Errorf("asked %+v", q)
		}
		frames := answer(q.Expr)
		for _, f := range frames {
			f.(map[string]any)["schema"].(map[string]any)["fields"].([]any)[1].(map[string]any)["config"] = map[string]string{"displayNameFromDS": q.LegendFormat}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": map[string]any{q.RefID: map[string]any{"status": 200, "frames": frames}}})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	to := time.Unix(1_700_000_000, 0)
	r := &recording{address: server.URL, from: to.Add(-5 * time.Minute), to: to}
	if err := r.open(); err != nil || r.source != "here" || r.step != 5*time.Second || len(r.sites) != 2 {
		t.Fatalf("%+v: %v", r, err)
	}
	return r
}

// aSeries is a frame; what is no number is nil.
func aSeries(values ...any) any {
	var times []int
	for i := range values {
		times = append(times, (1_700_000_000-300+5*i)*1000)
	}
	return map[string]any{"schema": map[string]any{"fields": []any{map[string]any{}, map[string]any{}}}, "data": map[string]any{"values": []any{times, values}}}
}

// nothing is the frame that comes of a query without series.
func nothing() any {
	f := aSeries().(map[string]any)
	f["data"] = map[string]any{"values": []any{}}
	return f
}

// TestPreviewDrawsEveryPanel: each panel of each dashboard is on the page, with what its queries brought.
func TestPreviewDrawsEveryPanel(t *testing.T) {
	r := grafana(t, func(string) []any { return []any{aSeries(1, nil, 3.5)} })
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

// TestPreviewNamesWhatIsWrong: a query that brings nothing, or no numbers, is an error, unless it may; so is one that brings
// other series where every site is picked by name.
func TestPreviewNamesWhatIsWrong(t *testing.T) {
	r := grafana(t, func(query string) []any {
		switch query {
		case "none":
			return []any{nothing()}
		case "nan":
			return []any{aSeries(nil, nil)}
		case `fewer{site=~"(demo|a\\.b)"}`:
			return []any{aSeries(1)}
		}
		return []any{aSeries(1, 2), aSeries(3)}
	})
	for _, c := range []struct {
		series []series
		wrong  string
	}{
		{[]series{{expr: "some"}}, ""},
		{[]series{{expr: `some{site=~"$site"}`}}, ""},
		{[]series{{expr: "none"}}, "nothing comes of none"},
		{[]series{{expr: "some"}, {expr: "nan"}}, "nothing comes of nan"},
		{[]series{{expr: "some"}, {expr: "nan", rare: true}}, ""},
		{[]series{{expr: `fewer{site=~"$site"}`}}, "1 series instead of 2"},
	} {
		_, err := panel{title: "t", unit: units.Number, series: c.series}.show(r, false)
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v", c.series, err)
		}
	}
}

// TestAQueryThatFailsSaysWhere: what Prometheus refused, or the backend, ends the preview.
func TestAQueryThatFailsSaysWhere(t *testing.T) {
	r := grafana(t, func(string) []any { return nil })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"results":{"A":{"error":"bad_data: parse error","errorSource":"downstream","status":400,"frames":[]}}}`)
	}))
	defer server.Close()
	r.address = server.URL
	_, err := panel{title: "t", series: []series{{expr: "sum("}}}.show(r, false)
	var failed *QueryError
	if !errors.As(err, &failed) || failed.Source != "downstream" || failed.Status != 400 || !strings.Contains(failed.Error(), "sum(: bad_data") {
		t.Errorf("%v", err)
	}
}

// TestWholeSpansAreAskedOnce: what is added up over the dashboard's span is one value, what changes in it is many.
func TestWholeSpansAreAskedOnce(t *testing.T) {
	for expr, once := range map[string]bool{"increase(a[$__range])": true, "rate(a[$__rate_interval])": false, "a": false} {
		q, err := panel{title: "t", series: []series{{expr: expr}}}.targets()
		if err != nil || len(q) != 1 || (q[0]["instant"] == true) != once || (q[0]["range"] == true) == once {
			t.Errorf("%s: %v, %v", expr, q, err)
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
		_, low, end, _ := chart{lines: []drawnLine{l}}.scale()
		if low != 0 || end < high || end > 1.3*high {
			t.Errorf("%v is drawn from %v to %v", high, low, end)
		}
	}
	for _, c := range []struct {
		unit      string
		low, high float64
		want      string
	}{
		{units.BytesPerSecondSI, -890_000, 2_600_000, "-1 MB/s 0 B/s 1 MB/s 2 MB/s 3 MB/s"}, {units.BytesIEC, 0, 53.4 * (1 << 20), "0 B 20 MiB 40 MiB 60 MiB"},
		{units.PercentUnit, 0, 1, "0 % 20 % 40 % 60 % 80 % 100 %"}, {units.Number, 0, 260, "0 100 200 300"}, {units.Seconds, 0, 0.03, "0 s 10 ms 20 ms 30 ms"},
	} {
		_, low, high, step := chart{unit: c.unit, lines: []drawnLine{{points: []point{{0, c.low}, {1, c.high}}}}}.scale()
		var ticks []string
		for v := low; v < high+step/2; v += step {
			ticks = append(ticks, strings.TrimSpace(format(c.unit, v)))
		}
		if got := strings.Join(ticks, " "); got != c.want {
			t.Errorf("%v to %v %s: %s", c.low, c.high, c.unit, got)
		}
	}
	stack := chart{stacked: true, lines: []drawnLine{{points: []point{{0, 1}}}, {points: []point{{0, 2}}}}}
	if lines, _, _, _ := stack.scale(); fmt.Sprint(lines[1].points) != fmt.Sprint([]point{{0, 3}}) {
		t.Errorf("stacked: %v", strconv.Quote(fmt.Sprint(lines)))
	}
}
