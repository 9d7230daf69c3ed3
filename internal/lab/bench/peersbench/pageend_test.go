package peersbench

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// pageFor is a page's end without a browser: what it is told, and what it says, goes over HTTP as a browser's would.
func pageFor(t *testing.T) (e *pageEnd, server *httptest.Server, told chan message, signals chan pairing.Signal) {
	t.Helper()
	told, signals = make(chan message, 8), make(chan pairing.Signal, 8)
	e = newPage(host{
		setup: setup{Kind: kindPage, Channels: 2}, tell: func(m message) { told <- m }, say: func(_ int, s pairing.Signal) { signals <- s },
	}, []byte("a script"))
	server = httptest.NewServer(e.pages())
	t.Cleanup(server.Close)
	t.Cleanup(e.page.Close)
	return e, server, told, signals
}

func TestAPageIsOrderedInItsWords(t *testing.T) {
	e, server, _, _ := pageFor(t)
	described := pairing.Signal{Description: &transfer.Description{SDP: "theirs", Plan: peer.DefaultPlan}}
	for _, do := range []func() error{
		func() error { return e.begin(3) },
		func() error { return e.hear(3, described) },
		func() error { return e.hear(4, described) },
		func() error { return e.hear(4, pairing.Signal{Candidate: &transfer.Candidate{End: true}}) },
		func() error { return e.drop(3) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	e.run(job{Lanes: []lane{{4, 0}}, Bytes: 100, Item: 10, Ahead: 2})
	response, err := http.Get(server.URL + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i, want := range []string{
		`"type":"setup","link":0,"setup":{"ours":true,"channels":2`, `"type":"begin","link":3`, `"link":3,"body":{"kind":"answer","sdp":"theirs"`,
		`"link":4,"body":{"kind":"offer","sdp":"theirs"`, `"link":4,"body":{"kind":"end"`, `"type":"drop","link":3`,
		`"type":"job","link":0,"job":{"lanes":[{"link":4,"channel":0}],"bytes":100,"item":10,"ahead":2}`,
	} {
		for lines.Scan() && lines.Text() == "" {
			continue
		}
		if got := lines.Text(); !strings.Contains(got, want) {
			t.Errorf("order %d is %s, without %s", i, got, want)
		}
	}
}

func TestAPageTellsAndSignals(t *testing.T) {
	_, server, told, signals := pageFor(t)
	say := func(text string, status int) {
		t.Helper()
		response, err := http.Post(server.URL+"/said", "application/json", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != status {
			t.Fatalf("%s: %s", text, response.Status)
		}
	}
	say(`{"type":"ready"}`, http.StatusOK)
	if m := <-told; m.Type != "ready" {
		t.Errorf("%+v", m)
	}
	say(`{"type":"moment","link":7,"moment":{"what":"open","at":1500.25}}`, http.StatusOK)
	if m := <-told; m.Link != 7 || m.Moment == nil || *m.Moment != (moment{opened, 1500.25}) {
		t.Errorf("%+v", m)
	}
	say(`{"type":"done","done":{"ms":612.5}}`, http.StatusOK)
	if m := <-told; m.Done == nil || m.Done.MS != 612.5 {
		t.Errorf("%+v", m)
	}
	say(`{"type":"signal","link":1,"body":{"kind":"candidate","candidate":"candidate:7","sdp_mid":"0"}}`, http.StatusOK)
	if s := <-signals; s.Candidate == nil || s.Candidate.Candidate != "candidate:7" {
		t.Errorf("%+v", s)
	}
	say(`{"type":`, http.StatusBadRequest)
}

// TestTheTwinsSpeakTheSameWords: what the page is told and says is named in its source as here.
func TestTheTwinsSpeakTheSameWords(t *testing.T) {
	b, err := os.ReadFile(filepath.FromSlash("../../../../web/apps/bench/src/peers/parent.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		"'setup'", "'begin' | 'drop'", "'signal'", "'job'", "'ready'", "'moment'", "'done'", "'failed'",
		"'" + begun + "' | '" + answered + "' | '" + opened + "' | '" + usable + "'",
		"ours: boolean", "channels: number", "message: number", "buffer: number", "lanes: Lane[]", "bytes: number", "item: number", "ahead: number",
	} {
		if !strings.Contains(string(b), word) {
			t.Errorf("the page knows no %s", word)
		}
	}
}
