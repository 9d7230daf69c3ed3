package joinbench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// deaf takes everything: a socket, its events, a link and its events.
type deaf struct{ viewer.OfferedLink }

func (deaf) Send([]byte)                  {}
func (deaf) SendControl([]byte)           {}
func (deaf) Opened()                      {}
func (deaf) Message([]byte)               {}
func (deaf) Lost()                        {}
func (deaf) Close()                       {}
func (deaf) Candidate(transfer.Candidate) {}
func (deaf) Open()                        {}
func (deaf) Control([]byte)               {}
func (deaf) Data([]byte)                  {}
func (deaf) Drain()                       {}
func (deaf) Closed(peer.CloseReason)      {}

// Offer implements viewer.Links.
func (deaf) Offer(viewer.LinkSettings, transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	return linkOnly{}, transfer.Description{SDP: "an offer", Plan: peer.DefaultPlan}, nil
}

// Answer implements viewer.Links.
func (deaf) Answer(viewer.LinkSettings, transfer.Description, transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return nil, transfer.Description{}, nil
}

type linkOnly struct{ viewer.OfferedLink }

func (linkOnly) SendControl([]byte) {}

// walk plays a viewer's way to its first piece, and returns what sends it data.
func walk(t *testing.T, tl *timeline, shown []byte) func(data []byte) {
	t.Helper()
	encode := func(m signal.Message) []byte {
		b, err := signal.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	control := func(m peer.Message) []byte {
		b, err := peer.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	socket, events := tracedSocket{deaf{}, tl}, heard{deaf{}, tl}
	socket.Send(encode(&signal.Hello{Version: 1, Client: "test"}))
	link, offer, err := tracedLinks{deaf{}, tl}.Offer(viewer.LinkSettings{}, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	plan := &signal.Plan{V: 1, Data: 2, Message: 16384}
	socket.Send(encode(&signal.Join{Request: 1, Title: "/t", Role: "full", Offers: []signal.Offer{{Link: signal.ID{7}, SDP: offer.SDP, Plan: plan}}}))
	events.Message(encode(&signal.Signal{Swarm: signal.ID{1}, From: signal.ID{2}, Role: "viewer", Link: signal.ID{7}, Kind: "answer", SDP: "an answer", Plan: plan}))
	l := tl.links[0]
	l.Open()
	l.Control(control(peer.Hello{MinVersion: 1, MaxVersion: 1, MaxRequests: 1}))
	l.Control(control(peer.Have{Entries: []peer.HaveEntry{{Segment: segment.ID{9}, State: peer.HoldsComplete, Pieces: 1}}}))
	link.SendControl(control(peer.CertificateRequest{Segments: []segment.ID{{9}}}))
	link.SendControl(control(peer.Request{Segment: segment.ID{9}, Requests: []peer.PieceRequest{{ID: 5, Piece: 0}}}))
	l.Control(control(peer.Certificate{Segment: segment.ID{9}, Raw: shown}))
	return func(data []byte) {
		b, err := peer.Append(nil, peer.Data{Request: 5, Payload: data})
		if err != nil {
			t.Fatal(err)
		}
		l.Data(b)
	}
}

func certified(t *testing.T, data []byte) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	raw, err := certificate.Issue(nil, key, certificate.Certificate{
		IssuedAt: now, NotAfter: now.Add(time.Hour), ObjectLength: int64(len(data)), Length: int64(len(data)),
		Site: "test", Name: "/t/1.ts", Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTheFirstPieceThatMatchesEndsTheTimeline(t *testing.T) {
	good := []byte("a short segment")
	tl := newTimeline(0)
	walk(t, tl, certified(t, good))([]byte("a wrong segment"))
	select {
	case <-tl.done:
		t.Fatal("a piece that differs counts")
	default:
	}
	tl = newTimeline(0)
	walk(t, tl, certified(t, good))(good)
	values, err := tl.result(t.Context(), 100*time.Millisecond, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for _, leg := range []string{"join", "offer", "answer", "open", "peer_hello", "have", "request", "piece"} {
		at, ok := values[leg]
		if !ok || at < 0 {
			t.Errorf("%s: %v, %v", leg, at, ok)
		}
		last = max(last, at)
	}
	if values["piece"] != last || values["round_trips"] != last/100 {
		t.Errorf("%v", values)
	}
	if text := tl.String(); !strings.Contains(text, "viewer:") || !strings.Contains(text, "certificate_request") {
		t.Error(text)
	}
}

func TestABrowsersWayIsToldFromItsHello(t *testing.T) {
	data := []byte("a short segment")
	told := &told{
		Session: map[string]float64{"hello": 1000, "welcome": 1100, "join": 1700, "joined": 1800},
		Link:    map[string]any{"role": "seed", "offer": 1810.0, "answer": 2010.0, "open": 2410.0, "piece": 2700.0},
		Piece:   data, Certificate: certified(t, data),
	}
	values, err := told.values(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for leg, want := range map[string]float64{
		"welcome": 100, "waited": 600, "join": 100, "joined": 200, "offer": 210, "answer": 410, "open": 810, "piece": 1100, "round_trips": 11,
	} {
		if values[leg] != want {
			t.Errorf("%s: %v, expected %v", leg, values[leg], want)
		}
	}
	told.Piece = []byte("a wrong segment")
	if _, err := told.values(time.Millisecond); err == nil {
		t.Error("a piece that differs is taken")
	}
}

// TestTheScriptIsPutIntoThePageAlone has the browser's proxy pass everything else on as it is.
func TestTheScriptIsPutIntoThePageAlone(t *testing.T) {
	const body = "<html><head></head></html>"
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	defer origin.Close()
	said := make(chan *told, 1)
	proxy := httptest.NewServer(page((&net.Dialer{}).DialContext, strings.TrimPrefix(origin.URL, "http://"), "viewer", said))
	defer proxy.Close()
	for path, want := range map[string]string{"/": `<html><head><script data-from="viewer">` + pageScript + "</script></head></html>", "/a.ts": body} {
		response, err := http.Get(proxy.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %.60q, %v", path, got, err)
		}
	}
	for _, said := range []string{`{"number":3}`, `{"number":4}`, `no report`} {
		response, err := http.Post(proxy.URL+"/bench/told", "application/json", strings.NewReader(said))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if first := <-said; first.Number != 3 {
		t.Errorf("%+v is not the first report", first)
	}
}

func TestEveryLegIsAFigure(t *testing.T) {
	for _, c := range Bench.Cases {
		has := map[string]bool{}
		for _, f := range c.Figures {
			has[f.Name] = true
		}
		for _, leg := range append([]string{"round_trips"}, legs...) {
			if !has[leg] {
				t.Errorf("%s: no figure %s", c.Name, leg)
			}
		}
	}
}
