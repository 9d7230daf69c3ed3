package swarmbench

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestWindowsComeOneAfterTheOtherAndStay(t *testing.T) {
	plans := Trace(1, 10, filmLength, 0, 0)
	lines := map[string]int{}
	windows(plans)
	for i, p := range plans {
		lines[p.Line.Name]++
		if p.Arrive != time.Duration(i)*windowsApart || !p.Browser || p.SeekAfter+p.LeaveAfter != 0 {
			t.Errorf("window %d: %+v", i, p)
		}
	}
	if lines["5/1"] != 3 || lines["20/5"] != 4 || lines["100/40"] != 3 {
		t.Errorf("lines: %v", lines)
	}
}

// TestTheOtherProgramsTrafficIsThePages: the page tells what the other program counted, and what the player got of no one's counting came
// from the origin.
func TestTheOtherProgramsTrafficIsThePages(t *testing.T) {
	proxy := newPage(nil, "", 0, 0, "")
	if err := proxy.hear(strings.NewReader(`{"bytes":1000,"given":["/0.ts"],"rival":{"http":100,"p2p":600,"uploaded":5}}`)); err != nil {
		t.Fatal(err)
	}
	outcome := proxy.last.outcome(Plan{Browser: true}, false)
	s := outcome.Stats
	if s.Bytes["origin"] != 400 || s.Bytes["peer"] != 600 || s.Uploaded["direct"] != 5 || len(outcome.Given) != 1 {
		t.Errorf("%+v", outcome)
	}
}

// received is a swarm of two viewers that had half of the bytes each, and one of whose ten segments both played. The origin was asked so often.
func received(peer, origin, requests, latency int64) Swarm {
	var paths []string
	for i := range 10 {
		paths = append(paths, fmt.Sprintf("/%d.ts", i))
	}
	stats := signal.Stats{Bytes: map[string]int64{"peer": peer / 2, "origin": origin / 2}, StartupMs: 700}
	return Swarm{
		Outcomes: []Outcome{{Stats: stats, LatencyMs: latency, Given: paths[:6]}, {Stats: stats, LatencyMs: latency, Given: paths[5:]}},
		Served:   Served{OriginToViewers: origin, Requests: requests},
	}
}

func TestTheOtherProgramIsMeasuredAsOursIs(t *testing.T) {
	got := compareRival(received(600, 400, 12, 6000), received(0, 1000, 40, 5900), received(500, 500, 14, 9900))
	for name, want := range map[string]float64{
		"offload_ratio_vs_rival": 1.2, "offload_ratio_rival": 0.5, "origin_bytes_rival": 500, "viewer_bytes_rival": 1000, "startup_delay_rival": 0.7,
		"origin_requests_per_segment": 1.2, "origin_requests_per_segment_rival": 1.4, "origin_requests_per_segment_origin_only": 4,
		"lag_seconds_rival": 9.9, "lag_added_seconds_rival": 4,
	} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	declared := declaredRival(rivalled)
	for name := range got {
		if !slices.ContainsFunc(declared, func(f bench.Figure) bool { return f.Name == name }) {
			t.Errorf("%s is not declared", name)
		}
	}
}

// TestGoalsOfCasesAreOfFigures: a goal of a figure that there is not would be met by silence.
func TestGoalsOfCasesAreOfFigures(t *testing.T) {
	for _, goals := range []map[string]string{rivalled, rivalledUnsigned, rivalledLive} {
		c := scenario{rival: true, goals: goals, live: &show{}}.of("any", "")
		for name := range goals {
			if !slices.ContainsFunc(c.Figures, func(f bench.Figure) bool { return f.Name == name && f.Goal != "" }) {
				t.Errorf("%s is no figure", name)
			}
		}
		if c.Needs == nil {
			t.Error("nothing is needed")
		}
	}
}

// answering is a transport that answers each request by itself.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func TestTheOriginsLedgerSaysHowOftenItWasAsked(t *testing.T) {
	site := &demosite.Site{Addr: netip.MustParseAddr("192.0.2.1"), Client: &http.Client{
		Transport: answering(`{"requests":{"seed":9},"segments":{"/a.ts":{"viewer":2,"seed":1},"/b.ts":{"viewer":1}}}`),
	}}
	if requests, err := (&servers{Site: site}).asked(); err != nil || requests != 4 {
		t.Errorf("%d requests, %v", requests, err)
	}
	site.Client.Transport = answering("what?")
	if _, err := (&servers{Site: site}).asked(); err == nil {
		t.Error("no ledger, and no error")
	}
}
