package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// raw is a client that says what a test wants.
type raw struct {
	*qualitylink.Line
	opened, gone chan struct{}

	mu   sync.Mutex
	said []string // guarded by mu: by the server
}

func (r *raw) Open()                                 { close(r.opened) }
func (r *raw) Closed(error)                          { close(r.gone) }
func (r *raw) Message(_ []byte, _ bool, _ time.Time) {}
func (r *raw) Lane(_ []byte, _ bool)                 {}

func (r *raw) Control(b []byte, _ bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, string(b))
}

func (r *raw) heard(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.said, "\n"), what)
}

// raw opens a line.
func (w *airWorld) raw() *raw {
	w.t.Helper()
	r := &raw{opened: make(chan struct{}), gone: make(chan struct{})}
	link, offer, err := w.client.Offer(netip.MustParseAddrPort(clientAt).Addr(), 0, r)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Line = link
	answer, err := w.post("")(w.t.Context(), offer)
	if err == nil {
		err = link.Accept(answer)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	<-r.opened
	return r
}

func (r *raw) run(t *testing.T, run quality.Run) {
	t.Helper()
	b, err := quality.EncodeControl(run)
	if err == nil {
		err = r.Say(b)
	}
	if err != nil {
		t.Error(err)
	}
}

// offer posts an offer without a client behind it.
func (w *airWorld) offer() (status int, text string) {
	w.t.Helper()
	link, offer, err := w.client.Offer(netip.MustParseAddrPort(clientAt).Addr(), 0, &raw{gone: make(chan struct{})})
	if err != nil {
		w.t.Fatal(err)
	}
	link.Close()
	body, _ := json.Marshal(signal{"offer", offer})
	response, got, err := w.request("POST", "/probe/v1/quality", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(got)
}

// TestWhatAQualityClientMustNotSend: the first message that is malformed, or not the client's to send, ends the connection.
func TestWhatAQualityClientMustNotSend(t *testing.T) {
	probe := quality.Probe{Stream: 1}.Append(nil, 16)
	for name, do := range map[string]func(r *raw) error{
		"no JSON":            func(r *raw) error { return r.Say([]byte("{")) },
		"a server's message": func(r *raw) error { return r.Say([]byte(`{"type":"ready","stream":1}`)) },
		"sent of no stream":  func(r *raw) error { return r.Say([]byte(`{"type":"sent","stream":1}`)) },
		"a stream that is too long": func(r *raw) error {
			return r.Say([]byte(`{"type":"run","stream":1,"direction":"up","messages":16385,"interval_us":1000,"size":16}`))
		},
		"a probe of no stream": func(r *raw) error { return r.Send(probe) },
		"an echo":              func(r *raw) error { return r.Send(quality.Echo{}.Append(nil, 32)) },
		"a large message":      func(r *raw) error { return r.Send(make([]byte, 1153)) },
	} {
		t.Run(name, func(t *testing.T) {
			inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
				r := w.raw()
				if err := do(r); err != nil {
					t.Fatal(err)
				}
				<-r.gone
				if !r.heard(`"code":"malformed"`) {
					t.Errorf("the server said %q", r.said)
				}
				w.ends(qualityTest, endProtocol, 1)
				r.Close()
			})
		})
	}
}

// TestOffersAreBounded: connections that are never taken up hold few places, for ten seconds.
func TestOffersAreBounded(t *testing.T) {
	inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		for range maxHalfOpenOne {
			if status, text := w.offer(); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
		}
		if status, text := w.offer(); status != 429 || w.metrics.Value(mRefused, refusedHalfOpen) != 1 {
			t.Errorf("one too many: %d %s", status, text)
		}
		for n := range maxHalfOpen - maxHalfOpenOne {
			w.from = fmt.Sprintf("203.0.113.%d", n/2)
			if status, text := w.offer(); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
		}
		w.from = "203.0.113.200"
		if status, _ := w.offer(); status != 429 {
			t.Errorf("one too many of all: %d", status)
		}
		<-time.After(quality.OpenTime + time.Second)
		w.ends(qualityTest, endTimeout, maxHalfOpen)
		if status, _ := w.offer(); status != 200 {
			t.Errorf("after ten seconds: %d", status)
		}
		for body, want := range map[string]int{
			"":                              400,
			`{"type":"offer","sdp":"v=0"}`:  400,
			`{"type":"answer","sdp":"v=0"}`: 400,
			`{"type":"offer","sdp":"` + strings.Repeat("x", maxOffer) + `"}`: 413,
		} {
			response, got, err := w.request("POST", "/probe/v1/quality", strings.NewReader(body))
			if err != nil || response.StatusCode != want {
				t.Errorf("%.30q: %v %s", body, err, got)
			}
		}
	})
}

