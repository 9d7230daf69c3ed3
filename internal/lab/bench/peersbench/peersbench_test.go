package peersbench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/benchtest"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
)

// TestMain makes the test binary an end where the bench asks for one.
func TestMain(m *testing.M) { benchtest.Main(m, Bench) }

// TestEveryKindLinksAndFetches runs each pair for a moment on loopback: a link is made, ended, and made again; items come over
// several links, channels and ends.
func TestEveryKindLinksAndFetches(t *testing.T) {
	here := place{addr: "127.0.0.1"}
	for _, k := range []kinds{oursOurs, barePion, {name: "tuned", client: kindTune, server: kindTune}} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			r := &bench.Run{Log: io.Discard}
			s, err := openSession(t.Context(), r, k, 2, listener, here, here, here)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			seen, err := s.link(t.Context(), 0, 1, func(int) int { return 1 })
			if err != nil {
				t.Fatal(err)
			}
			if at := seen[0]; at.ms() <= 0 || at.after() <= 0 || at.answered < at.begun {
				t.Errorf("moments %+v", at)
			}
			if err := s.drop(0, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := s.link(t.Context(), 1, 4, func(link int) int { return 1 + link%2 }); err != nil {
				t.Fatal(err)
			}
			lanes := []lane{{1, 0}, {2, 0}, {3, 1}, {4, 1}}
			if k.ours() {
				lanes[2].Channel, lanes[3].Channel = 0, 0
			}
			for _, j := range []job{
				{Lanes: lanes[:1], Bytes: 50_001, Item: 20_000, Ahead: 1}, {Lanes: lanes, Bytes: 300_000, Item: 16384, Ahead: 3},
			} {
				d, err := s.fetch(t.Context(), j)
				if err != nil || d.MS <= 0 {
					t.Fatalf("%+v: %+v, %v", j, d, err)
				}
			}
		})
	}
}

// TestAnEndThatCannotBeEndsTheSession: the bench is told, and does not wait for its patience.
func TestAnEndThatCannotBeEndsTheSession(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = openSession(t.Context(), &bench.Run{Log: io.Discard}, kinds{name: "none", client: "none", server: "none"}, 1, listener, place{}, place{})
	if err == nil {
		t.Fatal("a kind that there is not comes up")
	}
}

func TestItemsAreSharedAmongLanes(t *testing.T) {
	type asked struct{ lane, item, bytes int }
	var got []asked
	var finished int
	f := &fetcher{
		ask:  func(l lane, item, bytes int) error { got = append(got, asked{l.Link, item, bytes}); return nil },
		done: func(done) { finished++ }, fail: func(err error) { t.Error(err) },
	}
	f.begin(job{Lanes: []lane{{Link: 7}, {Link: 9}}, Bytes: 55, Item: 10, Ahead: 2})
	if want := []asked{{7, 0, 10}, {9, 1, 10}, {7, 2, 10}, {9, 3, 10}}; !slices.Equal(got, want) {
		t.Fatalf("asked for %v at first, expected %v", got, want)
	}
	for i, l := range []int{9, 9, 7, 7, 9, 9} {
		if finished != 0 {
			t.Fatalf("done after %d items of 6", i)
		}
		f.arrived(lane{Link: l})
	}
	if want := []asked{{9, 4, 10}, {9, 5, 5}}; !slices.Equal(got[4:], want) || finished != 1 {
		t.Errorf("asked for %v then, expected %v; done %d times", got[4:], want, finished)
	}
}

func TestEfficiencyCountsTheWireAndOneRoundTrip(t *testing.T) {
	// 1,090,000 bytes at 10 Mbit/s take 872 ms; with a round trip of 8 ms that is all of 880.
	all := []moved{{880 * time.Millisecond, 1_090_000, 3}, {1760 * time.Millisecond, 1_090_000, 0}}
	o := sum(all, 10*mega, 8*time.Millisecond)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, expected %v", name, got, want)
		}
	}
	near("efficiency", o.efficiency, 0.75)
	near("of the payload", o.ofPayload, (800.0/880+800.0/1760)/2)
	near("overhead", o.overhead, 1.09)
	near("drops", o.drops, 1.5)
	near("mean", o.mean, 1320)
	near("deviation", o.deviation, 880/math.Sqrt2)
	if mean, deviation := spread([]float64{3}); mean != 3 || deviation != 0 {
		t.Errorf("of one: %v ± %v", mean, deviation)
	}
}

func TestJobsMoveTenFiles(t *testing.T) {
	for _, k := range slices.Concat([]kinds{oursOurs, barePion}, browsers, plain) {
		seen := map[string]bool{}
		for _, a := range approaches(k, mostServers) {
			if seen[a.figure] {
				t.Errorf("%s: two approaches are called %s", k.name, a.figure)
			}
			seen[a.figure] = true
			j := a.job(k.ours())
			total := 0
			for i := range j.items() {
				total += j.size(i)
			}
			if total != totalBytes {
				t.Errorf("%s, %s: %d bytes", k.name, a.figure, total)
			}
			if len(j.Lanes) != a.links()*a.lanes {
				t.Errorf("%s, %s: %d lanes", k.name, a.figure, len(j.Lanes))
			}
			for _, l := range j.Lanes {
				if l.Link >= a.links() || l.Channel >= a.channels || k.ours() && l.Channel != 0 {
					t.Errorf("%s, %s: lane %+v", k.name, a.figure, l)
				}
			}
			if a.channels > k.channels() || a.servers > mostServers {
				t.Errorf("%s, %s: more than there may be", k.name, a.figure)
			}
		}
		if k.fixed() {
			continue
		}
		for _, figure := range []string{"a1", "a2_channels_5", "a2_connections_10", "a3_10", "a4_5x2"} {
			if !seen[figure] {
				t.Errorf("%s: no %s", k.name, figure)
			}
		}
	}
}

