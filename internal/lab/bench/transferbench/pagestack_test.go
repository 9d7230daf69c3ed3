package transferbench

import (
	"bufio"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/procstat"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// said is what a stack's host was told.
type said struct {
	links   chan int
	signals chan signal
}

func pagesFor(t *testing.T, kind string) (*pageStack, *httptest.Server, said) {
	t.Helper()
	told := said{make(chan int, 8), make(chan signal, 8)}
	s := newPages(host{
		setup:  setup{Kind: kind, Channels: 2, Message: 16384},
		signal: func(_ int, m signal) { told.signals <- m }, open: func(link int) { told.links <- link },
	}, []byte("a script"))
	server := httptest.NewServer(s.pages())
	t.Cleanup(server.Close)
	t.Cleanup(s.stop)
	return s, server, told
}

func say(t *testing.T, server *httptest.Server, text string) {
	t.Helper()
	response, err := http.Post(server.URL+"/said", "application/json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", text, response.Status)
	}
}

func TestAPageIsToldInOrderWhatToDo(t *testing.T) {
	s, server, _ := pagesFor(t, kindBare)
	plan := peer.Plan{V: 1, Data: 2, Message: 16384}
	described := signal{Description: &transfer.Description{SDP: "theirs", Plan: plan}}
	for _, do := range []func() error{
		func() error { return s.begin(3) },
		func() error { return s.handle(3, described) },
		func() error { return s.handle(4, described) },
		func() error {
			return s.handle(4, signal{Candidate: &transfer.Candidate{Candidate: "candidate:1", Mid: "0"}})
		},
		func() error { return s.handle(4, signal{Candidate: &transfer.Candidate{End: true}}) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	s.start(4)
	response, err := http.Get(server.URL + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i, want := range []string{
		`"type":"setup","link":0,"setup":{"bare":true`, `"type":"begin","link":3`, `"link":3,"body":{"kind":"answer","sdp":"theirs","plan":{"v":1,"data":2,"message":16384}`,
		`"link":4,"body":{"kind":"offer","sdp":"theirs"`, `"link":4,"body":{"kind":"candidate","candidate":"candidate:1","sdp_mid":"0"`,
		`"link":4,"body":{"kind":"end"`, `"type":"start","link":4`,
	} {
		for lines.Scan() && lines.Text() == "" {
			continue
		}
		if got := lines.Text(); !strings.Contains(got, want) {
			t.Errorf("order %d is %s, without %s", i, got, want)
		}
	}
}

func TestWhatAPageSaysReachesTheOtherEnd(t *testing.T) {
	s, server, told := pagesFor(t, kindPage)
	say(t, server, `{"type":"signal","link":0,"body":{"kind":"offer","sdp":"mine","plan":{"v":1,"data":2,"message":16384}}}`)
	if m := <-told.signals; m.Description == nil || m.Description.SDP != "mine" || m.Description.Plan.Data != 2 {
		t.Errorf("%+v", m)
	}
	say(t, server, `{"type":"signal","link":0,"body":{"kind":"candidate","candidate":"candidate:7","sdp_mid":"0","sdp_m_line_index":0}}`)
	if m := <-told.signals; m.Candidate == nil || m.Candidate.Candidate != "candidate:7" || m.Candidate.Mid != "0" {
		t.Errorf("%+v", m)
	}
	say(t, server, `{"type":"signal","link":0,"body":{"kind":"end"}}`)
	if m := <-told.signals; m.Candidate == nil || !m.Candidate.End {
		t.Errorf("%+v", m)
	}
	say(t, server, `{"type":"open","link":5}`)
	if link := <-told.links; link != 5 {
		t.Errorf("link %d is open", link)
	}
	say(t, server, `{"type":"report","bytes":1000,"seconds":2,"silence":0.5,"task":70}`)
	if r, err := s.measure(t.Context(), 0, time.Millisecond); err != nil || r.Bytes != 1000 || r.Seconds != 2 || r.Silence != 0.5 || r.Task != 70 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAPageFindsItsScriptAndTheContent(t *testing.T) {
	s, server, _ := pagesFor(t, kindPage)
	for path, want := range map[string]string{"/bench.js": "a script", "/content": string(s.content)} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
}

func TestProcessorTimeOfATreeHasItsRootIn(t *testing.T) {
	name, ticks := readStat("7 (a (b) c) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0")
	if name != "a (b) c" || ticks != 100 {
		t.Errorf("%q, %g ticks", name, ticks)
	}
	if _, ticks := readStat("7 (short) S 3"); ticks != 0 {
		t.Errorf("%g ticks of half a line", ticks)
	}
	for procstat.CPU().Seconds() < 0.1 { // until a tick of the kernel's must have counted it
		_ = newContent()
	}
	if n := readWakes("Name:\ta\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"); n != 150 {
		t.Errorf("%g wakes, not 150", n)
	}
	own := tree(os.Getpid())
	sum := 0.0
	for _, s := range own.threads {
		sum += s
	}
	if kindOf("/usr/lib/chromium --type=renderer --lang=en\x00\x00") != pageThread || kindOf("chromium\x00--type=utility\x00") != "utility" || kindOf("chromium\x00--headless\x00") != "" {
		t.Error("the processes of a browser are not told apart")
	}
	if own.all < 0.02 || sum < 0.02 {
		t.Errorf("%g s of this process, %g of its threads", own.all, sum)
	}
}

// TestPagesMove has a browser at both ends for a moment, where there is one.
func TestPagesMove(t *testing.T) {
	if lack := demopage.MissingEnd(t.Context()); lack != nil {
		t.Skip(lack)
	}
	r := &bench.Run{Log: t.Output()} // with what an end says when it dies
	for _, l := range []load{
		{from: kindLink, to: kindPage, channels: 2, message: 16384}, {from: kindPage, to: kindPage, channels: 2, message: 16384},
		{from: kindBare, to: kindTuned, channels: 1, message: bareMessage}, {from: kindPageLaw, to: kindPageLaw, channels: 2, message: 16384, both: true},
	} {
		l.links, l.run = 1, 500*time.Millisecond
		o, err := move(t.Context(), r, l, here, here)
		if err != nil {
			t.Errorf("%s → %s: %v", l.from, l.to, err)
			continue
		}
		if o.rate <= 0 || o.cpu <= 0 || l.both && (o.sent.Bytes == 0 || o.sent.Threads[pageThread] == 0) {
			t.Errorf("%s → %s: %+v", l.from, l.to, o)
		}
	}
}

// TestPagesOfFirefoxMove is the same for Firefox.
func TestPagesOfFirefoxMove(t *testing.T) {
	if lack := demopage.MissingFirefoxEnd(t.Context()); lack != nil {
		t.Skip(lack)
	}
	r := &bench.Run{Log: t.Output()}
	for _, l := range []load{
		{from: kindPage, to: kindPage, channels: 2, message: 16384}, {from: kindBare, to: kindTuned, channels: 1, message: bareMessage},
	} {
		l.firefox, l.links, l.run = true, 1, 500*time.Millisecond
		o, err := move(t.Context(), r, l, here, here)
		if err != nil {
			t.Errorf("%s → %s: %v", l.from, l.to, err)
			continue
		}
		if o.rate <= 0 || o.cpu <= 0 {
			t.Errorf("%s → %s: %+v", l.from, l.to, o)
		}
	}
}

// TestAPairHasAllItsFigures measures with ends that are none.
func TestAPairHasAllItsFigures(t *testing.T) {
	for _, p := range pairs {
		declared := map[string]bool{}
		for _, f := range p.bench(pairPath.name, "", "", nil).Figures {
			declared[f.Name] = true
		}
		loads := p.loads(0, time.Second)
		loads["cubic"] = load{kind: kindTCP}
		sample, err := p.measure(&bench.Run{Log: io.Discard}, loads, 1, func(l load) (*outcome, string, error) {
			rate := 10.0
			if l == loads[""] {
				rate = 20
			}
			return &outcome{rate: rate, cpu: 1}, "", nil
		})
		if err != nil || sample.Values["goodput_vs_cubic"] != 2 {
			t.Errorf("%s: %v, %v", p.name, sample.Values, err)
		}
		for name := range sample.Values {
			if !declared[name] {
				t.Errorf("%s: %s is not declared", p.name, name)
			}
			delete(declared, name)
		}
		if len(declared) > 0 {
			t.Errorf("%s: not measured: %v", p.name, declared)
		}
	}
}

// TestAComparisonHasAllItsFigures compares ends that are none.
func TestAComparisonHasAllItsFigures(t *testing.T) {
	b := between{foreground: kindPage, background: kindPageLane, law: kindPageLaw}
	values := b.figures(map[string]*outcome{
		kindPage: {rate: mega, cpu: 100, wakes: 9}, kindPageLane: {rate: 0.5 * mega, cpu: 130}, kindPageLaw: {rate: 0.9 * mega, cpu: 120},
	})
	for name, want := range map[string]float64{
		"goodput_law": 7.2, "goodput_vs_foreground": 0.5, "cpu_vs_foreground": 1.3, "cpu_law_vs_foreground": 1.2, "wakes_foreground": 9,
	} {
		if got := values[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, not %g", name, got, want)
		}
	}
	for _, f := range b.compare(path{name: "a path"}, bench.Figure{Name: "cpu_vs_foreground"}).Figures {
		if _, is := values[f.Name]; !is {
			t.Errorf("%s is not measured", f.Name)
		}
		delete(values, f.Name)
	}
	if len(values) > 0 {
		t.Errorf("not declared: %v", values)
	}
}

// TestAnEndThatGotNothingVoidsARun: its figures would be zeros.
func TestAnEndThatGotNothingVoidsARun(t *testing.T) {
	some := report{Bytes: 1}
	for _, c := range []struct {
		o    outcome
		both bool
		void bool
	}{
		{outcome{got: some}, false, false},
		{outcome{got: some}, true, true},
		{outcome{got: some, sent: some}, true, false},
		{outcome{sent: some}, false, true},
		{outcome{sent: some}, true, true},
	} {
		if why := c.o.void(c.both); (why != "") != c.void {
			t.Errorf("%+v, both %v: %q", c.o, c.both, why)
		}
	}
}

// TestThePageOfAHomeHasAllItsFigures: what comes down is what the page itself got, and its thread is one of many.
func TestThePageOfAHomeHasAllItsFigures(t *testing.T) {
	values := pageCost(
		report{Bytes: 5_000_000, Seconds: 2, Task: 60, Threads: map[string]float64{pageThread: 0.1, "WebRTC_Network": 0.3}},
		report{Bytes: 1_250_000, Seconds: 2},
	)
	for name, want := range map[string]float64{"goodput_down": 20, "goodput_up": 5, "longest_task": 60, "thread_busy": 0.05} {
		if got := values[name]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, not %g", name, got, want)
		}
	}
	for _, c := range pageCosts() {
		for _, f := range c.Figures {
			if _, is := values[f.Name]; !is {
				t.Errorf("%s: %s is not measured", c.Name, f.Name)
			}
		}
	}
}
