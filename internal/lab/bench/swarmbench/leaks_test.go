package swarmbench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/viewer"
)

// rests reads this process a few times, with something done before each reading.
func rests(t *testing.T, before func(visit int)) []reading {
	t.Helper()
	var list []reading
	for range 5 {
		for visit := range 20 {
			before(visit)
		}
		r, err := own(viewer.Summary{})
		if err != nil {
			t.Fatal(err)
		}
		r.Sessions, r.Links = 1, 1 // the guest's
		list = append(list, r)
	}
	return list
}

// verdict is what `leeway-lab bench swarm --case soak --check` makes of readings.
func verdict(t *testing.T, servers, viewers []reading) (missed []string) {
	t.Helper()
	values := judge(servers, viewers)
	values["visits"] = 100
	c := bench.Case{Name: "soak", Figures: soakFigures(), Run: func(context.Context, *bench.Run) (bench.Sample, error) {
		return bench.Sample{Values: values}, nil
	}}
	var out bytes.Buffer
	err := bench.Execute(t.Context(), bench.Bench{Name: "b", Cases: []bench.Case{c}}, bench.Options{Check: true}, &out, io.Discard)
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "MISSED") {
			missed = append(missed, strings.Fields(line)[0])
		}
	}
	if (len(missed) > 0) != errors.Is(err, bench.ErrMissed) {
		t.Errorf("missed %v, and the verdict is %v", missed, err)
	}
	return missed
}

// Each of these is done to this very process, which is then judged as the servers are.
func TestALeakIsFound(t *testing.T) {
	defer goleak.VerifyNone(t)
	still := rests(t, func(int) {})
	if missed := verdict(t, still, still); missed != nil {
		t.Fatalf("nothing was kept, and yet: %v", missed)
	}
	end := make(chan struct{})
	goroutines := rests(t, func(visit int) {
		if visit%2 == 0 { // one of two visits leaves one behind
			go func() { <-end }()
		}
	})
	close(end)
	var files []*os.File
	open := rests(t, func(visit int) {
		if visit%2 == 0 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	})
	for _, f := range files {
		_ = f.Close()
	}
	var kept [][]byte
	heap := rests(t, func(int) { kept = append(kept, slices.Repeat([]byte{1}, 50<<10)) })
	if len(kept) == 0 {
		t.Fatal("nothing was kept")
	}
	kept = nil
	for _, c := range []struct {
		name  string
		leaky []reading
		want  string
	}{{"goroutines", goroutines, "goroutines_growth"}, {"files", open, "files_growth"}, {"heap", heap, "heap_growth"}} {
		if missed := verdict(t, c.leaky, still); !slices.Contains(missed, "servers_"+c.want) {
			t.Errorf("%s leaked in the servers: %v was missed; readings %v", c.name, missed, c.leaky)
		}
		if missed := verdict(t, still, c.leaky); !slices.Contains(missed, "viewer_"+c.want) {
			t.Errorf("%s leaked in a viewer: %v was missed", c.name, missed)
		}
	}
}

func TestWhatIsLeftIsFound(t *testing.T) {
	still := []reading{{Sessions: 1, Links: 1}, {Sessions: 1, Links: 1}, {Sessions: 1, Links: 1}}
	change := func(f func(*reading)) []reading {
		list := slices.Clone(still)
		f(&list[1])
		return list
	}
	for want, list := range map[string][]reading{
		"sessions_left": change(func(r *reading) { r.Sessions = 2 }),
		"links_left":    change(func(r *reading) { r.Links = 3 }),
		"store_most":    change(func(r *reading) { r.Store = storeMost + 1 }),
	} {
		if missed := verdict(t, list, still); !slices.Equal(missed, []string{want}) {
			t.Errorf("missed %v, want %s", missed, want)
		}
	}
	many := change(func(r *reading) { r.Store = viewerStore + 1 })
	if missed := verdict(t, still, many); !slices.Equal(missed, []string{"viewer_store_most"}) {
		t.Errorf("missed %v", missed)
	}
}

// One odd rest is no leak, a steady rise is.
func TestGrowthIsTheSlope(t *testing.T) {
	of := func(values ...float64) float64 {
		var list []reading
		for _, v := range values {
			list = append(list, reading{Heap: v})
		}
		return growth(list, func(r reading) float64 { return r.Heap })
	}
	if got := of(10, 12, 14, 16, 18); got < 7.99 || got > 8.01 {
		t.Errorf("a rise of 8 is %v", got)
	}
	if got := of(10, 10, 18, 10, 10); got < -0.01 || got > 0.01 {
		t.Errorf("a peak is a growth of %v", got)
	}
	if of(5) != 0 || of() != 0 {
		t.Error("one rest has a slope")
	}
}

// The servers' reading is that of their admin port; pieces in memory are the store's and not the heap's.
func TestReadingOfTheServers(t *testing.T) {
	collected := 0
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/debug") {
			collected++
			return
		}
		_, _ = io.WriteString(w, `go_goroutines 12
go_memstats_heap_alloc_bytes 5e+06
process_open_fds 9
process_resident_memory_bytes 2.5e+07
leeway_seed_store_bytes{tier="memory"} 1e+06
leeway_seed_store_bytes{tier="disk"} 3e+06
leeway_tracker_sessions{site="demo"} 2
leeway_seed_links 4
`)
	}))
	defer admin.Close()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(admin.URL, "http://"))
	}
	s := &servers{Site: &demosite.Site{Client: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, Addr: netip.MustParseAddr("198.18.0.1")}}
	got, err := s.reading()
	if want := (reading{Goroutines: 12, Files: 9, Heap: 4e6, RSS: 2.5e7, Store: 4e6, Sessions: 2, Links: 4}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if collected != 2 {
		t.Errorf("garbage was collected %d times", collected)
	}
}

func TestSoakLength(t *testing.T) {
	for text, want := range map[string]time.Duration{"": defaultSoak, "3": 3 * time.Minute, "600": 10 * time.Hour} {
		if got, err := soakLength(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"2", "x", "-5", "1.5"} {
		if _, err := soakLength(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	// The shortest has a few rests: with two there is no telling a slope from an accident.
	if n := shortestSoak / (crowd(shortestSoak) + 10*time.Second); n < 4 {
		t.Errorf("%d rests", n)
	}
	if got := crowd(10 * time.Hour); got != 50*time.Minute {
		t.Errorf("a crowd of ten hours is %v", got)
	}
}