// TestStreamsOfALineAreBounded: four at a time, and each number once.
func TestStreamsOfALineAreBounded(t *testing.T) {
	inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		r := w.raw()
		for n := range uint16(5) {
			r.run(t, quality.Run{Stream: n, Direction: quality.Up, Messages: 1, Interval: 1_000_000, Size: 16})
		}
		<-time.After(time.Second)
		if !r.heard(`{"type":"ready","stream":3}`) || !r.heard(`{"type":"error","stream":4,"code":"limit"`) {
			t.Errorf("the server said %q", r.said)
		}
		r.run(t, quality.Run{Stream: 0, Direction: quality.Up, Messages: 1, Interval: 1000, Size: 16})
		<-time.After(time.Second)
		if !r.heard(`{"type":"error","stream":0,"code":"busy"`) {
			t.Errorf("the server said %q", r.said)
		}
		<-time.After(30 * time.Second) // the streams end without the client's sent
		if !r.heard(`{"type":"end","stream":3`) {
			t.Errorf("the server said %q", r.said)
		}
		<-r.gone
		if !r.heard(`"code":"ending"`) {
			t.Errorf("the server said %q", r.said)
		}
		w.ends(qualityTest, endTimeout, 1)
		r.Close()
	})
}

// TestAClientMayWaitForLateMessages: as long as a record may take, on a line with a round trip of 4 s, and then begin another stream.
func TestAClientMayWaitForLateMessages(t *testing.T) {
	const trip = 4 * time.Second
	inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		r := w.raw()
		r.run(t, quality.Run{Stream: 1, Direction: quality.Down, Messages: 1, Interval: 1000, Size: 16})
		<-time.After(time.Second)
		if !r.heard(`{"type":"end","stream":1`) {
			t.Fatalf("the server said %q", r.said)
		}
		<-time.After(quality.MostLate + trip)
		r.run(t, quality.Run{Stream: 2, Direction: quality.Down, Messages: 1, Interval: 1000, Size: 16})
		<-time.After(time.Second)
		if !r.heard(`{"type":"ready","stream":2}`) {
			t.Errorf("the server said %q", r.said)
		}
		<-time.After(quality.LateTime)
		<-r.gone
		w.ends(qualityTest, endTimeout, 1)
		r.Close()
	})
}

// TestRecordsAreBounded: all connections together record so many messages.
func TestRecordsAreBounded(t *testing.T) {
	inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		for n := range 4 {
			others := netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}), 32)
			w.server.remember(others, maxRecordedOne-10*int64(n/3))
		}
		r := w.raw()
		r.run(t, quality.Run{Stream: 1, Direction: quality.Up, Messages: 11, Interval: 1000, Size: 16})
		r.run(t, quality.Run{Stream: 2, Direction: quality.Both, Messages: 10, Interval: 1000, Size: 16})
		r.run(t, quality.Run{Stream: 3, Direction: quality.Down, Messages: 11, Interval: 1000, Size: 16})
		<-time.After(time.Second)
		if !r.heard(`{"type":"error","stream":1,"code":"limit"`) || !r.heard(`{"type":"ready","stream":2}`) || !r.heard(`{"type":"ready","stream":3}`) {
			t.Errorf("the server said %q", r.said)
		}
		r.Close()
		w.server.ended.Wait()
		if all, networks := w.server.recorded.Taken(); all != maxRecorded-10 || networks != 4 {
			t.Errorf("%d messages are recorded, of %d networks", all, networks)
		}
	})
}

// TestRecordsOfAnAddressLeaveRoomForOthers: as many connections as an address may have, each with streams that are as long as may be.
func TestRecordsOfAnAddressLeaveRoomForOthers(t *testing.T) {
	s, err := New(Config{Upgrade: func(http.ResponseWriter, *http.Request) (Socket, error) { return nil, errDraining }, Offers: func(*http.Request) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("198.51.100.1/32")
	taken := int64(0)
	for range s.cfg.MaxPerAddress * maxStreams {
		if s.remember(one, quality.MaxMessages) {
			taken += quality.MaxMessages
		}
	}
	if taken != maxRecordedOne || !s.remember(other, quality.MaxMessages) {
		t.Errorf("one address has %d of %d, and there is none left for another", taken, maxRecorded)
	}
	s.forget(one, taken)
	s.forget(other, quality.MaxMessages)
	if all, networks := s.recorded.Taken(); all != 0 || networks != 0 {
		t.Errorf("%d of %d networks are left", all, networks)
	}
}

// TestQualityPaysForItsBytes: a stream ends when its address has used up its day.
func TestQualityPaysForItsBytes(t *testing.T) {
	inAir(t, Config{DailyBytes: 256 << 10}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		r := w.raw()
		r.run(t, quality.Run{Stream: 1, Direction: quality.Down, Messages: 1000, Interval: 1000, Size: 1000})
		<-r.gone
		if !r.heard(`"code":"bytes"`) {
			t.Errorf("the server said %q", r.said)
		}
		w.ends(qualityTest, endBytes, 1)
		if got := w.metrics.Value(mBytes, "down"); got > 256<<10 {
			t.Errorf("%v bytes were sent", got)
		}
		r.Close()
	})
}

// TestQualityEndsWithTheServer: what runs is told and cut.
func TestQualityEndsWithTheServer(t *testing.T) {
	inAir(t, Config{}, &testkit.Air{}, func(t *testing.T, w *airWorld) {
		r := w.raw()
		r.run(t, quality.Run{Stream: 1, Direction: quality.Down, Messages: 10000, Interval: 1000, Size: 16})
		<-time.After(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.server.Drain(ctx)
		<-r.gone
		if !r.heard(`"code":"ending"`) {
			t.Errorf("the server said %q", r.said)
		}
		w.ends(qualityTest, endDraining, 1)
		r.Close()
	})
}
