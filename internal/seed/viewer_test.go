package seed_test

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// viewer is the other end of a link: pion, as the seed's own.
type viewer struct {
	w        *world
	id       signal.ID
	linkID   signal.ID
	swarm    signal.ID
	link     *rtclink.Link
	session  *transfer.Session
	download *transfer.Download
	fetched  chan fetched

	ready    chan peer.Hello
	answers  chan peer.Message // certificates and their absence
	failed   chan string
	closed   chan peer.CloseReason
	accepted bool
	deaf     atomic.Bool                   // it reads control messages and does nothing for them
	hold     atomic.Pointer[chan struct{}] // control messages are read once it is closed
	holding  chan struct{}                 // one is being held

	flags  peer.Flags
	parts  *follower   // nil: it speaks no parts
	subnet string      // as its tracker tells the seed
	wanted []signal.ID // by an early offer
	said   []signal.Bytes
}

func (w *world) newViewer(n byte) *viewer {
	return &viewer{
		w: w, id: signal.ID{100, n}, linkID: signal.ID{200, n}, swarm: w.swarm, ready: make(chan peer.Hello, 1), answers: make(chan peer.Message, 1024), fetched: make(chan fetched, segment.MaxPieces),
		holding: make(chan struct{}, 1), failed: make(chan string, 4), closed: make(chan peer.CloseReason, 1),
	}
}

// connect offers a link and waits for the seed's hello.
func (w *world) connect(n byte, viewers int) *viewer {
	w.t.Helper()
	v := w.newViewer(n)
	v.offer(w.title(viewers))
	if h := wait(w.t, v.ready, "the seed's hello"); h.Flags&peer.OnDemand == 0 {
		w.t.Errorf("a seed's hello without on-demand: %+v", h)
	}
	return v
}

func (v *viewer) offer(title *bus.Title) {
	w := v.w
	w.mu.Lock()
	w.viewers[v.linkID] = v
	w.mu.Unlock()
	link, offer, err := w.dial.Offer(v)
	if err != nil {
		w.t.Fatal(err)
	}
	v.link = link
	hello := peer.Hello{MinVersion: 1, MaxVersion: 1, Flags: v.flags, MaxRequests: 64, Peer: v.id, Swarm: v.swarm}
	v.session = transfer.NewSession(link, hello, w.seed.ID(), v, time.Now)
	v.download = transfer.NewDownload(v.session.Send, time.Now, v)
	if v.parts != nil {
		v.download.Pushed = v.parts.pushed
		v.session.Pong = func(nonce uint32, _ time.Duration) { v.parts.pongs <- nonce }
	}
	m := v.message("offer")
	m.SDP, m.Plan = offer.SDP, &signal.Plan{V: 1, Data: offer.Plan.Data, Message: offer.Plan.Message}
	m.Early, m.Wanted = v.wanted != nil, v.wanted
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindSignal, Signal: m, Title: title, Subnet: v.subnet})
}

// answered connects a viewer that wants certificates and returns those that came with the answer.
func (w *world) answered(v *viewer, viewers int) (out []peer.Certificate) {
	w.t.Helper()
	v.offer(w.title(viewers))
	wait(w.t, v.ready, "the hello that the answer says")
	for _, b := range v.said {
		m, err := peer.Decode(peer.Control, b)
		if err != nil {
			w.t.Fatal(err)
		}
		if c, ok := m.(peer.Certificate); ok {
			out = append(out, c)
		}
	}
	return out
}

func (v *viewer) message(kind string) *bus.Signal {
	return &bus.Signal{Tracker: v.w.tracker, Signal: signal.Signal{
		Swarm: v.swarm, From: v.id, To: v.w.seed.ID(), Role: "viewer", Link: v.linkID, Kind: kind,
	}}
}

func (v *viewer) signaled(m *bus.Signal) {
	switch m.Kind {
	case "answer":
		v.said = m.Said
		plan := peer.Plan{V: m.Plan.V, Data: m.Plan.Data, Message: m.Plan.Message}
		if err := v.link.Accept(transfer.Description{SDP: m.SDP, Plan: plan}); err != nil {
			v.w.t.Error(err)
		}
		v.accepted = true
	case "candidate":
		if !v.accepted {
			v.w.t.Error("a candidate came before the answer")
		}
		_ = v.link.AddCandidate(transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine)})
	case "fail":
		v.failed <- m.Reason
	}
}

