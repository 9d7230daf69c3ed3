package cmcd

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	wire "github.com/leeway-video/leeway/internal/wire/cmcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	page   = "https://www.example.com"
	report = "e=ps,sta=r,ts=1,v=2\ne=rr,rc=404,ts=1,v=2\ne=t,msd=1500,ts=1,v=2\ne=zz,ts=1,v=2\nnothing\n"
)

type world struct {
	*Collector
	t       *testing.T
	metrics testkit.Recorder
	now     time.Time
	from    string
}

func newWorld(t *testing.T, change func(film, other *site.Config)) *world {
	film := site.Config{Name: "film", Hosts: []string{"cdn.example.com"}, PageOrigins: []string{page}, CMCD: true}
	other := site.Config{Name: "other", Hosts: []string{"other.example"}, PageOrigins: []string{page}}
	if change != nil {
		change(&film, &other)
	}
	w := &world{t: t, now: time.Unix(1_790_000_000, 0), from: "192.0.2.1"}
	var sites []*site.Site
	for _, c := range []site.Config{film, other} {
		s, err := site.New(c)
		if err != nil {
			t.Fatal(err)
		}
		sites = append(sites, s)
	}
	w.Collector = New(Config{
		Sites: sites, Metrics: &w.metrics, Now: func() time.Time { return w.now },
		Client: func(*http.Request) netip.Addr { return netip.MustParseAddr(w.from) },
	})
	return w
}

// ask sends a report from a page; change may make another request of it.
func (w *world) ask(body string, change func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodPost, "/cmcd", strings.NewReader(body))
	r.Header.Set("Origin", page)
	r.Header.Set("Content-Type", wire.MediaType)
	if change != nil {
		change(r)
	}
	recorder := httptest.NewRecorder()
	w.ServeHTTP(recorder, r)
	return recorder.Result()
}

func (w *world) counted(d *metric.Def, labels ...string) int {
	w.t.Helper()
	w.metrics.Check(w.t)
	return int(w.metrics.Value(d, labels...))
}

func TestAReportIsCounted(t *testing.T) {
	w := newWorld(t, nil)
	a := w.ask(report, nil)
	if h := a.Header; a.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != page || h.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	for kind, n := range map[string]int{"ps": 1, "rr": 1, "t": 1, wire.Unknown: 1, "e": 0} {
		if got := w.counted(mEvents, "film", kind); got != n {
			t.Errorf("%d events of type %s", got, kind)
		}
	}
	if w.counted(mStates, "film", "rebuffering") != 1 || w.counted(mResponses, "film", "4xx") != 1 || w.counted(mRefused, refusedMalformed) != 1 {
		t.Error("state, response or malformed event")
	}
	if n, s := w.metrics.Count(mStartup, "film"), w.metrics.Value(mStartup, "film"); n != 1 || s != 1.5 {
		t.Errorf("%d starts, %v s", n, s)
	}
	if a := w.ask("nothing\nat all", nil); a.StatusCode != 400 || w.counted(mRefused, refusedMalformed) != 3 {
		t.Errorf("a report without an event: %d", a.StatusCode)
	}
	w.ask("e=t,msd=600001,ts=1,v=2\ne=rr,rc=0,ts=1,v=2\ne=rr,ts=1,v=2\ne=t,sta=p,ts=1,v=2", nil)
	if w.metrics.Count(mStartup, "film") != 1 || w.counted(mResponses, "film", "other") != 1 || w.counted(mStates, "film", "playing") != 0 {
		t.Error("a start after hours, a response that was none, or a state that did not change")
	}
}

func TestAPreflightIsAnswered(t *testing.T) {
	w := newWorld(t, nil)
	a := w.ask("", func(r *http.Request) {
		r.Method = http.MethodOptions
		r.Header.Del("Content-Type")
	})
	h := a.Header
	if h.Get("Connection") != "" || w.ask(report, nil).Header.Get("Connection") != "close" {
		t.Error("the report behind a preflight needs its connection, and nothing does behind a report")
	}
	if a.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != page || h.Get("Access-Control-Allow-Methods") != "POST" ||
		h.Get("Access-Control-Allow-Headers") != "Content-Type" || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", a.StatusCode, h)
	}
}