func TestTheLedgerKeepsSignalsApart(t *testing.T) {
	// 24 packets between the ends; the client signals with 10, the server with 6, and the exchange counts both.
	l := ledger{client: carried{34, 7000}, server: carried{30, 6500}, exchange: carried{16, 3500}}
	if got := l.peers(); got != (carried{24, 5000}) {
		t.Errorf("between the ends %+v", got)
	}
	if got := l.signaling(); got != (carried{10, 2000}) {
		t.Errorf("signals of the client %+v", got)
	}
}

// TestCasesStandBesideThePapers: each way and rate has its cases, with goals where both ends are ours, and the paper's figure.
func TestCasesStandBesideThePapers(t *testing.T) {
	goals := map[string]int{}
	for _, c := range Bench.Cases {
		if strings.Count(c.Name, "/") != 1 {
			t.Errorf("%s: a pattern H1/* is to find it", c.Name)
		}
		for _, f := range c.Figures {
			if f.Goal != "" {
				goals[c.Name[:2]+" "+f.Name]++
			}
			if f.Name == "ms" && f.Reference == nil {
				t.Errorf("%s stands beside nothing", c.Name)
			}
		}
	}
	if goals["H1 round_trips"] == 0 || goals["H5 best_efficiency"] != len(rates)*(1+len(browsers)) {
		t.Errorf("goals: %v", goals)
	}
	if len(papers["H1"].Rows) != len(ways) {
		t.Errorf("the paper has %d ways, the bench %d", len(papers["H1"].Rows), len(ways))
	}
	if got := papers["H1"].beside("21m-256k", "C-F"); got == nil || got.Value != 3601 {
		t.Errorf("21m-256k, C-F: %+v", got)
	}
	if got := paperTransfer(kinds{clientFirefox: true}, 15, "a2_connections_5"); got == nil || got.Value != 782 {
		t.Errorf("A2 with five, F-C: %+v", got)
	}
	if got := paperTransfer(kinds{}, 5, "a4_2x2"); got != nil {
		t.Errorf("the paper has no A4: %+v", got)
	}
}

// TestPapersAreComplete: every cell of every table can be read, and each row has a cell for each column.
func TestPapersAreComplete(t *testing.T) {
	for name, table := range papers {
		for row, raw := range table.Rows {
			var cells []json.RawMessage
			if err := json.Unmarshal(raw, &cells); err != nil || len(cells) != len(table.Columns) {
				t.Errorf("%s, %s: %d cells for %d columns (%v)", name, row, len(cells), len(table.Columns), err)
			}
		}
	}
}

func TestUnknownOrdersAreRefused(t *testing.T) {
	c := &child{}
	if err := c.do(message{Type: "sing"}); err == nil {
		t.Error("an order that there is not is followed")
	}
	in := json.NewDecoder(strings.NewReader("{"))
	if err := runEnd(context.Background(), in, bench.NewWriter(io.Discard)); err == nil {
		t.Error("half a setup is enough")
	}
}

func TestALoadIsOfTheClientsProcessor(t *testing.T) {
	l := loadOf(0.5, 12_500_000, 10*mega, 10*time.Second) // 10 Mbit/s for ten seconds
	if l.cpu != 0.05 || l.line != 1 || l.gb != 40 {
		t.Errorf("%+v", l)
	}
	if got := slope([]float64{1, 5, 10}, []float64{12, 20, 30}); math.Abs(got-2) > 1e-9 {
		t.Errorf("slope %v", got)
	}
}

// TestThePageOfThePapersKnowsTheWays: docs/papers.md is written by a script, which has the ways and their round trips from here.
func TestThePageOfThePapersKnowsTheWays(t *testing.T) {
	script, err := os.ReadFile("../../../../scripts/benchmarks/papers.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		known := regexp.MustCompile(fmt.Sprintf(`\['%s', '[^']+', %d\]`, w.name, trip(w.from, w.to).Milliseconds()))
		if !known.Match(script) {
			t.Errorf("the page has no %s with a round trip of %s", w.name, trip(w.from, w.to))
		}
	}
	for _, k := range slices.Concat([]kinds{oursOurs, barePion}, browsers, plain) {
		if !strings.Contains(string(script), "'"+k.name+"'") {
			t.Errorf("the page has no %s", k.name)
		}
	}
}

// listener is an end that notes which links it hears of.
type listener struct{ heard []int }

func (l *listener) begin(int) error { return nil }
func (l *listener) hear(link int, _ pairing.Signal) error {
	l.heard = append(l.heard, link)
	return nil
}
func (l *listener) run(job)        {}
func (l *listener) drop(int) error { return nil }
func (l *listener) close() error   { return nil }

// TestALinkThatHasEndedHearsNoMore: a browser's last candidate may be on its way when the link is dropped.
func TestALinkThatHasEndedHearsNoMore(t *testing.T) {
	heard := &listener{}
	c := &child{setup: setup{Name: 1}, out: bench.NewWriter(io.Discard), end: heard, dropped: map[int]bool{}, to: map[int]int{}}
	if err := c.do(message{Type: "drop", Link: 5}); err != nil {
		t.Fatal(err)
	}
	c.listen(strings.NewReader(`{"link":5,"signal":{}} {"link":6,"signal":{}}`))
	if !slices.Equal(heard.heard, []int{6}) {
		t.Errorf("heard of links %v", heard.heard)
	}
}
