package swarmbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

// site is servers with a page and a socket at the same place, as those of the project have them.
func site(t *testing.T) (proxy *page, address string) {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case websocket.IsWebSocketUpgrade(r):
			conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer conn.Close()
			_, b, _ := conn.ReadMessage()
			_ = conn.WriteMessage(websocket.TextMessage, append(b, " "+r.Header.Get("Origin")...))
		case r.URL.Path == "/":
			_, _ = io.WriteString(w, "<html><head><title>t</title></head></html>")
		case r.URL.Path == "/none":
			http.NotFound(w, r)
		default:
			_, _ = fmt.Fprintf(w, "<head>%s %s", r.URL.Path, r.Header.Get("Range"))
		}
	}))
	t.Cleanup(behind.Close)
	proxy = newPage((&net.Dialer{}).DialContext, strings.TrimPrefix(behind.URL, "http://"), 1500_000_000, 0.5, "<!-- another -->")
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return proxy, strings.TrimPrefix(front.URL, "http://")
}

func fetch(t *testing.T, request *http.Request) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

func TestThePageTellsAndEverythingElseIsPassedOn(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	_, address := site(t)
	get := func(path string) *http.Request {
		r, _ := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		r.Header.Set("Range", "bytes=1-2")
		return r
	}
	index := fetch(t, get("/?leeway=off"))
	for _, want := range []string{"200 <html><head><style>", `<script data-leave="1500" data-busy="0.5">`, "/bench/told", "</script><!-- another --><title>t</title></head></html>"} {
		if !strings.Contains(index, want) {
			t.Errorf("the page lacks %q:\n%s", want, index)
		}
	}
	if got, want := fetch(t, get("/media/a.ts")), "200 <head>/media/a.ts bytes=1-2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fetch(t, get("/none")); !strings.HasPrefix(got, "404 ") {
		t.Errorf("what is not there: %q", got)
	}
}

// The tracker's socket is at the place of the page.
func TestTheSocketIsPassedOn(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	_, address := site(t)
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+address+"/", http.Header{"Origin": {"http://page.test"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, b, err := conn.ReadMessage(); err != nil || string(b) != "hello http://page.test" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestTheLastReportCounts(t *testing.T) {
	proxy, address := site(t)
	post := func(body string) string {
		r, _ := http.NewRequest(http.MethodPost, "http://"+address+"/bench/told", strings.NewReader(body))
		return fetch(t, r)
	}
	for _, body := range []string{`{"demo":{"stalls":1}}`, `{"demo":{"stalls":2}}`} {
		if got := post(body); got != "200 " {
			t.Error(got)
		}
	}
	if proxy.last.Demo.Stalls != 2 || len(proxy.told) != 0 {
		t.Errorf("%+v, %d ends", proxy.last, len(proxy.told))
	}
	post(`{"ended":"left","demo":{"stalls":3}}`)
	post(`{"ended":"end"}`)
	if said := <-proxy.told; said.Ended != "left" || said.Demo.Stalls != 3 {
		t.Errorf("%+v", said)
	}
	if got := post("what"); !strings.HasPrefix(got, "400 ") {
		t.Error(got)
	}
}

func TestReportInTermsOfTheHeadless(t *testing.T) {
	const text = `{"ended":"left","bytes":1000,
		"demo":{"startup_ms":612.5,"stalls":1,"stall_ms":250.4,"played_ms":9000.9,"played_bits":12345678.5,"switches":2,"notices":[{"code":"x"}]},
		"leeway":{"self":"ab","titles":[{"totals":{"bytes":{"origin":100,"seed":200,"peer":300},"uploaded":{"direct":5},"reasons":{"urgent":2},"duplicate_bytes":7}}]}}`
	var r report
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&r); err != nil {
		t.Fatal(err)
	}
	o := r.outcome(Plan{Browser: true}, false)
	s := o.Stats
	// 400 bytes came before the library did: from the origin.
	if s.Bytes["origin"] != 500 || s.Bytes["peer"] != 300 || s.Uploaded["direct"] != 5 || s.Reasons["urgent"] != 2 || s.DuplicateBytes != 7 {
		t.Errorf("%+v", s)
	}
	if s.StartupMs != 612 || s.Stalls != 1 || s.StallMs != 250 || s.PlayedMs != 9000 || s.PlayedBits != 12345678 || s.Switches != 2 {
		t.Errorf("%+v", s)
	}
	if o.Session != "ab" || len(o.Notices) != 1 || o.Plan.mark() != "c" {
		t.Errorf("%+v", o)
	}
	r.Leeway = nil
	if s := r.stats(); s.Bytes["origin"] != 1000 || s.PlayedMs != 9000 {
		t.Errorf("without the library: %+v", s)
	}
}
