package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

const (
	clientAt = "198.51.100.7:40000"
	serverAt = "192.0.2.1:4601"
)

// airWorld is a world whose server has data channels in the air.
type airWorld struct {
	*world
	air    *testkit.Air
	client *qualitylink.Host
}

// inAir runs a test against a server with data channels.
func inAir(t *testing.T, cfg Config, air *testkit.Air, test func(t *testing.T, w *airWorld)) {
	t.Helper()
	var server *qualitylink.Host
	cfg.Answer = func(a Asked, events LineEvents) (Line, string, error) {
		line, answer, err := server.Answer(qualitylink.Asked{Offer: a.Offer, Client: a.Client, Reached: a.Reached, DSCP: a.DSCP}, events)
		if blamed := (*qualitylink.DescriptionError)(nil); errors.As(err, &blamed) {
			err = &OfferError{err}
		}
		if err != nil {
			return nil, "", err
		}
		return line, answer, nil
	}
	inBubble(t, cfg, func(t *testing.T, w *world) {
		a := &airWorld{world: w, air: air}
		var err error
		if server, err = qualitylink.NewHost(air.Listen(serverAt)); err != nil {
			t.Fatal(err)
		}
		if a.client, err = qualitylink.NewHost(air.Listen(clientAt)); err != nil {
			t.Fatal(err)
		}
		test(t, a)
		a.client.Close()
		w.server.ended.Wait()
		server.Close()
	})
}

// post is what a client does with its offer.
func (w *airWorld) post(query string) netcheck.Signaler {
	return func(_ context.Context, offer string) (string, error) {
		body, _ := json.Marshal(signal{"offer", offer})
		response, got, err := w.request("POST", "/probe/v1/quality"+query, bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		var answer signal
		if err := json.Unmarshal(got, &answer); err != nil || response.StatusCode != 200 || answer.Type != "answer" {
			return "", fmt.Errorf("%s: %s", response.Status, got)
		}
		return answer.SDP, nil
	}
}

func (w *airWorld) line(query string, dscp int) (*netcheck.Line, error) {
	return netcheck.Dial(w.t.Context(), w.client, netip.MustParseAddrPort(clientAt).Addr(), dscp, w.post(query))
}

// planted is the fate of packets: a path with a delay, and what happens to messages by their place in the order of sending.
type planted struct {
	delay time.Duration
	size  int // bytes above which a packet has a message
	lost  map[netip.AddrPort][]int
	late  map[netip.AddrPort]map[int]time.Duration
	// others is the fate of packets without a message; nil: they arrive.
	others func() bool

	mu   sync.Mutex
	sent map[netip.AddrPort]int // guarded by mu
	on   bool                   // guarded by mu
}

func (p *planted) set(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

func (p *planted) fate(from, _ netip.AddrPort, b []byte) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on || len(b) < p.size {
		return p.delay, !p.on || p.others == nil || p.others()
	}
	n := p.sent[from]
	p.sent[from]++
	return p.delay + p.late[from][n], !slices.Contains(p.lost[from], n)
}

// TestQualityIsExact: what the records say of loss and order, each way and of echoes, is what was planted.
func TestQualityIsExact(t *testing.T) {
	client, server := netip.MustParseAddrPort(clientAt), netip.MustParseAddrPort(serverAt)
	const messages = 300
	p := &planted{
		delay: 25 * time.Millisecond, size: 700, sent: map[netip.AddrPort]int{},
		lost: map[netip.AddrPort][]int{client: {0, 10, 11, 12, 50, 299}, server: {7, 100, 101}},
		late: map[netip.AddrPort]map[int]time.Duration{
			client: {20: 12 * time.Millisecond, 200: 43 * time.Millisecond}, server: {60: 43 * time.Millisecond},
		},
	}
	inAir(t, Config{}, &testkit.Air{Fate: p.fate}, func(t *testing.T, w *airWorld) {
		l, err := w.line("", 0)
		if err != nil {
			t.Fatal(err)
		}
		p.set(true)
		results, err := l.Run(t.Context(), []quality.Run{
			{Stream: 1, Direction: quality.Up, Messages: messages, Interval: 5000, Size: 700},
			{Stream: 2, Direction: quality.Down, Messages: messages, Interval: 5000, Size: 700},
		})
		if err != nil {
			t.Fatal(err)
		}
		up, down := results[0].There.Pattern(), results[1].Here.Pattern()
		check(t, "up", up, []netstat.Period{{First: 0, Length: 1}, {First: 10, Length: 3}, {First: 50, Length: 1}, {First: 299, Length: 1}}, []int64{0, 10, 1, 1, 38, 249})
		check(t, "down", down, []netstat.Period{{First: 7, Length: 1}, {First: 100, Length: 2}}, []int64{0, 93, 1})
		if got := up.Reordered; len(got) != 2 || got[0].Sequence != 20 || got[0].Extent != 2 || got[1].Sequence != 200 || got[1].Extent != 8 {
			t.Errorf("up: reordered %+v", got)
		}
		if got := down.Reordered; len(got) != 1 || got[0].Sequence != 60 || got[0].Extent != 8 {
			t.Errorf("down: reordered %+v", got)
		}
		p.set(false)
		results, err = l.Run(t.Context(), []quality.Run{{Stream: 3, Direction: quality.Both, Messages: 50, Interval: 2000, Size: 100}})
		if err != nil {
			t.Fatal(err)
		}
		offset, ok := netstat.Clocks(results[0].Exchanges)
		if n := len(results[0].Exchanges); n != 50 || !ok || offset.Delay != 50_000 || results[0].Here.Pattern().Lost != 0 || len(results[0].There.Arrivals) != 50 {
			t.Errorf("%d echoes, clocks %+v", n, offset)
		}
		l.Close()
		w.ends(qualityTest, endComplete, 1)
		recorded, _ := w.server.recorded.Taken()
		halfOpen, _ := w.server.halfOpen.Taken()
		if recorded != 0 || halfOpen != 0 {
			t.Errorf("%d are recorded, half-open %d", recorded, halfOpen)
		}
		if got := w.metrics.Value(mBytes, "up"); got < messages*700 {
			t.Errorf("%v bytes up are counted", got)
		}
	})
}

func check(t *testing.T, way string, p netstat.Pattern, periods []netstat.Period, distances []int64) {
	t.Helper()
	if !reflect.DeepEqual(p.Periods, periods) || !reflect.DeepEqual(p.Distances, distances) || p.Duplicates != 0 || p.Foreign != 0 {
		t.Errorf("%s: periods %v distances %v, %d duplicates, %d foreign", way, p.Periods, p.Distances, p.Duplicates, p.Foreign)
	}
}

// TestAPathThatOnlyReordersLosesNothing: extents below a round trip.
func TestAPathThatOnlyReordersLosesNothing(t *testing.T) {
	client, server := netip.MustParseAddrPort(clientAt), netip.MustParseAddrPort(serverAt)
	p := &planted{delay: 20 * time.Millisecond, size: 700, sent: map[netip.AddrPort]int{}, late: map[netip.AddrPort]map[int]time.Duration{client: {}, server: {}}}
	for n := 5; n < 500; n += 7 {
		p.late[client][n], p.late[server][n] = 35*time.Millisecond, 38*time.Millisecond
	}
	inAir(t, Config{}, &testkit.Air{Fate: p.fate}, func(t *testing.T, w *airWorld) {
		l, err := w.line("", 0)
		if err != nil {
			t.Fatal(err)
		}
		p.set(true)
		results, err := l.Run(t.Context(), []quality.Run{
			{Stream: 1, Direction: quality.Up, Messages: 500, Interval: 2000, Size: 700},
			{Stream: 2, Direction: quality.Down, Messages: 500, Interval: 2000, Size: 700},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, pattern := range []netstat.Pattern{results[0].There.Pattern(), results[1].Here.Pattern()} {
			if pattern.Lost != 0 || len(pattern.Reordered) != len(p.late[client]) {
				t.Errorf("%d: %d lost, %d reordered of %d", i, pattern.Lost, len(pattern.Reordered), len(p.late[client]))
			}
		}
		l.Close()
	})
}

// TestMarks: the server sends with the DSCP that was asked for, and says which it has read.
func TestMarks(t *testing.T) {
	inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		l, err := w.line("?dscp=34", 46)
		if err != nil {
			t.Fatal(err)
		}
		results, err := l.Run(t.Context(), []quality.Run{{Stream: 1, Direction: quality.Up, Messages: 20, Interval: 1000, Size: 100}})
		if err != nil {
			t.Fatal(err)
		}
		if m := results[0].Marks; len(m) != 1 || m[0].DSCP != 46 || m[0].Packets < 20 {
			t.Errorf("marks %v", m)
		}
		l.Close()
		for _, bad := range []string{"64", "-1", "x"} {
			if _, err := w.line("?dscp="+bad, 0); err == nil || !strings.Contains(err.Error(), "400") {
				t.Errorf("dscp %s: %v", bad, err)
			}
		}
	})
}

// TestNDT7IsMarked: a test's connection sends with the DSCP that its client asks for.
func TestNDT7IsMarked(t *testing.T) {
	marked := make(chan int, 1)
	inBubble(t, Config{Mark: func(_ net.Conn, dscp int) error { marked <- dscp; return nil }}, func(t *testing.T, w *world) {
		b := w.must("/ndt/v7/download?dscp=46")
		if got := <-marked; got != 46 {
			t.Errorf("marked with %d", got)
		}
		b.Close(true)
		if _, err := w.open("/ndt/v7/upload?dscp=64"); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("a DSCP that is none: %v", err)
		}
		w.ends(ndt7Download, endClient, 1)
	})
}

