package load_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/lab/load"
)

// mediaServer is a server of WHIP and WHEP with one stream, of pion.
type mediaServer struct {
	t   *testing.T
	api *webrtc.API
	at  *httptest.Server

	mu    sync.Mutex
	video *webrtc.TrackLocalStaticRTP                // guarded by mu: nil before there is a publisher
	there map[string]*webrtc.PeerConnection          // guarded by mu
	made  int                                        // guarded by mu
	wrong func(w http.ResponseWriter, answer []byte) // instead of 201
}

func newMediaServer(t *testing.T) *mediaServer {
	t.Helper()
	var s webrtc.SettingEngine
	s.SetIncludeLoopbackCandidate(true)
	s.SetIPFilter(net.IP.IsLoopback)
	m := &mediaServer{t: t, api: webrtc.NewAPI(webrtc.WithSettingEngine(s)), there: map[string]*webrtc.PeerConnection{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /live/whip", func(w http.ResponseWriter, r *http.Request) { m.take(w, r, true) })
	mux.HandleFunc("POST /live/whep", func(w http.ResponseWriter, r *http.Request) { m.take(w, r, false) })
	mux.HandleFunc("POST /moved/whip", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/live/whip", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("DELETE /session/{id}", func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		p := m.there[r.PathValue("id")]
		delete(m.there, r.PathValue("id"))
		if p == nil {
			http.NotFound(w, r)
			return
		}
		_ = p.Close()
	})
	m.at = httptest.NewServer(mux)
	t.Cleanup(func() {
		m.at.Close()
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, p := range m.there {
			_ = p.Close()
		}
	})
	return m
}

// take answers an offer.
func (m *mediaServer) take(w http.ResponseWriter, r *http.Request, publishes bool) {
	offer, _ := io.ReadAll(r.Body)
	if r.Header.Get("Authorization") != "Bearer good" || r.Header.Get("Content-Type") != "application/sdp" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	p, err := m.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		m.t.Error(err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if publishes {
		if m.video, err = webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "video", "live"); err != nil {
			m.t.Error(err)
		}
		p.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
			for {
				packet, _, err := t.ReadRTP()
				if err != nil {
					return
				}
				_ = m.video.WriteRTP(packet)
			}
		})
	} else if m.video == nil {
		_ = p.Close()
		http.Error(w, "nothing is published", http.StatusNotFound)
		return
	} else if _, err := p.AddTrack(m.video); err != nil {
		m.t.Error(err)
	}
	answer := m.describe(p, string(offer))
	if m.wrong != nil {
		_ = p.Close()
		m.wrong(w, answer)
		return
	}
	m.made++
	id := fmt.Sprint(m.made)
	m.there[id] = p
	w.Header().Set("Location", "/session/"+id)
	w.Header().Set("Content-Type", "application/sdp")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer)
}

// describe is the answer, with all candidates.
func (m *mediaServer) describe(p *webrtc.PeerConnection, offer string) []byte {
	whole := webrtc.GatheringCompletePromise(p)
	err := p.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer})
	var answer webrtc.SessionDescription
	if err == nil {
		answer, err = p.CreateAnswer(nil)
	}
	if err == nil {
		err = p.SetLocalDescription(answer)
	}
	if err != nil {
		m.t.Error(err)
		return nil
	}
	<-whole
	return []byte(p.LocalDescription().SDP)
}

func (m *mediaServer) group(b load.Behavior, path string, clients int) load.Group {
	g := group(string(b), b, clients)
	g.Rate, g.Endpoint, g.Token = 0, m.at.URL+path, "good"
	return g
}

// TestPublishersAndViewersOfAnotherServer: video goes by WHIP to a server and comes from it by WHEP, and clients that leave say so.
func TestPublishersAndViewersOfAnotherServer(t *testing.T) {
	m := newMediaServer(t)
	viewers := m.group(load.WHEP, "/live/whep", 3)
	viewers.After = 2 * time.Second
	r := newRig(t, load.Scenario{Name: "media", Groups: []load.Group{m.group(load.WHIP, "/moved/whip", 1), viewers}})
	got := r.until(t, func(s load.Sample) bool { return s.Up == 4 && s.Received > 300_000 })
	if got.Clients.Opened < 4 || got.Clients.Lost > 0 {
		t.Errorf("%+v", got.Clients)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.there) != 0 || m.made != int(got.Clients.Opened) {
		t.Errorf("%d sessions are left of %d", len(m.there), m.made)
	}
}

// said keeps what a run tells a person.
type said struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// TestEndpointsThatDoNotKeepToTheirSpecification: what is wrong is said, and the client counts as failed.
func TestEndpointsThatDoNotKeepToTheirSpecification(t *testing.T) {
	created := func(kind, location string) func(http.ResponseWriter, []byte) {
		return func(w http.ResponseWriter, answer []byte) {
			if location != "" {
				w.Header().Set("Location", location)
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(answer)
		}
	}
	for name, c := range map[string]struct {
		wrong func(http.ResponseWriter, []byte)
		want  string
	}{
		"refuses":          {func(w http.ResponseWriter, _ []byte) { http.Error(w, "full", http.StatusServiceUnavailable) }, "503 Service Unavailable: full"},
		"no Location":      {created("application/sdp", ""), "no Location"},
		"another Location": {created("application/sdp", "ftp://192.0.2.1/x"), "no http or https address"},
		"no SDP":           {created("text/html", "/session/0"), `"text/html"`},
		"too much": {func(w http.ResponseWriter, _ []byte) {
			created("application/sdp", "/session/0")(w, make([]byte, 70<<10))
		}, "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMediaServer(t)
			m.wrong = c.wrong
			r := newRig(t, load.Scenario{Name: "wrong", Groups: []load.Group{m.group(load.WHIP, "/live/whip", 1)}})
			var told said
			r.runner.Log = &told
			got := r.until(t, func(s load.Sample) bool { return s.Failed == 1 })
			told.mu.Lock()
			defer told.mu.Unlock()
			if got.Clients.Failed != 1 || !strings.Contains(told.text.String(), c.want) {
				t.Errorf("%+v, told %q", got.Clients, told.text.String())
			}
		})
	}
	var e error = &load.EndpointError{Endpoint: "http://x/whip", Status: "404 Not Found", Text: "no"}
	if !errors.As(e, new(*load.EndpointError)) || e.Error() != "load: http://x/whip answers 404 Not Found: no" {
		t.Error(e)
	}
}

// TestEndpointsOfAScenario: addresses that are none are refused.
func TestEndpointsOfAScenario(t *testing.T) {
	for endpoint, fine := range map[string]bool{
		"http://127.0.0.1:8889/live/whip": true, "https://example.com/{client}/whip": true, "": false, "ws://x/": false, "http:///x": false, "%zz": false,
	} {
		s := load.Scenario{Name: "x", Groups: []load.Group{{Name: "a", Behavior: load.WHIP, Clients: 1, Hold: time.Second, Endpoint: endpoint}}}
		if bad := s.Check(); (len(bad) == 0) != fine {
			t.Errorf("%q: %v", endpoint, bad)
		}
	}
}
