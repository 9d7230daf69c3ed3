package netlab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"
)

// peer is pion in a host: its one socket is the host's.
func peer(t *testing.T, h *Host) *webrtc.PeerConnection {
	t.Helper()
	conn, err := h.ListenUDP()
	if err != nil {
		t.Fatal(err)
	}
	mux := webrtc.NewICEUDPMux(nil, conn)
	engine := webrtc.SettingEngine{}
	engine.SetICEUDPMux(mux)
	engine.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(engine)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(pc.GracefulClose(), mux.Close(), conn.Close()) })
	return pc
}

// describe makes a description final, with all candidates in it.
func describe(t *testing.T, pc *webrtc.PeerConnection, sdp webrtc.SessionDescription, err error) webrtc.SessionDescription {
	t.Helper()
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := errors.Join(err, pc.SetLocalDescription(sdp)); err != nil {
		t.Fatal(err)
	}
	<-gathered
	return *pc.LocalDescription()
}

// greeting crosses the line in both directions.
const greeting = "over the line"

// Two pions a line apart: every packet of theirs takes the line's delay.
func TestPion(t *testing.T) {
	const delay = 10 * time.Millisecond
	lab, a, b, line := pair(t, Both(Link{Rate: 10_000_000, Delay: delay, Queue: 64 << 10}))
	offerer, answerer := peer(t, a), peer(t, b)
	answerer.OnDataChannel(func(c *webrtc.DataChannel) {
		c.OnMessage(func(m webrtc.DataChannelMessage) { _ = c.Send(m.Data) })
	})
	channel, err := offerer.CreateDataChannel("greeting", nil)
	if err != nil {
		t.Fatal(err)
	}
	var sent time.Time
	back := make(chan time.Duration, 1)
	channel.OnOpen(func() {
		sent = time.Now()
		_ = channel.SendText(greeting)
	})
	channel.OnMessage(func(m webrtc.DataChannelMessage) { back <- time.Since(sent) })
	offer, err := offerer.CreateOffer(nil)
	if err = errors.Join(err, answerer.SetRemoteDescription(describe(t, offerer, offer, err))); err != nil {
		t.Fatal(err)
	}
	answer, err := answerer.CreateAnswer(nil)
	if err = errors.Join(err, offerer.SetRemoteDescription(describe(t, answerer, answer, err))); err != nil {
		t.Fatal(err)
	}
	select {
	case took := <-back:
		if took < 2*delay {
			t.Errorf("there and back in %v over a line that needs %v", took, 2*delay)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no data channel within 30 s")
	}
	r, err := lab.Report()
	if err != nil {
		t.Fatal(err)
	}
	if up := r.Directions[line.Up.Name]; up.Delivered < 5 {
		t.Errorf("the line carried %+v", up)
	}
}

// browserFlags start Chromium without a window and without traffic of its own.
var browserFlags = []string{
	"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
}

// A page is loaded from one host by real Chromium in another, and opens a data channel to pion in a third.
func TestChromium(t *testing.T) {
	lab := newLab(t, Options{})
	browser, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	core := lab.Router("core")
	access := Both(Link{Rate: 20_000_000, Delay: 5 * time.Millisecond, Queue: 64 << 10})
	origin, _ := lab.Attach("origin", core, access)
	viewer, _ := lab.Attach("viewer", core, access)
	friend, _ := lab.Attach("friend", core, access)
	start(t, lab)

	pc, heard := peer(t, friend), make(chan string, 1)
	channel, err := pc.CreateDataChannel("greeting", nil)
	if err != nil {
		t.Fatal(err)
	}
	channel.OnOpen(func() { _ = channel.SendText(greeting) })
	channel.OnMessage(func(m webrtc.DataChannelMessage) { heard <- string(m.Data) })
	offer, err := pc.CreateOffer(nil)
	page := fmt.Sprintf(answering, js(t, describe(t, pc, offer, err)))
	from := make(chan netip.Addr, 1)
	url := serve(t, origin, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/answer" {
			var answer webrtc.SessionDescription
			if err := errors.Join(json.NewDecoder(r.Body).Decode(&answer), pc.SetRemoteDescription(answer)); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
			from <- netip.MustParseAddrPort(r.RemoteAddr).Addr()
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page)
	})
	cmd := viewer.Command(t.Context(), browser, append(browserFlags, "--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", url)...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	deadline := time.After(90 * time.Second)
	select {
	case addr := <-from:
		if addr != viewer.Addr() {
			t.Errorf("the page's requests come from %v, the viewer is %v", addr, viewer.Addr())
		}
	case <-deadline:
		t.Fatal("the page did not answer within 90 s")
	}
	select {
	case got := <-heard:
		if got != "heard: "+greeting {
			t.Errorf("the browser said %q", got)
		}
	case <-deadline:
		t.Fatal("no data channel within 90 s")
	}
}

// answering is a page that answers an offer and says what it hears.
const answering = `<!doctype html><script type="module">
const pc = new RTCPeerConnection();
pc.ondatachannel = ({ channel }) => { channel.onmessage = ({ data }) => channel.send('heard: ' + data); };
await pc.setRemoteDescription(%s);
await pc.setLocalDescription();
if (pc.iceGatheringState !== 'complete') {
	await new Promise((done) => { pc.onicegatheringstatechange = () => pc.iceGatheringState === 'complete' && done(); });
}
await fetch('/answer', { method: 'POST', body: JSON.stringify(pc.localDescription) });
</script>`

func js(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// serve serves HTTP in a host until the test ends and returns the address of its root.
func serve(t *testing.T, h *Host, handle http.HandlerFunc) string {
	t.Helper()
	listener, err := h.Listen(t.Context(), "tcp", net.JoinHostPort(h.Addr().String(), "80"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handle}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), ignore(<-done, http.ErrServerClosed)); err != nil {
			t.Error(err)
		}
	})
	return "http://" + h.Addr().String() + "/"
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
