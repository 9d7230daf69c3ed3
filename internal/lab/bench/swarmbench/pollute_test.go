package swarmbench

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// wire takes what is sent, unless it is full.
type wire struct {
	transfer.Link
	full bool
	got  [][]byte
}

func (w *wire) SendData(b []byte) bool {
	if !w.full {
		w.got = append(w.got, bytes.Clone(b))
	}
	return !w.full
}

func (w *wire) Accept(transfer.Description) error { return nil }

// wires makes links that are wires.
type wires struct{ last *wire }

func (w *wires) Offer(viewer.LinkSettings, transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	w.last = &wire{}
	return w.last, transfer.Description{}, nil
}

func (w *wires) Answer(viewer.LinkSettings, transfer.Description, transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	w.last = &wire{}
	return w.last, transfer.Description{}, nil
}

func TestPollutersSendWhatTheyAreToSend(t *testing.T) {
	honest := []byte("header and payload")
	wrong := append(bytes.Clone(honest[:len(honest)-1]), honest[len(honest)-1]^1)
	const messages = 21
	for kind, want := range map[string]struct{ sent, wrong int }{
		polluteAll: {messages, messages}, polluteSome: {messages, messages / seldom}, polluteSilent: {1, 1},
	} {
		for _, offered := range []bool{true, false} {
			under := &wires{}
			links := pollution(kind)(under)
			var link transfer.Link
			if offered {
				link, _, _ = links.Offer(viewer.LinkSettings{}, nil)
			} else {
				link, _, _ = links.Answer(viewer.LinkSettings{}, transfer.Description{}, nil)
			}
			under.last.full = true
			if link.SendData(honest) {
				t.Errorf("%s: a full line took something", kind)
			}
			under.last.full = false
			for range messages {
				if !link.SendData(honest) {
					t.Errorf("%s: refused", kind)
				}
			}
			bad := 0
			for _, b := range under.last.got {
				if bytes.Equal(b, wrong) {
					bad++
				} else if !bytes.Equal(b, honest) {
					t.Errorf("%s sent %q", kind, b)
				}
			}
			if len(under.last.got) != want.sent || bad != want.wrong {
				t.Errorf("%s: %d sent, %d of them wrong, want %+v", kind, len(under.last.got), bad, want)
			}
		}
		if string(honest) != "header and payload" {
			t.Fatalf("%s changed what is the sender's", kind)
		}
	}
	if pollution("") != nil {
		t.Error("an honest viewer has something between it and its links")
	}
}

func TestPollutersHaveTheirShare(t *testing.T) {
	for seed := range uint64(20) {
		plans := Trace(seed, 20, time.Minute, time.Minute, 0)
		pollute(plans, seed, 0.3)
		count := map[string]int{}
		for _, p := range plans {
			count[p.Pollutes]++
		}
		if count[""] != 14 || count[polluteAll] != 2 || count[polluteSome] != 2 || count[polluteSilent] != 2 {
			t.Fatalf("seed %d: %v", seed, count)
		}
		if plans[0].Pollutes != "" || plans[1].Pollutes != "" {
			t.Errorf("seed %d: the swarm begins with a polluter", seed)
		}
	}
}

func TestBlame(t *testing.T) {
	s := Swarm{Outcomes: []Outcome{
		{Session: "a", Banned: []string{"x", "b"}, Stats: signal.Stats{StartupMs: 1}},
		{Session: "b", Banned: []string{"x"}, Stats: signal.Stats{StartupMs: 1}},
		{Session: "x", Banned: []string{"a"}, Plan: Plan{Pollutes: polluteAll}, Failed: true, Stats: signal.Stats{Stalls: 5}},
		{Session: "y", Plan: Plan{Pollutes: polluteAll}},
	}}
	if honest, polluters, found := s.blame(); honest != 1 || polluters != 2 || found != 1 {
		t.Errorf("%d honest blamed, %d polluters, %d found", honest, polluters, found)
	}
	if s.failed() != 0 || s.sum().Stalls != 0 {
		t.Error("what polluters see counts")
	}
}

// TestWrongBytesAreSeen holds what was played against an origin.
func TestWrongBytesAreSeen(t *testing.T) {
	film := []byte("0123456789")
	asked := 0
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/a.ts" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "a.ts", time.Time{}, bytes.NewReader(film))
	}))
	defer origin.Close()
	s := &servers{Site: &demosite.Site{Client: origin.Client()}}
	whole, wrong := given(origin.URL+"/a.ts", "01234", "56789"), given(origin.URL+"/a.ts", "01234", "56780")
	part := given(origin.URL+"/a.ts", "345")
	part.Ranged, part.First, part.Last = true, 3, 5
	outcomes := []Outcome{{Played: []played{whole, part}}, {Played: []played{whole}}}
	if n, err := s.wrongBytes(outcomes, nil); err != nil || n != 0 {
		t.Errorf("%d wrong bytes, %v", n, err)
	}
	if asked != 2 {
		t.Errorf("the origin was asked %d times for two things", asked)
	}
	if n, err := s.wrongBytes(slices.Concat(outcomes, []Outcome{{Played: []played{wrong}}}), nil); err != nil || n != 10 {
		t.Errorf("%d wrong bytes, %v; want 10", n, err)
	}
	if _, err := s.wrongBytes([]Outcome{{Played: []played{given(origin.URL+"/b.ts", "x")}}}, nil); err == nil {
		t.Error("what the origin does not have counts as right")
	}
}

// given is a segment as a player got it.
func given(url string, pieces ...string) played {
	r := &viewer.Result{Reference: viewer.Reference{URL: url}}
	for _, p := range pieces {
		r.Pieces = append(r.Pieces, []byte(p))
	}
	return witness(r)
}
