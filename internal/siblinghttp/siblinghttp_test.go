package siblinghttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const patience = 20 * time.Second

var (
	asker, asked = signal.ID{1}, signal.ID{2}
	loopback     = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	one          = sibling.Question{Segment: segment.ID{3}, Swarm: signal.ID{4}}
)

func secret(t *testing.T, text string) *sibling.Secret {
	t.Helper()
	s, err := sibling.NewSecret(strings.Repeat(text, 8))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answerer is a seed that says what the test has it say.
type answerer struct {
	answer func(ctx context.Context, q sibling.Question) *sibling.Answer
	sent   atomic.Int64
	wanted sibling.Wanted
}

func (a *answerer) Answer(ctx context.Context, q sibling.Question) *sibling.Answer {
	return a.answer(ctx, q)
}
func (a *answerer) Answered(n int)         { a.sent.Add(int64(n)) }
func (a *answerer) Wanted() sibling.Wanted { return a.wanted }

// world is a seed's port on loopback and another that asks it.
type world struct {
	client  *Client
	handler *Handler
	to      fleet.Sibling
	seed    *answerer
}

func newWorld(t *testing.T, answer func(context.Context, sibling.Question) *sibling.Answer) *world {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	w := &world{client: NewClient(Config{Secret: secret(t, "ours"), Allow: loopback, Silence: patience}), seed: &answerer{answer: answer}}
	w.handler = NewHandler(secret(t, "ours"), asked, w.seed, time.Now, slog.New(slog.DiscardHandler))
	w.to = serve(t, w.handler)
	t.Cleanup(w.client.Close)
	return w
}

func serve(t *testing.T, h http.Handler) fleet.Sibling {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return fleet.Sibling{ID: asked, Address: netip.MustParseAddrPort(s.Listener.Addr().String())}
}

func (w *world) ask(t *testing.T, to fleet.Sibling, q sibling.Question) (*sibling.Answer, fleet.Outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return w.askIn(ctx, to, q)
}

func (w *world) askIn(ctx context.Context, to fleet.Sibling, q sibling.Question) (*sibling.Answer, fleet.Outcome) {
	a, err := w.client.Ask(ctx, asker, to, q, func([]byte, int) error { return nil })
	var failed *fleet.AskError
	if errors.As(err, &failed) {
		return nil, failed.Outcome
	}
	return a, fleet.OutcomeOK
}

func TestASegmentComesAsItIs(t *testing.T) {
	data := bytes.Repeat([]byte("segment "), 1<<17)
	content := sibling.Content{9}
	w := newWorld(t, func(_ context.Context, q sibling.Question) *sibling.Answer {
		switch {
		case q.Held:
			return &sibling.Answer{None: peer.NoneUnknown}
		case q.Have != nil && *q.Have == content:
			return &sibling.Answer{Certificate: []byte("certificate")}
		}
		return &sibling.Answer{Certificate: []byte("certificate"), Data: data}
	})
	a, o := w.ask(t, w.to, one)
	if o != fleet.OutcomeOK || !bytes.Equal(a.Data, data) || string(a.Certificate) != "certificate" {
		t.Fatalf("%s: %d bytes", o, len(a.Data))
	}
	if a, o := w.ask(t, w.to, sibling.Question{Segment: one.Segment, Swarm: one.Swarm, Held: true}); o != fleet.OutcomeOK || a.Certificate != nil || a.None != peer.NoneUnknown {
		t.Errorf("not held: %s, %+v", o, a)
	}
	if a, o := w.ask(t, w.to, sibling.Question{Segment: one.Segment, Swarm: one.Swarm, Have: &content}); o != fleet.OutcomeOK || len(a.Data) != 0 || a.Certificate == nil {
		t.Errorf("held already: %s, %+v", o, a)
	}
	if n := w.seed.sent.Load(); n < int64(len(data)) {
		t.Errorf("%d bytes were counted", n)
	}
}

func TestWhatIsWantedIsToldToSiblingsAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.seed.wanted = sibling.Wanted{Titles: []sibling.WantedTitle{{
		Title:    bus.Title{Site: "demo", Title: "/film", Manifest: "/film/master.m3u8", Swarm: signal.ID{4}, Viewers: 3, Seeds: []signal.ID{asked}},
		Segments: []sibling.WantedSegment{{ID: signal.ID{3}, N: 7}},
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got, err := w.client.Wanted(ctx, asker, w.to); err != nil || !reflect.DeepEqual(got, w.seed.wanted) {
		t.Errorf("%+v, %v", got, err)
	}
	stranger := NewClient(Config{Secret: secret(t, "them"), Allow: loopback, Silence: patience})
	t.Cleanup(stranger.Close)
	if got, err := stranger.Wanted(ctx, asker, w.to); err == nil {
		t.Errorf("a stranger was told %+v", got)
	}
	for name, h := range map[string]http.HandlerFunc{
		"an older one": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"no end":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, sibling.MaxWanted+1)) },
		"no answer":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
	} {
		if got, err := w.client.Wanted(ctx, asker, serve(t, h)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.client.allow = nil
	if _, err := w.client.Wanted(ctx, asker, w.to); err == nil {
		t.Error("an address that no sibling may have was asked")
	}
	w.seed.wanted.Titles[0].Segments[0].N = 0 // what cannot be written is not sent
	w.client.allow = loopback
	if got, err := w.client.Wanted(ctx, asker, w.to); err == nil {
		t.Errorf("what no answer may say was said: %+v", got)
	}
}

// TestAtWorkIsNotSilent: an answer that takes its time comes, and the sibling is not taken for dead meanwhile.
func TestAtWorkIsNotSilent(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(context.Context, sibling.Question) *sibling.Answer {
		<-release
		return &sibling.Answer{Certificate: []byte("certificate"), Data: []byte("data")}
	})
	w.client.silence, w.handler.every = 2*time.Second, 10*time.Millisecond
	time.AfterFunc(w.client.silence+w.client.silence/4, func() { close(release) })
	if a, o := w.ask(t, w.to, one); o != fleet.OutcomeOK || string(a.Data) != "data" {
		t.Errorf("%s: %+v", o, a)
	}
}

func TestASiblingThatWorksTooLongIsSlow(t *testing.T) {
	gone := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ sibling.Question) *sibling.Answer {
		<-ctx.Done()
		close(gone)
		return &sibling.Answer{None: peer.NoneOrigin}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, o := w.askIn(ctx, w.to, one); o != fleet.OutcomeSlow {
		t.Errorf("slow: %s", o)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the sibling goes on with what is no longer waited for")
	}
}

// TestAServerThatIsNoSiblingIsFoundOut: whatever answers at the address, it is no seed of the fleet that is there and well.
func TestAServerThatIsNoSiblingIsFoundOut(t *testing.T) {
	w := newWorld(t, nil)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	half := append((&sibling.Answer{Certificate: []byte("certificate"), Data: make([]byte, 1000)}).Head(), 1, 2, 3)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    fleet.Outcome
	}{
		"silent": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, fleet.OutcomeUnreachable},
		"silent in the middle": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(half)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, fleet.OutcomeUnreachable},
		"breaks off":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(half); panic(http.ErrAbortHandler) }, fleet.OutcomeUnreachable},
		"ends early":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(half) }, fleet.OutcomeUnreachable},
		"says nothing":    {func(http.ResponseWriter, *http.Request) {}, fleet.OutcomeUnreachable},
		"something else":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, fleet.OutcomeInvalid},
		"another's place": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, fleet.OutcomeUnreachable},
		"busy":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, fleet.OutcomeRefused},
		"leads away": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, fleet.OutcomeUnreachable},
	} {
		w.client.silence = patience
		if strings.HasPrefix(name, "silent") {
			w.client.silence = 100 * time.Millisecond
		}
		if _, o := w.ask(t, serve(t, c.handler), one); o != c.want {
			t.Errorf("%s: %s, want %s", name, o, c.want)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := fleet.Sibling{ID: asked, Address: netip.MustParseAddrPort(l.Addr().String())}
	_ = l.Close()
	if _, o := w.ask(t, nobody, one); o != fleet.OutcomeUnreachable {
		t.Errorf("no server there: %s", o)
	}
}

// TestAddressesOutsideTheClusterAreNotAsked: the bus says where siblings are, and a program that reaches the bus could name any address.
func TestAddressesOutsideTheClusterAreNotAsked(t *testing.T) {
	usually := NewClient(Config{Secret: secret(t, "ours")})
	everywhere := NewClient(Config{Secret: secret(t, "ours"), Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}})
	for at, want := range map[string]struct{ usual, all bool }{
		"10.1.2.3:4602": {true, true}, "192.168.1.1:4602": {true, true}, "[fd00::7]:4602": {true, true}, "[::ffff:10.1.2.3]:4602": {true, true},
		"127.0.0.1:4602": {false, true}, "8.8.8.8:80": {false, true}, "[2001:db8::1]:80": {false, true},
		"169.254.169.254:80": {}, "[fe80::1]:80": {}, "[fd00:ec2::254]:80": {}, "[::ffff:169.254.169.254]:80": {}, "100.100.100.200:80": {}, "10.1.2.3:0": {},
	} {
		a := netip.MustParseAddrPort(at)
		if usually.allows(a) != want.usual || everywhere.allows(a) != want.all {
			t.Errorf("%s: %t by default, %t where all are listed", at, usually.allows(a), everywhere.allows(a))
		}
	}
	var connected atomic.Int32
	to := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { connected.Add(1) }))
	if _, err := usually.Ask(t.Context(), asker, to, one, nil); err == nil || connected.Load() != 0 {
		t.Errorf("loopback was asked: %v", err)
	}
}