// TestClientsOfTheDraftFindTheirTests: what the configuration names answers.
func TestClientsOfTheDraftFindTheirTests(t *testing.T) {
	inBubble(t, Config{Authorize: func(token string) error {
		if token != "good" {
			return errors.New("no")
		}
		return nil
	}}, func(t *testing.T, w *world) {
		response, got, err := w.request("GET", "/.well-known/nq?access_token=good", nil)
		if err != nil || response.StatusCode != 200 {
			t.Fatal(err, string(got))
		}
		var config struct {
			Version int
			URLs    map[string]string
		}
		if err := json.Unmarshal(got, &config); err != nil || config.Version != 1 || len(config.URLs) != 6 {
			t.Fatalf("%v: %s", err, got)
		}
		path := func(name string) string { return strings.TrimPrefix(config.URLs[name], "http://probe.test") }
		if response, got, err := w.request("GET", path("small_download_url"), nil); err != nil || response.StatusCode != 200 || len(got) != 1 {
			t.Errorf("small: %v %s", err, got)
		}
		if response, got, err := w.request("POST", path("upload_url"), strings.NewReader("four")); err != nil || response.StatusCode != 200 || !strings.Contains(string(got), `"bytes":4`) {
			t.Errorf("upload: %v %s", err, got)
		}
		if response, _, _ := w.request("HEAD", path("large_download_url"), nil); response == nil || response.StatusCode != 200 || response.ContentLength != 8e9 {
			t.Errorf("large: %+v", response)
		}
		if response, _, err := w.request("GET", "/.well-known/nq", nil); err != nil || response.StatusCode != 401 {
			t.Errorf("without a token: %v", err)
		}
	})
}
