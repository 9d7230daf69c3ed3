package joinbench

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// timeline is what a viewer's sockets and links saw, and when. It stands between the viewer and its ports, changes
// nothing, and takes the pieces' measure for itself: with the certificates that came over the links.
type timeline struct {
	done chan struct{} // closed with the first piece
	hold time.Duration // how long the open socket waits for its hello

	mu      sync.Mutex
	start   time.Time            // guarded by mu: of the hello
	marks   map[string]time.Time // guarded by mu: of the session
	links   []*tracedLink        // guarded by mu
	byOffer map[string]*tracedLink
	byID    map[signal.ID]*tracedLink
	certs   map[segment.ID]*certificate.Certificate // guarded by mu
	first   *tracedLink                             // guarded by mu: whose piece was there first
}

func newTimeline(hold time.Duration) *timeline {
	return &timeline{
		done: make(chan struct{}), hold: hold, marks: map[string]time.Time{}, byOffer: map[string]*tracedLink{}, byID: map[signal.ID]*tracedLink{},
		certs: map[segment.ID]*certificate.Certificate{},
	}
}

// note keeps the first time of something. Under mu.
func note(marks map[string]time.Time, what string) {
	if marks[what].IsZero() {
		marks[what] = time.Now()
	}
}

type tracedDialer struct {
	viewer.Dialer
	t *timeline
}

// Dial implements viewer.Dialer.
func (d tracedDialer) Dial(url, origin string, events viewer.SocketEvents) viewer.Socket {
	return tracedSocket{d.Dialer.Dial(url, origin, heard{events, d.t}), d.t}
}

type tracedSocket struct {
	viewer.Socket
	t *timeline
}

// Send implements viewer.Socket.
func (s tracedSocket) Send(text []byte) {
	s.t.signaled(text)
	s.Socket.Send(text)
}

type heard struct {
	viewer.SocketEvents
	t *timeline
}

// Opened implements viewer.SocketEvents.
func (h heard) Opened() { time.AfterFunc(h.t.hold, h.SocketEvents.Opened) }

// Message implements viewer.SocketEvents.
func (h heard) Message(text []byte) {
	h.t.signaled(text)
	h.SocketEvents.Message(text)
}

// signaled notes a message to or from the tracker.
func (t *timeline) signaled(text []byte) {
	m, err := signal.Decode(text)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m := m.(type) {
	case *signal.Hello:
		if t.start.IsZero() {
			t.start = time.Now()
		}
	case *signal.Signal:
		t.signal(m.Kind, m.SDP, m.Role, m.Link)
	default:
		note(t.marks, m.Type())
	}
	if join, ok := m.(*signal.Join); ok {
		for _, o := range join.Offers {
			t.signal("offer", o.SDP, "", o.Link)
		}
	}
}

// signal is under mu.
func (t *timeline) signal(kind, sdp, role string, id signal.ID) {
	if l := t.byOffer[sdp]; kind == "offer" && l != nil {
		t.byID[id] = l
		note(l.marks, "offer")
	}
	if l := t.byID[id]; kind == "answer" && l != nil {
		l.role = role
		note(l.marks, "answer")
	}
}

type tracedLinks struct {
	viewer.Links
	t *timeline
}

// Offer implements viewer.Links.
func (l tracedLinks) Offer(s viewer.LinkSettings, events transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	trace := &tracedLink{t: l.t, LinkEvents: events, marks: map[string]time.Time{}, asked: map[uint32]*asked{}}
	link, offer, err := l.Links.Offer(s, trace)
	if err != nil {
		return nil, offer, err
	}
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	trace.link, _ = link.(*rtclink.Link)
	l.t.links = append(l.t.links, trace)
	l.t.byOffer[offer.SDP] = trace
	return tracedSending{link, trace}, offer, nil
}

// tracedLink is what one link told its owner.
type tracedLink struct {
	transfer.LinkEvents
	t     *timeline
	link  *rtclink.Link
	role  string               // guarded by t.mu: of the peer
	marks map[string]time.Time // guarded by t.mu
	asked map[uint32]*asked    // guarded by t.mu
}

