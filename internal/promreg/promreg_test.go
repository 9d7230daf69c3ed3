package promreg_test

import (
	"bufio"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/promreg"
)

var (
	things = &metric.Def{
		Name: "leeway_test_things_total", Help: "Things.", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "source", Values: metric.Sources}},
	}
	open = &metric.Def{Name: "leeway_test_open", Help: "Open.", Kind: metric.Gauge}
	wait = &metric.Def{Name: "leeway_test_wait_seconds", Help: "Wait.", Kind: metric.Histogram, Buckets: []float64{0.1, 1}}
)

// scrape returns the series as Prometheus sees them.
func scrape(t *testing.T, r *promreg.Registry) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scraped %d: %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			series[name] = value
		}
	}
	return series
}

func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	r, err := promreg.New([]string{"demo", "film"}, things, open, wait)
	if err != nil {
		t.Fatal(err)
	}
	got := scrape(t, r)
	for _, site := range []string{"demo", "film"} {
		for _, source := range metric.Sources {
			if v := got[`leeway_test_things_total{site="`+site+`",source="`+source+`"}`]; v != "0" {
				t.Errorf("%s, %s: %q", site, source, v)
			}
		}
	}
	for _, name := range []string{"leeway_test_open", "leeway_test_wait_seconds_count", "leeway_metrics_dropped_total"} {
		if got[name] != "0" {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(got) != 6+1+5+1 {
		t.Errorf("%d series: %v", len(got), got)
	}
}

func TestObservationsThatDoNotFitAreDroppedAndCounted(t *testing.T) {
	r, err := promreg.New([]string{"demo"}, things, open, wait)
	if err != nil {
		t.Fatal(err)
	}
	r.Add(things, 2, "demo", "peer")
	r.Set(open, 7)
	r.Add(open, -3)
	r.Observe(wait, 0.5)
	before := len(scrape(t, r))
	dropped := 0
	for _, f := range []func(){
		func() { r.Add(things, 1, "elsewhere", "peer") },
		func() { r.Add(things, 1, "demo", "moon") },
		func() { r.Add(things, 1, "demo") },
		func() { r.Add(things, 1, "demo", "peer", "more") },
		func() { r.Add(things, -1, "demo", "peer") },
		func() { r.Set(things, 1, "demo", "peer") },
		func() { r.Observe(open, 1) },
		func() { r.Add(wait, 1) },
		func() { r.Add(&metric.Def{Name: "leeway_test_unheard_total"}, 1) },
	} {
		f()
		dropped++
	}
	got := scrape(t, r)
	for name, want := range map[string]string{
		`leeway_test_things_total{site="demo",source="peer"}`: "2", "leeway_test_open": "4", "leeway_test_wait_seconds_sum": "0.5",
		"leeway_metrics_dropped_total": "9",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s (%d observations did not fit)", name, got[name], want, dropped)
		}
	}
	if len(got) != before {
		t.Errorf("series grew from %d to %d", before, len(got))
	}
}

func TestRegistriesShareNothing(t *testing.T) {
	for range 2 { // a global registry would refuse the second
		if _, err := promreg.New([]string{"demo"}, things); err != nil {
			t.Fatal(err)
		}
	}
	twice := *things
	if _, err := promreg.New([]string{"demo"}, things, &twice); err == nil {
		t.Error("one name was defined twice")
	}
}

func TestFiguresOfTheProcess(t *testing.T) {
	r, err := promreg.New([]string{"demo"}, things)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Process(); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, r)
	names := []string{"go_goroutines", "go_memstats_heap_alloc_bytes"}
	if runtime.GOOS == "linux" {
		names = append(names, "process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total")
	}
	for _, name := range names {
		if got[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if got[`leeway_test_things_total{site="demo",source="peer"}`] != "0" {
		t.Error("the services' own series are gone")
	}
	if err := r.Process(); err == nil {
		t.Error("added twice")
	}
}

// TestTextFormat reads an exposition line by line: help and type of each family, and escaped help.
func TestTextFormat(t *testing.T) {
	odd := &metric.Def{Name: "leeway_test_odd", Help: "A back\\slash and\na line", Kind: metric.Gauge}
	r, err := promreg.New([]string{"demo"}, odd, wait)
	if err != nil {
		t.Fatal(err)
	}
	r.Set(odd, 1.5)
	r.Observe(wait, 0.1) // a bound belongs to its bucket
	r.Observe(wait, 7)
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("content type %q", kind)
	}
	const want = `# HELP leeway_metrics_dropped_total Observations whose labels are outside their set
# TYPE leeway_metrics_dropped_total counter
leeway_metrics_dropped_total 0
# HELP leeway_test_odd A back\\slash and\na line
# TYPE leeway_test_odd gauge
leeway_test_odd 1.5
# HELP leeway_test_wait_seconds Wait.
# TYPE leeway_test_wait_seconds histogram
leeway_test_wait_seconds_bucket{le="0.1"} 1
leeway_test_wait_seconds_bucket{le="1"} 1
leeway_test_wait_seconds_bucket{le="+Inf"} 2
leeway_test_wait_seconds_sum 7.1
leeway_test_wait_seconds_count 2
`
	if got := w.Body.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSitesAreTheConfigurationsAlone(t *testing.T) {
	none, err := promreg.New(nil, things)
	if err != nil {
		t.Fatal(err)
	}
	none.Add(things, 1, "demo", "peer")
	got := scrape(t, none)
	if got["leeway_metrics_dropped_total"] != "1" || len(got) != 1 {
		t.Errorf("without sites: %v", got)
	}
}

func TestCountingFromManyGoroutines(t *testing.T) {
	r, err := promreg.New([]string{"demo"}, things, open, wait)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				r.Add(things, 1, "demo", "seed")
				r.Add(open, 1)
				r.Observe(wait, 0.5)
				r.Add(things, 1, "demo", "moon")
			}
		})
	}
	scrape(t, r)
	all.Wait()
	got := scrape(t, r)
	for _, name := range []string{`leeway_test_things_total{site="demo",source="seed"}`, "leeway_test_open", "leeway_test_wait_seconds_count", "leeway_metrics_dropped_total"} {
		if got[name] != "4000" {
			t.Errorf("%s is %s", name, got[name])
		}
	}
}

