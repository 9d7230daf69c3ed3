package netcheck

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/tcpinfo"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// served is a probe server on loopback, with data channels unless blocked.
func served(t *testing.T, cfg probe.Config, data bool) *httptest.Server {
	t.Helper()
	bulk := wsconn.BulkConfig{Subprotocol: probe.Subprotocol, MaxMessage: probe.MaxMessage, Handshake: 10 * time.Second}
	cfg.Upgrade = func(w http.ResponseWriter, r *http.Request) (probe.Socket, error) { return bulk.Bulk(w, r) }
	cfg.Offers = func(r *http.Request) bool { return wsconn.OffersBulk(r, probe.Subprotocol) }
	cfg.Look, cfg.Mark = tcpinfo.Look, tcpinfo.Mark
	socket, err := qualitylink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, err := qualitylink.NewHost(socket)
	if err != nil {
		t.Fatal(err)
	}
	if data {
		cfg.Answer = func(a probe.Asked, events probe.LineEvents) (probe.Line, string, error) {
			line, answer, err := host.Answer(qualitylink.Asked{Offer: a.Offer, Client: a.Client, Reached: a.Reached, DSCP: a.DSCP}, events)
			if err != nil {
				return nil, "", err
			}
			return line, answer, nil
		}
	}
	s, err := probe.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ctx)
		web.Close()
		host.Close()
	})
	return web
}