// asked is a piece that was asked for.
type asked struct {
	segment segment.ID
	piece   int
	data    []byte
	has     int
}

// Open implements transfer.LinkEvents.
func (l *tracedLink) Open() {
	l.t.mu.Lock()
	note(l.marks, "open")
	l.t.mu.Unlock()
	l.LinkEvents.Open()
}

// Control implements transfer.LinkEvents.
func (l *tracedLink) Control(b []byte) {
	if m, err := peer.Decode(peer.Control, b); err == nil {
		l.t.mu.Lock()
		switch m := m.(type) {
		case peer.Hello:
			note(l.marks, "peer_hello")
		case peer.Have:
			note(l.marks, "have")
		case peer.Certificate:
			note(l.marks, "certificate")
			if c, err := certificate.Parse(append([]byte(nil), m.Raw...)); err == nil {
				l.t.certs[m.Segment] = c
			}
			l.t.verify()
		}
		l.t.mu.Unlock()
	}
	l.LinkEvents.Control(b)
}

// Data implements transfer.LinkEvents.
func (l *tracedLink) Data(b []byte) {
	if m, err := peer.DecodeData(b, len(b)); err == nil {
		l.t.mu.Lock()
		note(l.marks, "data")
		if a := l.asked[m.Request]; a != nil {
			a.has += copy(a.data[m.Offset:], m.Payload)
			l.t.verify()
		}
		l.t.mu.Unlock()
	}
	l.LinkEvents.Data(b)
}

// verify looks for a first piece that matches. Under mu.
func (t *timeline) verify() {
	if t.first != nil {
		return
	}
	for _, l := range t.links {
		for _, a := range l.asked {
			if c := t.certs[a.segment]; c != nil && a.has > 0 && c.CheckPiece(a.piece, a.data[:a.has]) {
				note(l.marks, "piece")
				t.first = l
				close(t.done)
				return
			}
		}
	}
}

// tracedSending is a link as its owner uses it.
type tracedSending struct {
	viewer.OfferedLink
	l *tracedLink
}

// SendControl implements transfer.Link.
func (s tracedSending) SendControl(b []byte) {
	if m, err := peer.Decode(peer.Control, b); err == nil {
		s.l.t.mu.Lock()
		switch m := m.(type) {
		case peer.CertificateRequest:
			note(s.l.marks, "certificate_request")
		case peer.Request:
			note(s.l.marks, "request")
			for _, q := range m.Requests {
				s.l.asked[q.ID] = &asked{segment: m.Segment, piece: int(q.Piece), data: make([]byte, peer.PieceSize)}
			}
		}
		s.l.t.mu.Unlock()
	}
	s.OfferedLink.SendControl(b)
}

// result waits for the first piece and returns the legs, in ms since the hello.
func (t *timeline) result(ctx context.Context, rtt, patience time.Duration) (map[string]float64, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, errors.New("no piece of a peer came in time")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	values := map[string]float64{}
	take := func(marks map[string]time.Time) {
		for _, leg := range legs {
			if at := marks[leg]; !at.IsZero() {
				values[leg] = float64(at.Sub(t.start).Microseconds()) / 1000
			}
		}
	}
	take(t.marks)
	t.first.stages()
	take(t.first.marks)
	values["round_trips"] = values["piece"] / float64(rtt.Milliseconds())
	return values, nil
}

// stages asks the link when it had come how far. Under mu.
func (l *tracedLink) stages() {
	if l.link == nil {
		return
	}
	s := l.link.Stages()
	l.marks["ice"], l.marks["dtls"], l.marks["sctp"] = s.Reached, s.Secured, s.Associated
}

// String is every link's way, for people.
func (t *timeline) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	line := func(name string, marks map[string]time.Time) {
		var list []string
		for k, at := range marks {
			if !at.IsZero() {
				list = append(list, fmt.Sprintf("%7.1f %s", float64(at.Sub(t.start).Microseconds())/1000, k))
			}
		}
		sort.Strings(list)
		fmt.Fprintf(&b, "  %s: %s\n", name, strings.Join(list, ","))
	}
	line("session", t.marks)
	for _, l := range t.links {
		l.stages()
		line(l.role, l.marks)
	}
	return b.String()
}