// telling is a collector of what a test says.
type telling []func(tell func(*metric.Def, float64, ...string))

func (c *telling) Collect(tell func(*metric.Def, float64, ...string)) {
	for _, say := range *c {
		say(tell)
	}
}

// TestSeriesOfACollectorComeAndGo: a registry shows of open metrics what their collector tells now, and counts what does not fit.
func TestSeriesOfACollectorComeAndGo(t *testing.T) {
	films := &metric.Def{Name: "leeway_test_films_total", Help: "Films.", Kind: metric.Counter, Labels: []metric.Label{metric.Site(), metric.Title()}}
	seats := &metric.Def{Name: "leeway_test_seats", Help: "Seats.", Kind: metric.Gauge, Labels: []metric.Label{metric.Title()}}
	r, err := promreg.New([]string{"demo"}, things, films, seats)
	if err != nil {
		t.Fatal(err)
	}
	c := &telling{}
	if err := r.Watch(c, things, films, seats); err != nil {
		t.Fatal(err)
	}
	is := func(want map[string]string) {
		t.Helper()
		got := scrape(t, r)
		for name, v := range got {
			if (strings.Contains(name, "films") || strings.Contains(name, "seats") || strings.Contains(name, "dropped")) && want[name] != v {
				t.Errorf("%s is %s, want %q", name, v, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("missing: %v", want)
		}
	}
	is(map[string]string{"leeway_metrics_dropped_total": "0"})
	*c = append(*c, func(tell func(*metric.Def, float64, ...string)) {
		tell(films, 3, "demo", `a"b"`)
		tell(seats, 2, "/c")
	})
	is(map[string]string{`leeway_test_films_total{site="demo",title="a\"b\""}`: "3", `leeway_test_seats{title="/c"}`: "2", "leeway_metrics_dropped_total": "0"})
	*c = telling{func(tell func(*metric.Def, float64, ...string)) {
		tell(films, 3)
		tell(films, 3, "demo", "\xff")
		tell(things, 3, "demo", "peer")
	}}
	scrape(t, r)
	*c = nil
	is(map[string]string{"leeway_metrics_dropped_total": "3"})
	if r.Add(films, 1, "demo", "a"); scrape(t, r)["leeway_metrics_dropped_total"] == "3" {
		t.Error("an open metric was counted in a sink")
	}
	if err := r.Watch(c, films); err == nil {
		t.Error("watched twice")
	}
}

func TestWhatIsForSomeSitesAloneHasNoSeriesOfOthers(t *testing.T) {
	some := &metric.Def{Name: "leeway_test_some_total", Help: "Some.", Kind: metric.Counter, Labels: []metric.Label{metric.Site()}}
	r, err := promreg.New([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Register([]string{"b"}, some); err != nil {
		t.Fatal(err)
	}
	r.Add(some, 2, "b")
	r.Add(some, 1, "a")
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	if !strings.Contains(text, `leeway_test_some_total{site="b"} 2`) || strings.Contains(text, `site="a"`) || !strings.Contains(text, "leeway_metrics_dropped_total 1") {
		t.Error(text)
	}
}

// BenchmarkAdd counts with two labels: the counter of each message.
func BenchmarkAdd(b *testing.B) {
	r, err := promreg.New([]string{"example.com"}, things)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Add(things, 1, "example.com", "peer")
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	r, err := promreg.New([]string{"example.com"}, things)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { r.Add(things, 1, "example.com", "peer") }); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
