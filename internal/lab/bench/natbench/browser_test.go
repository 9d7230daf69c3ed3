package natbench

import (
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// A page says what a headless viewer says, or is not heard.
func TestAPageSaysWhatAHeadlessViewerSays(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	w := &watcher{}
	front := httptest.NewServer(telling((&net.Dialer{}).DialContext, "192.0.2.1:1", "row 1", w.hear))
	t.Cleanup(front.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for body, want := range map[string]int{
		`{"watched_ms":100,"linked":{"viewer/relay":1},"links_closed":{"stalled":2},"stats":{"bytes":{"peer_relay":7},"link_failures":{"timeout":1}}}`: http.StatusOK,
		`{"watched_ms":0.5}`:          http.StatusBadRequest,
		`{"watched_ms":100,"seen":1}`: http.StatusBadRequest, // nothing that would go by unread
		`{"stats":{"relay_bytes":1}}`: http.StatusBadRequest,
		`no report`:                   http.StatusBadRequest,
	} {
		response, err := client.Post(front.URL+"/bench/told", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s", body, response.Status)
		}
	}
	if said, _ := w.all(); len(said) != 1 || wayOf(said[0]) != byRelay || closes(said[0]) != 2 || failures(said) != 1 || w.last().Stats.Bytes["peer_relay"] != 7 {
		t.Errorf("%+v", said)
	}
}

// The names in the script are those of the summary, so that the above does not first come out in a lab.
func TestThePageUsesTheNamesOfTheSummary(t *testing.T) {
	_, text, _ := strings.Cut(pageScript, "const summary")
	_, text, _ = strings.Cut(text, "return {")
	text, _, _ = strings.Cut(text, "\n    };")
	outer, inner, ok := strings.Cut(text, "stats: {")
	if !ok {
		t.Fatal("the script has no summary")
	}
	key := regexp.MustCompile(`(?m)^\s+(\w+)[:,]`)
	for body, of := range map[string]reflect.Type{outer + "stats: 0": reflect.TypeFor[viewer.Summary](), inner: reflect.TypeFor[signal.Stats]()} {
		known := map[string]bool{}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			known[name] = true
		}
		found := key.FindAllStringSubmatch(body, -1)
		if len(found) < 5 {
			t.Errorf("%d names of %v; the script is not what it was", len(found), of)
		}
		for _, m := range found {
			if !known[m[1]] {
				t.Errorf("%v has no %s", of, m[1])
			}
		}
	}
}

func TestRowsWithBrowsers(t *testing.T) {
	names, has := map[string]bool{}, map[ends]map[way]bool{}
	for _, r := range append(browserRows, rows...) {
		if names[r.name()] {
			t.Errorf("there are two rows %s", r.name())
		}
		names[r.name()] = true
		if has[r.by] == nil {
			has[r.by] = map[way]bool{}
		}
		has[r.by][r.want.way] = true
		if r.forgets && (r.b == public || r.b == six) {
			t.Errorf("%s: its newcomer has no NAT", r.name())
		}
	}
	for _, by := range []ends{chromiumFirst, chromiumNewcomer, chromiumBoth} {
		if !has[by][direct] || !has[by][byRelay] {
			t.Errorf("%s: %v", by, has[by])
		}
	}
	if !has[chromiumBoth][seedOnly] || !has[chromiumBoth][originOnly] || has[headlessBoth] == nil {
		t.Errorf("%v", has)
	}
	for _, r := range append(browserRows, rows...) { // a row that weighs more than there is room for would wait for ever
		if n := r.weight(); n > atOnce || (n > 1) != (r.by != headlessBoth) {
			t.Errorf("%s weighs %d", r.name(), n)
		}
	}
}

func TestWhatMakesARowGood(t *testing.T) {
	bytes := func(peer, relay int64) viewer.Summary {
		return viewer.Summary{Stats: signal.Stats{Bytes: map[string]int64{"peer": peer, "peer_relay": relay}}}
	}
	for name, c := range map[string]struct {
		v    verdict
		good bool
	}{
		"as expected":              {verdict{row: row{want: relays}, got: relays}, true},
		"another reason":           {verdict{row: row{want: alone}, got: result{way: originOnly}}, false},
		"links lost with mappings": {verdict{row: row{want: meets, forgets: true}, got: meets, lost: 1}, false},
		"hidden, by the relay":     {verdict{row: row{want: relays, hidden: true}, got: relays, newcomer: bytes(0, 9)}, true},
		"hidden, and nothing came": {verdict{row: row{want: relays, hidden: true}, got: relays, newcomer: bytes(0, 0)}, false},
		"hidden, and seen":         {verdict{row: row{want: relays, hidden: true}, got: relays, newcomer: bytes(1, 9)}, false},
	} {
		if c.v.good() != c.good {
			t.Errorf("%s: good is %v", name, !c.good)
		}
	}
	offload := func(want result) float64 {
		return figures([]verdict{{row: row{want: want}, newcomer: viewer.Summary{Offload: 0.25}}}).Values["relay_as_offload"]
	}
	if offload(meets) != 0 || offload(relays) != 0.25 {
		t.Errorf("offload of direct links %g, of relays %g", offload(meets), offload(relays))
	}
}