func TestWhatIsRefused(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	query := func(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }
	long := strings.Repeat("e=t,ts=1,v=2\n", wire.MaxReport/10)
	for _, c := range []struct {
		reason string
		status int
		body   string
		change func(*http.Request)
	}{
		{refusedOrigin, 403, report, header("Origin", "https://elsewhere.example")},
		{refusedOrigin, 403, report, func(r *http.Request) { r.Header.Del("Origin") }},
		{refusedOrigin, 403, report, header("Origin", "null")},
		{refusedOrigin, 403, report, query("site=nothing")},
		{refusedOff, 410, report, query("site=other")},
		{refusedMethod, 405, "", func(r *http.Request) { r.Method = http.MethodGet }},
		{refusedType, 415, report, header("Content-Type", "text/plain")},
		{refusedType, 415, report, header("Content-Type", "")},
		{refusedSize, 413, long, nil},
		{refusedSize, 413, long, func(r *http.Request) { r.ContentLength = -1 }},
		{refusedSlow, 408, report, func(r *http.Request) { r.Body = io.NopCloser(io.MultiReader(strings.NewReader("e="), broken{})) }},
	} {
		w := newWorld(t, nil)
		a := w.ask(c.body, c.change)
		if a.StatusCode != c.status || w.counted(mRefused, c.reason) != 1 || w.counted(mEvents, "film", "t") != 0 {
			t.Errorf("%s: %d, counted %d", c.reason, a.StatusCode, w.counted(mRefused, c.reason))
		}
		if readable := a.Header.Get("Access-Control-Allow-Origin") != ""; readable != (c.reason != refusedOrigin) {
			t.Errorf("%s: a page may read it: %t", c.reason, readable)
		}
	}
	if a := newWorld(t, func(film, _ *site.Config) { film.CMCD = false }).ask(report, nil); a.StatusCode != 404 {
		t.Errorf("no site collects: %d", a.StatusCode)
	}
	w := newWorld(t, func(film, _ *site.Config) { film.PageOrigins = []string{"*"} })
	if a := w.ask(report, func(r *http.Request) { r.Header.Del("Origin") }); a.StatusCode != 204 || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a program, at a site of any origin: %d", a.StatusCode)
	}
	if a := newWorld(t, nil).ask(report, header("Content-Type", "Application/CMCD; charset=utf-8")); a.StatusCode != 204 {
		t.Errorf("with a parameter: %d", a.StatusCode)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestReportsAreBoundedByAddressAndSite: what is beyond an allowance is refused before it is read, and the allowance comes back.
func TestReportsAreBoundedByAddressAndSite(t *testing.T) {
	w := newWorld(t, nil)
	whole := strings.Repeat("e=t,ts=1,v=2\n", 64) + strings.Repeat("\n", wire.MaxReport-64*13)
	send := func(most int) (taken int) {
		for range most {
			if w.ask(whole, nil).StatusCode == 429 {
				break
			}
			taken++
		}
		return taken
	}
	if n := send(100); n != addressBurst/wire.MaxReport || w.counted(mRefused, refusedAddress) != 1 {
		t.Errorf("%d reports of one address, refused %d", n, w.counted(mRefused, refusedAddress))
	}
	unread := &counting{}
	if a := w.ask("", func(r *http.Request) { r.Body, r.ContentLength = unread, wire.MaxReport }); a.StatusCode != 429 || unread.reads > 0 || a.Header.Get("Retry-After") == "" {
		t.Errorf("without an allowance: %d, %d reads", a.StatusCode, unread.reads)
	}
	// A request without a report costs as well.
	for i := 0; w.ask("", func(r *http.Request) { r.Method = http.MethodOptions }).StatusCode == 204; i++ {
		if i > addressBurst/requestCost {
			t.Fatal("preflights cost nothing")
		}
	}
	w.now = w.now.Add(time.Second)
	if n := send(100); n != addressRate/wire.MaxReport {
		t.Errorf("%d reports a second later", n)
	}
	// Other addresses have allowances of their own, until that of the site is spent.
	all := w.counted(mEvents, "film", "t") / 64
	for i := range 100 {
		w.from = netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String()
		all += send(100)
	}
	if most := (siteBurst + siteRate) / wire.MaxReport; all < siteBurst/wire.MaxReport || all > most || w.counted(mRefused, refusedSite) == 0 {
		t.Errorf("%d reports of the site, refused %d", all, w.counted(mRefused, refusedSite))
	}
}

// TestAddressesThatReportAreBounded: addresses beyond the bound share one allowance, so more of them get no more done.
func TestAddressesThatReportAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	preflight := func(i int) bool {
		w.from = netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)}).String()
		return w.ask("", func(r *http.Request) { r.Method = http.MethodOptions }).StatusCode == 204
	}
	for i := range maxAddresses {
		if !preflight(i) {
			t.Fatalf("the address %d had no allowance", i)
		}
	}
	served := 0
	for i := range 2 * addressBurst / requestCost {
		if preflight(maxAddresses + i) {
			served++
		}
	}
	if known := w.addresses.Len(); known > maxAddresses || served != addressBurst/requestCost {
		t.Errorf("%d addresses known, %d of more served", known, served)
	}
	if !preflight(0) {
		t.Error("an address that is known shares the allowance of others")
	}
}

type counting struct{ reads int }

func (c *counting) Read([]byte) (int, error) { c.reads++; return 0, io.EOF }
func (c *counting) Close() error             { return nil }

// TestAReportThatDoesNotComeIsGivenUp: a client that sends no body holds a request for five seconds.
func TestAReportThatDoesNotComeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		ours, theirs := net.Pipe()
		l := &oneConn{conns: make(chan net.Conn, 1)}
		l.conns <- theirs
		server := &http.Server{Handler: w}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(l)
		}()
		began := time.Now()
		head := "POST /cmcd HTTP/1.1\r\nHost: a\r\nOrigin: " + page + "\r\nContent-Type: application/cmcd\r\nContent-Length: 100\r\n\r\n"
		if _, err := io.WriteString(ours, head); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(ours)
		if took := time.Since(began); !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || took < patience || took > 2*patience {
			t.Errorf("after %v: %.40q", took, answer)
		}
		_ = ours.Close()
		_ = server.Close()
		<-done
		if w.counted(mRefused, refusedSlow) != 1 {
			t.Error("not counted")
		}
	})
}

// oneConn is a listener of one connection.
type oneConn struct{ conns chan net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l *oneConn) Close() error   { close(l.conns); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