func (v *viewer) Candidate(c transfer.Candidate) {
	m := v.message("candidate")
	if c.End {
		m.Kind = "end"
	}
	m.Candidate, m.Mid, m.MLine = c.Candidate, c.Mid, int(c.Line)
	v.w.toSeed(&bus.SeedDelivery{Kind: bus.KindSignal, Signal: m})
}

func (v *viewer) Open() {
	v.session.Open()
	for _, m := range v.said {
		v.session.Control(m)
	}
}

func (v *viewer) Control(b []byte) {
	if v.deaf.Load() {
		return
	}
	if held := v.hold.Load(); held != nil {
		select {
		case v.holding <- struct{}{}:
		default:
		}
		<-*held
	}
	v.session.Control(b)
}

// holdControl has control messages wait until held is closed.
func (v *viewer) holdControl(held chan struct{}) { v.hold.Store(&held) }

func (v *viewer) Data(b []byte)             { v.session.Data(b) }
func (v *viewer) Drain()                    {}
func (v *viewer) Closed(r peer.CloseReason) { v.closed <- r }
func (v *viewer) Ready(h peer.Hello) error  { v.ready <- h; return nil }
func (v *viewer) Piece(m peer.Data) error   { return v.download.Data(m) }
func (v *viewer) Message(m peer.Message) error {
	if v.parts != nil && m.Type() >= peer.TypeFollow {
		v.parts.heard(m)
		return nil
	}
	switch m := m.(type) {
	case peer.Certificate:
		m.Raw = bytes.Clone(m.Raw)
		v.answers <- m
	case peer.CertificateNone:
		v.answers <- m
	case peer.Reject:
		for range v.download.Reject(m) {
			v.fetched <- fetched{rejected: &m.Reason}
		}
	}
	return nil
}

// fetched is what came of one request.
type fetched struct {
	piece    int
	data     []byte
	rejected *peer.RejectReason
}

// Arrived implements transfer.DownloadEvents.
func (v *viewer) Arrived(o transfer.Order, data []byte, matches bool) {
	v.download.Remove(o.ID)
	if !matches {
		v.w.t.Errorf("piece %d does not match its digest", o.Piece)
	}
	v.fetched <- fetched{piece: o.Piece, data: data}
}

// Wasted implements transfer.DownloadEvents.
func (v *viewer) Wasted(int) {}

// certificate asks for one and returns it parsed, or the reason why there is none.
func (v *viewer) certificate(name segment.Name) (*certificate.Certificate, *peer.CertificateNone) {
	v.w.t.Helper()
	id := v.w.id(name)
	v.session.Send(peer.CertificateRequest{Segments: []segment.ID{id}})
	switch m := wait(v.w.t, v.answers, "an answer for "+string(name)).(type) {
	case peer.Certificate:
		if m.Segment != id {
			v.w.t.Fatalf("asked for %s, got a certificate of another", name)
		}
		c, err := certificate.Parse(m.Raw)
		if err != nil {
			v.w.t.Fatal(err)
		}
		return c, nil
	case peer.CertificateNone:
		return nil, &m
	}
	panic("unreachable")
}

// fetch requests every piece of a certified segment.
func (v *viewer) fetch(c *certificate.Certificate) ([]byte, []peer.RejectReason) {
	v.w.t.Helper()
	out := make([]byte, c.Length)
	target := &transfer.Target{Segment: segment.NewID(c.Site, c.Name), Certificate: c}
	var pieces []int
	for i := range c.Digests {
		pieces = append(pieces, i)
	}
	var rejected []peer.RejectReason
	for some := range slices.Chunk(pieces, 128) { // a seed queues 256 of a link
		v.download.Request(target, peer.Foreground, "test", some...)
		for range some {
			f := wait(v.w.t, v.fetched, "a piece of "+string(c.Name))
			if f.rejected != nil {
				rejected = append(rejected, *f.rejected)
				continue
			}
			copy(out[f.piece*segment.PieceSize:], f.data)
		}
	}
	return out, rejected
}

func path(n segment.Name) string { return "/vod" + strings.SplitN(string(n), "#", 2)[0] }
