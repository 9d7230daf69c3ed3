package headless

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent hears of a link and says nothing.
type silent struct{ closed chan peer.CloseReason }

func (silent) Candidate(transfer.Candidate) {}
func (silent) Open()                        {}
func (silent) Control([]byte)               {}
func (silent) Data([]byte)                  {}
func (silent) Drain()                       {}
func (s silent) Closed(r peer.CloseReason)  { s.closed <- r }

// TestEverySocketIsOpenedWhereItIsToBe plays by a dialer of the test's own, and opens links' sockets where Enter says.
func TestEverySocketIsOpenedWhereItIsToBe(t *testing.T) {
	film := http.NewServeMux()
	film.HandleFunc("/m.m3u8", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.2,\ns.ts\n#EXT-X-ENDLIST\n"))
	})
	film.HandleFunc("/s.ts", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1000)) })
	server := httptest.NewServer(film)
	defer server.Close()
	var dialed, entered atomic.Int32
	n := Network{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed.Add(1)
			if strings.HasPrefix(address, "film.test:") {
				address = strings.TrimPrefix(server.URL, "http://")
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		Enter:  func(f func() error) error { entered.Add(1); return f() },
		Listen: "127.0.0.1:0",
	}
	v, err := Start(viewer.Config{URL: "http://film.test/m.m3u8", Tracker: "ws://film.test/", Rendition: "highest"}, n)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-v.Done():
	case <-time.After(30 * time.Second):
		t.Error("still plays")
	}
	if sum := v.Summary(); sum.Ended != "end" || sum.Stats.Bytes["origin"] != 1000 || sum.Reconnects == 0 {
		t.Errorf("%+v", sum)
	}
	v.Close()
	if dialed.Load() < 2 {
		t.Errorf("%d connections by the dialer: tracker and origin", dialed.Load())
	}
	h := &hosts{network: n}
	events := silent{make(chan peer.CloseReason, 8)}
	for _, s := range []viewer.LinkSettings{{}, {}, {Servers: []viewer.ICEServer{{URLs: []string{"stun:127.0.0.1:1"}}}}} {
		if _, offer, err := h.Offer(s, events); err != nil || offer.SDP == "" {
			t.Error(err)
		}
	}
	h.close()
	if entered.Load() != 2 || len(h.list) != 2 {
		t.Errorf("entered %d times for %d sockets: one of each kind of settings", entered.Load(), len(h.list))
	}
	if _, _, err := h.Offer(viewer.LinkSettings{}, events); err == nil {
		t.Error("offers after its end")
	}
}

// TestNewCredentialsLeaveNoSocketsBehind: each of them gets a socket, and those that no link needs any more are closed. A port that was
// asked for stays that of the socket that has it.
func TestNewCredentialsLeaveNoSocketsBehind(t *testing.T) {
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.LocalAddr().String()
	_ = free.Close()
	h := &hosts{network: Network{Listen: port}}
	defer h.close()
	offer := func(credential string) viewer.OfferedLink {
		t.Helper()
		s := viewer.LinkSettings{Servers: []viewer.ICEServer{{URLs: []string{"stun:127.0.0.1:1"}, Username: "u", Credential: credential}}}
		link, _, err := h.Offer(s, silent{make(chan peer.CloseReason, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	kept := offer("first")
	for i := range 5 {
		link := offer(strconv.Itoa(i))
		link.Close(peer.CloseShutdown, nil)
		<-link.Done()
	}
	offer("last")
	if len(h.list) != 2 || h.list[0].Links() != 1 || h.list[0].Addr().String() != port {
		t.Errorf("%d sockets for two links, the first at %s", len(h.list), h.list[0].Addr())
	}
	select {
	case <-kept.Done():
		t.Error("a link has ended because its credentials are old")
	default:
	}
}

func TestCloseEndsWhatPlays(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hang)
	v, err := Start(viewer.Config{URL: server.URL + "/m.m3u8"}, Network{})
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	if _, err := Start(viewer.Config{}, Network{}); err == nil {
		t.Error("plays nothing")
	}
}