// TestStrangersLearnNothing: a request without the secret, for another seed or another path is the same to its sender.
func TestStrangersLearnNothing(t *testing.T) {
	w := newWorld(t, func(context.Context, sibling.Question) *sibling.Answer {
		t.Error("a stranger was answered")
		return &sibling.Answer{}
	})
	theirs := NewClient(Config{Secret: secret(t, "else"), Allow: loopback})
	defer theirs.Close()
	late := NewClient(Config{Secret: secret(t, "ours"), Allow: loopback, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	defer late.Close()
	for name, c := range map[string]*Client{"another secret": theirs, "another hour": late} {
		if _, err := c.Ask(t.Context(), asker, w.to, one, nil); err == nil {
			t.Errorf("%s: answered", name)
		}
	}
	if _, o := w.ask(t, fleet.Sibling{ID: signal.ID{7}, Address: w.to.Address}, one); o != fleet.OutcomeUnreachable {
		t.Errorf("another seed's question: %s", o)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	signed := secret(t, "ours")
	for target, want := range map[string]int{
		"/": 401, one.Target(): 401, "/leeway/v1/segments/../../../etc/passwd": 401,
		"signed /": 404, "signed " + sibling.Path + "..%2f..%2fetc%2fpasswd?swarm=" + asker.Hex(): 404, "signed POST " + one.Target(): 401,
	} {
		rest, ours := strings.CutPrefix(target, "signed ")
		rest, post := strings.CutPrefix(rest, "POST ")
		req, err := http.NewRequestWithContext(t.Context(), map[bool]string{false: "GET", true: "POST"}[post], "http://"+w.to.Address.String()+rest, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ours {
			req.Header.Set("Authorization", signed.Sign(asker, asked, req.URL.RequestURI(), time.Now()))
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", target, resp.StatusCode, want)
		}
	}
}

// TestQuestionsAreBounded: above so many at a time a seed that asks is told to help itself.
func TestQuestionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, maxAnswers)
	w := newWorld(t, func(context.Context, sibling.Question) *sibling.Answer {
		begun <- struct{}{}
		<-release
		return &sibling.Answer{None: peer.NoneOrigin}
	})
	outcomes := make(chan fleet.Outcome, maxAnswers)
	for range maxAnswers {
		go func() {
			_, o := w.askIn(context.Background(), w.to, one)
			outcomes <- o
		}()
	}
	for range maxAnswers {
		<-begun
	}
	if _, o := w.ask(t, w.to, one); o != fleet.OutcomeRefused {
		t.Errorf("one too many: %s", o)
	}
	close(release)
	for range maxAnswers {
		if o := <-outcomes; o != fleet.OutcomeOK {
			t.Errorf("one of those before: %s", o)
		}
	}
}
