package arm_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/load"
)

const patience = 60 * time.Second

// rig is a controller with arms in this process.
type rig struct {
	t   *testing.T
	ctx context.Context
	c   *load.Controller
}

func newRig(t *testing.T) *rig {
	t.Helper()
	current := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	c, err := load.Listen(load.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		goleak.VerifyNone(t, current)
	})
	return &rig{t, ctx, c}
}

// arm starts one; ended gets what Run returned.
func (r *rig) arm(cfg arm.Config) (a *load.Arm, ended <-chan error) {
	r.t.Helper()
	cfg.Controller = r.c.URL()
	over := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		over <- arm.Run(r.ctx, cfg)
	}()
	r.t.Cleanup(func() {
		_ = r.c.Close()
		<-done
	})
	a, err := r.c.Next(r.ctx)
	if err != nil {
		select {
		case err = <-over:
		default:
		}
		r.t.Fatal(err)
	}
	return a, over
}

func (r *rig) session(a *load.Arm, id string, b armwire.SessionBody) *load.Session {
	r.t.Helper()
	s, err := a.Create(r.ctx, id, b)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) connect(one, two *load.Session, offer armwire.OfferBody) {
	r.t.Helper()
	if err := load.Connect(r.ctx, one, two, offer); err != nil {
		r.t.Fatal(err)
	}
	for _, s := range []*load.Session{one, two} {
		if err := s.WaitUp(r.ctx); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) must(a *load.Arm, kind armwire.Kind, id string, body any) armwire.Message {
	r.t.Helper()
	m, err := a.Call(r.ctx, kind, id, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) state(s *load.Session) armwire.StateBody {
	r.t.Helper()
	b, bad := armwire.DecodeBody[armwire.StateBody](r.must(s.Arm, armwire.GetState, s.ID, nil))
	if bad != nil {
		r.t.Fatal(bad)
	}
	return b
}

// until asks again as long as ok is false. The statistics of the arm set the pace: there is no other event.
func (r *rig) until(what string, a *load.Arm, ok func() bool) {
	r.t.Helper()
	told := make(chan struct{}, 1)
	a.Listen(func(*load.Arm, armwire.Message) {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	for !ok() {
		select {
		case <-told:
		case <-r.ctx.Done():
			r.t.Fatalf("not in time: %s", what)
		}
	}
}

func TestChunksFlowOnBothStacks(t *testing.T) {
	for _, stack := range []armwire.Stack{armwire.PeerConnection, armwire.Link} {
		t.Run(string(stack), func(t *testing.T) {
			r := newRig(t)
			one, _ := r.arm(arm.Config{Name: "one", MaxSockets: 2})
			two, _ := r.arm(arm.Config{Name: "two", MaxSockets: 2})
			r.must(one, armwire.AddMediaSource, "", armwire.SourceBody{Source: "d", Kind: armwire.SourceData, Rate: 400_000, Chunk: 1000})
			var offered []*load.Session
			for i, b := range []armwire.SessionBody{{Stack: stack}, {Stack: stack, Echo: true}, {Stack: stack}} {
				source := "d"
				if i == 2 {
					source = "" // idle
				}
				id := "s" + string(rune('0'+i))
				s, peer := r.session(one, id, armwire.SessionBody{Stack: stack, Source: source}), r.session(two, id, b)
				r.connect(s, peer, armwire.OfferBody{Data: 1})
				offered = append(offered, s)
			}
			r.until("chunks at the second arm, echoes at the first", two, func() bool {
				return two.Statistics().Traffic.ReceivedChunks > 20 && one.Statistics().Traffic.ReceivedChunks > 10
			})
			if s := r.state(offered[0]); s.Phase != "up" || s.Sent == 0 || s.Stack != stack || s.Source != "d" {
				t.Errorf("%+v", s)
			}
			if s := r.state(offered[2]); s.Phase != "up" || s.Sent != 0 {
				t.Errorf("an idle session: %+v", s)
			}
			b := two.Statistics()
			if b.Sessions.Opened != 3 || b.Sessions.Now != 3 || b.Sessions.Failed != 0 || b.Machine.CPU == 0 || b.Machine.RSS == 0 {
				t.Errorf("%+v", b)
			}
			r.must(one, armwire.Hangup, offered[0].ID, nil)
			<-offered[0].Down()
			if reason := offered[0].Reason(); reason != "hangup" {
				t.Errorf("the session is down because of %q", reason)
			}
			r.until("the peer notices", two, func() bool { return two.Statistics().Sessions.Up == 2 })
			if err := offered[1].Destroy(r.ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMediaIsSharedForwardedAndRecorded(t *testing.T) {
	r := newRig(t)
	folder := t.TempDir()
	server, _ := r.arm(arm.Config{Name: "server", MaxSockets: 1})
	clients, _ := r.arm(arm.Config{Name: "clients", RecordDir: folder, MaxSockets: 8})
	r.must(clients, armwire.AddMediaSource, "", armwire.SourceBody{
		Source: "cam", Kind: armwire.SourceSynthetic, Video: &armwire.TrackBody{Codec: armwire.VP8, Bitrate: 300_000}, Audio: &armwire.TrackBody{Codec: armwire.Opus},
	})
	publisher, at := r.session(clients, "p", armwire.SessionBody{Source: "cam"}), r.session(server, "p", armwire.SessionBody{})
	r.connect(publisher, at, armwire.OfferBody{Audio: armwire.SendOnly, Video: armwire.SendOnly})
	r.must(server, armwire.AddMediaSource, "", armwire.SourceBody{
		Source: "p", Kind: armwire.SourceForward, Session: "p", Video: &armwire.TrackBody{Codec: armwire.VP8}, Audio: &armwire.TrackBody{Codec: armwire.Opus},
	})
	recorded := make(chan string, 8)
	clients.Listen(func(_ *load.Arm, m armwire.Message) {
		if b, bad := armwire.DecodeBody[armwire.RecordingBody](m); m.Kind == armwire.Recording && bad == nil {
			recorded <- b.State + filepath.Ext(b.File)
		}
	})
	var viewers []*load.Session
	for _, id := range []string{"v1", "v2"} {
		viewer := r.session(clients, id, armwire.SessionBody{Record: id == "v1"})
		r.connect(r.session(server, id, armwire.SessionBody{Source: "p"}), viewer, armwire.OfferBody{Audio: armwire.SendOnly, Video: armwire.SendOnly})
		viewers = append(viewers, viewer)
	}
	for range 2 {
		if s := <-recorded; !strings.HasPrefix(s, "started") {
			t.Errorf("recording %s", s)
		}
	}
	r.until("media at both viewers", clients, func() bool {
		return r.state(viewers[0]).Received > 150_000 && r.state(viewers[1]).Received > 50_000
	})
	_ = clients
	clients.Listen(func(_ *load.Arm, m armwire.Message) {
		if b, bad := armwire.DecodeBody[armwire.RecordingBody](m); m.Kind == armwire.Recording && bad == nil {
			recorded <- b.State + filepath.Ext(b.File)
		}
	})
	if err := viewers[0].Destroy(r.ctx); err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{<-recorded: true, <-recorded: true}
	if !ended["completed.ivf"] || !ended["completed.ogg"] {
		t.Errorf("recordings: %v", ended)
	}
	for ending, magic := range map[string]string{"ivf": "DKIF", "ogg": "OggS"} {
		files, _ := filepath.Glob(filepath.Join(folder, "*."+ending))
		if len(files) != 1 {
			t.Fatalf("%d files of %s", len(files), ending)
		}
		b, err := os.ReadFile(files[0])
		if err != nil || len(b) < 1000 || string(b[:4]) != magic {
			t.Errorf("%s: %d bytes, %v", ending, len(b), err)
		}
	}
}

func TestCommandsThatCannotBe(t *testing.T) {
	r := newRig(t)
	a, _ := r.arm(arm.Config{Name: "one", MaxSessions: 2, MaxSources: 1, MaxSockets: 1, Listen: netip.MustParseAddr("127.0.0.1")})
	r.must(a, armwire.AddMediaSource, "", armwire.SourceBody{Source: "d", Kind: armwire.SourceData, Rate: 8000, Chunk: 100})
	s := r.session(a, "s", armwire.SessionBody{})
	offered := r.session(a, "o", armwire.SessionBody{Stack: armwire.Link})
	r.must(a, armwire.GenerateOffer, offered.ID, armwire.OfferBody{Data: 1})
	for _, c := range []struct {
		kind armwire.Kind
		id   string
		body any
		code armwire.Code
	}{
		{"attack", "s", nil, armwire.UnknownCommand},
		{armwire.Register, "", nil, armwire.UnknownCommand},
		{armwire.CreateSession, "", nil, armwire.BadMessage},
		{armwire.CreateSession, "s", nil, armwire.Exists},
		{armwire.CreateSession, "n", nil, armwire.Limit},
		{armwire.CreateSession, "n", map[string]any{"source": 1}, armwire.BadField},
		{armwire.CreateSession, "n", armwire.SessionBody{Record: true}, armwire.Unsupported},
		{armwire.AddMediaSource, "", armwire.SourceBody{Source: "d", Kind: armwire.SourceData, Rate: 8000, Chunk: 100}, armwire.Exists},
		{armwire.AddMediaSource, "", armwire.SourceBody{Source: "e", Kind: armwire.SourceData, Rate: 8000, Chunk: 100}, armwire.Limit},
		{armwire.RemoveMediaSource, "", armwire.SourceName{Source: "e"}, armwire.UnknownSource},
		{armwire.Hangup, "", nil, armwire.BadMessage},
		{armwire.Hangup, "n", nil, armwire.UnknownSession},
		{armwire.Hangup, "s", nil, armwire.WrongState},
		{armwire.GenerateAnswer, "s", nil, armwire.WrongState},
		{armwire.HandleAnswer, "s", armwire.DescriptionBody{SDP: "v=0"}, armwire.WrongState},
		{armwire.Trickle, "s", armwire.CandidateBody{}, armwire.WrongState},
		{armwire.HandleOffer, "s", armwire.DescriptionBody{SDP: "v=0"}, armwire.BadSDP},
		{armwire.HandleAnswer, "o", armwire.DescriptionBody{SDP: "no description"}, armwire.BadSDP},
		{armwire.GenerateOffer, "o", armwire.OfferBody{Video: armwire.RecvOnly}, armwire.Unsupported},
	} {
		_, err := a.Call(r.ctx, c.kind, c.id, c.body)
		var typed *armwire.Error
		if !errors.As(err, &typed) || typed.Code != c.code || typed.Reason == "" {
			t.Errorf("%s of %q: %v, expected %s", c.kind, c.id, err, c.code)
		}
	}
	r.must(a, armwire.RemoveMediaSource, "", armwire.SourceName{Source: "d"})
	if err := s.Destroy(r.ctx); err != nil {
		t.Error(err)
	}
	<-s.Down()
}

// TestSessionsOfOneSocketHaveDifferentPeers: a second connection with the same addresses at both ends is refused.
func TestSessionsOfOneSocketHaveDifferentPeers(t *testing.T) {
	for _, stack := range []armwire.Stack{armwire.PeerConnection, armwire.Link} {
		r := newRig(t)
		one, _ := r.arm(arm.Config{Name: "one", MaxSockets: 1})
		two, _ := r.arm(arm.Config{Name: "two", MaxSockets: 1})
		body := armwire.SessionBody{Stack: stack}
		r.connect(r.session(one, "a", body), r.session(two, "a", body), armwire.OfferBody{Data: 1})
		second := r.session(one, "b", body)
		err := load.Connect(r.ctx, second, r.session(two, "b", body), armwire.OfferBody{Data: 1})
		var typed *armwire.Error
		if !errors.As(err, &typed) || typed.Code != armwire.PortInUse {
			t.Errorf("%s: %v, expected port-in-use", stack, err)
		}
	}
}

func TestAnArmEndsWithItsController(t *testing.T) {
	r := newRig(t)
	one, ended := r.arm(arm.Config{Name: "one"})
	two, _ := r.arm(arm.Config{Name: "two"})
	s := r.session(one, "s", armwire.SessionBody{Stack: armwire.Link})
	r.connect(s, r.session(two, "s", armwire.SessionBody{Stack: armwire.Link}), armwire.OfferBody{Data: 1})
	_ = r.c.Close()
	if err := <-ended; !errors.Is(err, arm.ErrController) {
		t.Errorf("the arm ended with %v", err)
	}
	<-s.Down()
	if s.Reason() != "arm-lost" {
		t.Errorf("the session is down because of %q", s.Reason())
	}
}
