package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// stopFor asks as the demo's page does, but for the headers that are given.
func stopFor(t *testing.T, page, query string, headers ...string) (code int, state outageState, text string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, page+"/demo/outage?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", page)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(b, &state)
	return answer.StatusCode, state, string(b)
}

// dialTracker opens a socket as the page does.
func dialTracker(page string) (*websocket.Conn, error) {
	d := websocket.Dialer{Subprotocols: []string{signal.Subprotocol}}
	ws, answer, err := d.Dial(strings.Replace(page, "http", "ws", 1)+"/", http.Header{"Origin": {page}})
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	return ws, err
}

// waitFor waits for something to hold.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestTheTrackerOfADemoGoesAndComesBack: its sockets end without a word, new ones get no answer, page and film stay; then another
// tracker answers at the same address.
func TestTheTrackerOfADemoGoesAndComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startUp(t, "--media="+testkit.TinyFilm(t))
	defer func() { _ = r.stop() }()
	ws, err := dialTracker(r.page)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if code, state, text := stopFor(t, r.page, "service=tracker&seconds=60"); code != http.StatusAccepted || state.Service != "tracker" || state.LeftMs <= 0 {
		t.Fatalf("%d %s", code, text)
	}
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, _, err = ws.ReadMessage()
	var closed *websocket.CloseError
	if err == nil || errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		t.Errorf("the socket ended with %v, want no farewell", err)
	}
	if _, err := dialTracker(r.page); err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a socket while the tracker is away: %v", err)
	}
	if code, text := fetch(t, "GET", r.admin+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "demo page") {
		t.Errorf("readyz: %d %s", code, text)
	}
	if code, text := fetch(t, "GET", r.page+"/"); code != 200 || !strings.Contains(text, `name="demo-outages" content="yes"`) {
		t.Errorf("the page: %d", code)
	}
	if code, state, _ := stopFor(t, r.page, "service=seed"); code != http.StatusConflict || state.Service != "tracker" {
		t.Errorf("two at a time: %d %+v", code, state)
	}
	if err := r.stop(); err != nil {
		t.Errorf("stopped while the tracker was away: %v", err)
	}

	r = startUp(t, "--media="+testkit.TinyFilm(t))
	defer func() { _ = r.stop() }()
	if code, _, text := stopFor(t, r.page, "service=tracker&seconds=1"); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, text)
	}
	waitFor(t, "the tracker is back", func() bool {
		ws, err := dialTracker(r.page)
		if err != nil {
			return false
		}
		_ = ws.Close()
		return true
	})
	if _, ok := greetingOf(t, strings.TrimPrefix(r.page, "http://"), r.page, "").(*signal.Welcome); !ok {
		t.Error("the new tracker does not welcome")
	}
	waitFor(t, "ready again", func() bool { code, _ := fetch(t, "GET", r.admin+"/readyz"); return code == 200 })
	if _, text := fetch(t, "GET", r.admin+"/metrics"); !strings.Contains(text, `leeway_demo_outages_total{service="tracker"} 1`) {
		t.Error("the outage is not counted")
	}
}

// TestTheSeedOfADemoGoesAndComesBack: its UDP port is free meanwhile, and its own again afterwards.
func TestTheSeedOfADemoGoesAndComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startUp(t, "--media="+testkit.TinyFilm(t))
	defer func() { _ = r.stop() }()
	address := regexp.MustCompile(`seed\s+(\S+)/udp`).FindStringSubmatch(r.out.String())[1]
	if socket, err := net.ListenPacket("udp", address); err == nil {
		_ = socket.Close()
		t.Fatalf("the seed does not listen on %s", address)
	}
	if code, state, text := stopFor(t, r.page, "service=seed&seconds=1"); code != http.StatusAccepted || state.Service != "seed" {
		t.Fatalf("%d %s", code, text)
	}
	// On a slow machine it may be back already: then the counter and the log are what is left to see.
	if socket, err := net.ListenPacket("udp", address); err == nil {
		_ = socket.Close()
	} else if _, text := fetch(t, "GET", r.page+"/demo/outage"); strings.Contains(text, `"seed"`) {
		t.Errorf("the port of a seed that is away: %v", err)
	}
	waitFor(t, "the seed is back", func() bool {
		_, text := fetch(t, "GET", r.page+"/demo/outage")
		return strings.Contains(text, `"service":""`)
	})
	if socket, err := net.ListenPacket("udp", address); err == nil {
		_ = socket.Close()
		t.Errorf("the seed is not back on %s", address)
	}
	waitFor(t, "ready again", func() bool { code, _ := fetch(t, "GET", r.admin+"/readyz"); return code == 200 })
}

// TestOnlyTheDemosPageStopsServices: no page of another site, none under a name that was pointed here, no program of another machine, and
// nothing that came through a proxy.
func TestOnlyTheDemosPageStopsServices(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := startUp(t, "--media="+testkit.TinyFilm(t))
	defer func() { _ = r.stop() }()
	_, port, _ := strings.Cut(strings.TrimPrefix(r.page, "http://"), ":")
	for name, c := range map[string]struct {
		query   string
		headers []string
		want    int
	}{
		"another site's page":  {"service=tracker", []string{"Origin", "https://evil.example"}, 403},
		"no origin":            {"service=tracker", []string{"Origin", ""}, 403},
		"an opaque origin":     {"service=tracker", []string{"Origin", "null"}, 403},
		"another port's page":  {"service=tracker", []string{"Origin", "http://127.0.0.1:1"}, 403},
		"a rebound name":       {"service=tracker", []string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port}, 421},
		"through a proxy":      {"service=tracker", []string{"X-Forwarded-For", "192.0.2.1"}, 403},
		"no such service":      {"service=bus", nil, 400},
		"longer than may be":   {"service=seed&seconds=61", nil, 400},
		"no number of seconds": {"service=seed&seconds=1e9", nil, 400},
	} {
		if code, _, text := stopFor(t, r.page, c.query, c.headers...); code != c.want {
			t.Errorf("%s: %d %s, want %d", name, code, text, c.want)
		}
	}
	if code, text := fetch(t, "GET", r.page+"/demo/outage"); code != 200 || !strings.Contains(text, `"may":true,"service":""`) {
		t.Errorf("%d %s", code, text)
	}
	_, text := fetch(t, "GET", r.admin+"/metrics")
	for reason, want := range map[string]string{"origin": "4", "host": "1", "machine": "1", "malformed": "3"} {
		if line := `leeway_demo_refused_outages_total{reason="` + reason + `"} ` + want; !strings.Contains(text, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	if code, text := fetch(t, "GET", r.admin+"/readyz"); code != 200 {
		t.Errorf("something was stopped: %d %s", code, text)
	}
}

// TestOnlyThisMachineIsTheDemos: what a program writes into headers does not make it one of this machine.
func TestOnlyThisMachineIsTheDemos(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080}
	for from, want := range map[string]bool{
		"127.0.0.1:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true, "192.0.2.7:5": true, "192.0.2.8:5": false, "[2001:db8::1]:5": false, "": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/demo/outage", nil)
		r.RemoteAddr = from
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		if got := (&outages{}).ownMachine(r); got != want {
			t.Errorf("from %q: %v", from, got)
		}
		if (&outages{proxied: true}).ownMachine(r) {
			t.Errorf("from %q, behind proxies", from)
		}
	}
}