// TestCheck measures the line of loopback with all phases.
func TestCheck(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	web := served(t, probe.Config{}, true)
	var seen atomic.Int32
	r, err := Run(t.Context(), Config{
		URL: web.URL, idle: 200 * time.Millisecond, Streams: 2, Duration: 2 * time.Second, Messages: 100, DSCP: []int{10, 46},
		Phases:   []Phase{Download, Upload, HTTP, Quality, Classes},
		Progress: func(p Progress) { seen.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		kind netstat.Kind
		way  netstat.Direction
	}{
		{netstat.Throughput, netstat.Down}, {netstat.Throughput, netstat.Up}, {netstat.BaselineRTT, netstat.Down}, {netstat.LoadedRTT, netstat.Down},
		{netstat.TCPEfficiency, netstat.Down}, {netstat.PathMTU, netstat.Down}, {netstat.Responsiveness, netstat.Down}, {netstat.Responsiveness, netstat.Up},
		{netstat.Jitter, netstat.Up}, {netstat.Jitter, netstat.Down}, {netstat.RoundTripTime, netstat.RoundTrip},
	} {
		if v, ok := r.Find(want.kind, want.way); !ok || v <= 0 {
			t.Errorf("%s %s: %v %v", want.kind.Name, want.way, v, ok)
		}
	}
	if v, ok := r.Find(netstat.Loss, ""); !ok || v > 0.5 {
		t.Errorf("loss %v %v", v, ok)
	}
	if len(r.HTTP) != 2 || r.HTTP[0].Value <= 0 || r.HTTP[1].Value <= 0 || len(r.Scores) != 3 || seen.Load() < 10 {
		t.Errorf("HTTP %v, scores %v, progress %d", r.HTTP, r.Scores, seen.Load())
	}
	if len(r.Classes) != 2 {
		t.Fatalf("classes %+v", r.Classes)
	}
	for i, dscp := range []int64{10, 46} {
		c := r.Classes[i]
		if int64(c.DSCP) != dscp || len(c.Up) != 1 || c.Up[0][0] != dscp || c.Up[0][1] < 100 || len(c.Down) != 1 || c.Down[0][0] != dscp {
			t.Errorf("class %+v", c)
		}
	}
}

// TestCheckThatGivesWay measures what is free of loopback each way, and a server that cannot is named.
func TestCheckThatGivesWay(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	web := served(t, probe.Config{}, true)
	var seen atomic.Int32
	r, err := Run(t.Context(), Config{URL: web.URL, idle: time.Millisecond, Duration: MinDuration, GivesWay: true, Progress: func(Progress) { seen.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Figures) != 2 || seen.Load() < 10 {
		t.Errorf("figures %+v, progress %d", r.Figures, seen.Load())
	}
	for _, d := range []netstat.Direction{netstat.Down, netstat.Up} {
		if v, ok := r.Find(netstat.FreeCapacity, d); !ok || v <= 0 {
			t.Errorf("%s: %v %v", d, v, ok)
		}
	}
}

// TestWhatIsRefusedSaysWhy: each answer of a server that is no result is a typed error with what to do.
func TestWhatIsRefusedSaysWhy(t *testing.T) {
	bad := errors.New("of another site")
	for name, c := range map[string]struct {
		cfg    probe.Config
		token  string
		phases []Phase
		gives  bool
		data   bool
		status int
		advice string
	}{
		"no token":                               {cfg: probe.Config{Authorize: func(string) error { return bad }}, status: 401, advice: "--token"},
		"a wrong token":                          {cfg: probe.Config{Authorize: func(string) error { return bad }}, token: "x", status: 403, advice: "new token"},
		"no bytes left":                          {cfg: probe.Config{DailyBytes: 1}, status: 429, advice: "come back in 3600 s"},
		"no place":                               {cfg: probe.Config{MaxTests: -1}, phases: []Phase{Download}, status: 503, advice: "come back in 15 s"},
		"bytes run out":                          {cfg: probe.Config{DailyBytes: 1 << 20}, phases: []Phase{Download}, status: 429, advice: "come back"},
		"nothing gives way":                      {phases: []Phase{Upload}, gives: true, status: 404, advice: "of this version"},
		"no data channels":                       {phases: []Phase{Quality}, status: 404, advice: "of this version"},
		"bytes run out in messages":              {cfg: probe.Config{DailyBytes: 300 << 10}, phases: []Phase{Quality}, data: true, status: 429, advice: "come back"},
		"bytes run out in a load that gives way": {cfg: probe.Config{DailyBytes: 300 << 10}, phases: []Phase{Download}, gives: true, data: true, status: 429, advice: "come back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			web := served(t, c.cfg, c.data)
			_, err := Run(t.Context(), Config{URL: web.URL, idle: time.Millisecond, Token: c.token, Duration: 2 * time.Second, Phases: append([]Phase{}, c.phases...), GivesWay: c.gives})
			var e *Error
			if !errors.As(err, &e) || e.Code != Refused || e.Status != c.status || !strings.Contains(err.Error(), c.advice) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAddressesOfTheOtherScheme: http where the server has TLS, and https where it has none.
func TestAddressesOfTheOtherScheme(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	plain := served(t, probe.Config{}, false)
	secure := httptest.NewTLSServer(plain.Config.Handler)
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for url, advice := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1): "begin the address with http://", strings.Replace(secure.URL, "https:", "http:", 1): "begin the address with https://",
	} {
		if _, err := Run(t.Context(), Config{URL: url, idle: time.Millisecond, Phases: []Phase{Download}}); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestServersThatAreNone: an address without a server, one with another, one that says nothing, and one that stops within a test.
func TestServersThatAreNone(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	_ = l.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer other.Close()
	real := served(t, probe.Config{}, false)
	stops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ndt") {
			bulk := wsconn.BulkConfig{Subprotocol: probe.Subprotocol, MaxMessage: probe.MaxMessage, Handshake: 10 * time.Second}
			if b, err := bulk.Bulk(w, r); err == nil {
				_ = b.Send(true, make([]byte, 1<<20))
				b.Close(false)
			}
			return
		}
		real.Config.Handler.ServeHTTP(w, r)
	}))
	defer stops.Close()
	for url, want := range map[string]Code{closed: Unreachable, other.URL: Refused, stops.URL: Stopped} {
		_, err := Run(t.Context(), Config{URL: url, idle: time.Millisecond, Duration: 2 * time.Second, Phases: []Phase{Download}})
		var e *Error
		if !errors.As(err, &e) || e.Code != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e *Error
	if _, err := Run(ctx, Config{URL: real.URL}); !errors.As(err, &e) || e.Code != Aborted {
		t.Errorf("aborted: %v", err)
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no scheme": {URL: "probe.example.com"}, "another scheme": {URL: "ws://probe.example.com"}, "too many sockets": {URL: "http://a", Streams: 65},
		"too short": {URL: "http://a", Duration: time.Millisecond}, "too long": {URL: "http://a", Duration: time.Minute}, "messages": {URL: "http://a", Messages: 16385},
		"dscp": {URL: "http://a", DSCP: []int{64}}, "five classes": {URL: "http://a", DSCP: []int{1, 2, 3, 4, 5}}, "classes without": {URL: "http://a", Phases: []Phase{Classes}},
		"a phase that does not give way": {URL: "http://a", GivesWay: true, Phases: []Phase{HTTP}}, "a mark with it": {URL: "http://a", GivesWay: true, DSCP: []int{1}},
		"phase": {URL: "http://a", Phases: []Phase{"x"}},
	} {
		var plan *PlanError
		if _, err := Run(t.Context(), cfg); !errors.As(err, &plan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAConnectionThatWentSilentIsNotWaitedFor: the figures of an upload are not those of the time until then.
func TestAConnectionThatWentSilentIsNotWaitedFor(t *testing.T) {
	l := &load{check: &check{Config: Config{Duration: 4 * time.Second}}, uploaded: []received{
		{series: series{{}, {Elapsed: 1_000_000, Bytes: 1000}}, heard: time.Second},
		{series: series{{}, {Elapsed: 4_000_000, Bytes: 8000}}, heard: 4 * time.Second},
	}}
	for now, want := range map[time.Duration]netstat.Count{
		1900 * time.Millisecond: {Elapsed: 1_000_000, Bytes: 3000}, 4 * time.Second: {Elapsed: 4_000_000, Bytes: 9000},
	} {
		if got := l.received(now); got[len(got)-1] != want {
			t.Errorf("after %v: %v, want %v at the end", now, got, want)
		}
	}
}

func TestTogether(t *testing.T) {
	long := series{{Elapsed: 0, Bytes: 0}, {Elapsed: 100, Bytes: 1000}, {Elapsed: 200, Bytes: 3000}}
	short := series{{Elapsed: 50, Bytes: 0}, {Elapsed: 150, Bytes: 500}}
	got := together([]received{{series: long}, {}, {series: short}})
	want := []netstat.Count{{Elapsed: 0, Bytes: 0}, {Elapsed: 50, Bytes: 500}, {Elapsed: 100, Bytes: 1250}, {Elapsed: 150, Bytes: 2500}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	want = append(want, netstat.Count{Elapsed: 200, Bytes: 3500})
	if got := together([]received{{series: long}, {series: short, ended: true}}); !reflect.DeepEqual(got, want) {
		t.Errorf("one has ended: %v", got)
	}
	if got := together([]received{{series: long, ended: true}, {series: short, ended: true}}); !reflect.DeepEqual(got, want) {
		t.Errorf("both have ended: %v", got)
	}
}
