package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// hostile is a program that says it is a viewer that holds the whole film. It shows certificates and answers pings; of what it is
// asked for it sends so many bytes a second.
type hostile struct {
	s      *scene
	node   *node
	socket *simSocket
	rate   int // bytes per second; 0: it sends nothing
	// bursts has it send whole messages of half a piece, each once the one before is paid for at its rate.
	bursts bool
	// back has it come back under another name once its link has closed, or it was asked and then left alone for half a second.
	back bool
	// piece has it send one piece first, as an honest peer does; each, the first piece of each request.
	piece, each bool
	// busy has it say so long after each request that it is busy.
	busy time.Duration
	// dumb has it answer no request for a certificate.
	dumb bool

	names map[segment.ID]segment.Name
	link  *hostileLink
	all   *strangers
}

// strangers is what all identities of an attacker have seen together.
type strangers struct {
	identities int
	asked      int       // pieces
	since      time.Time // when the first of them was asked first
	ended      time.Time // when the last link of them closed
}

// hostileLink is its side of one link.
type hostileLink struct {
	h       *hostile
	link    transfer.Link
	session *transfer.Session
	waiting []peer.Data // what it was asked for
	asked   time.Time   // last; zero: never
	closed  bool
	paid    bool
	next    time.Time // when a burst may go out
}

// hostile has one come to the tracker, which introduces those that come later to it.
func (s *scene) hostile(rate int, all *strangers) *hostile {
	h := &hostile{s: s, rate: rate, all: all, names: s.film.names()}
	h.node = newNode(s.w, "hostile", 12.5e6, 12.5e6)
	h.appear()
	return h
}

func (h *hostile) appear() {
	h.all.identities++
	t := h.s.tracker
	n := h.all.identities
	h.socket = &simSocket{t: t, events: h, delay: oneWay, id: signal.ID{0xee, byte(n >> 8), byte(n)}}
	t.sessions[h.socket.id] = h.socket
	t.order = append(t.order, h.socket.id)
}

// again has it come back as another, which the tracker names to a viewer.
func (h *hostile) again(to signal.ID) {
	h.s.tracker.gone(h.socket)
	h.appear()
	if s := h.s.tracker.sessions[to]; s != nil {
		s.push(&signal.Introduce{Swarm: swarmID, Peers: []signal.Peer{{Peer: h.socket.id, Role: "viewer"}}})
	}
}

// Opened implements SocketEvents, as the next two do.
func (h *hostile) Opened() {}

func (h *hostile) Lost() {}

func (h *hostile) Message(b []byte) {
	decoded, err := signal.Decode(b)
	m, ok := decoded.(*signal.Signal)
	if err != nil || !ok || m.Kind != "offer" {
		return
	}
	l := &hostileLink{h: h}
	link, answer, err := h.node.Answer(LinkSettings{}, transfer.Description{SDP: m.SDP, Plan: peer.DefaultPlan}, l)
	if err != nil {
		panic(err)
	}
	l.link = link
	hello := peer.Hello{MinVersion: 1, MaxVersion: 1, MaxRequests: 256, Peer: h.socket.id, Swarm: swarmID}
	l.session = transfer.NewSession(link, hello, m.From, l, h.s.w.Now)
	h.link = l
	h.s.tracker.message(h.socket, &signal.Signal{
		Swarm: swarmID, To: m.From, Link: m.Link, Kind: "answer", SDP: answer.SDP,
		Plan: &signal.Plan{V: 1, Data: answer.Plan.Data, Message: answer.Plan.Message},
	})
	if h.back {
		l.watch(m.From)
	}
}

// watch has it come back once it is of no use to itself any more.
func (l *hostileLink) watch(victim signal.ID) {
	w := l.h.s.w
	idle := !l.asked.IsZero() && len(l.waiting) == 0 && w.now.Sub(l.asked) > 500*time.Millisecond
	if l.closed || idle {
		l.session.End(peer.CloseShutdown, peer.ByeLeaving)
		l.h.again(victim)
		return
	}
	w.After(100*time.Millisecond, func() { l.watch(victim) })
}

func (l *hostileLink) Candidate(transfer.Candidate) {}
func (l *hostileLink) Open()                        { l.session.Open() }
func (l *hostileLink) Control(b []byte)             { l.session.Control(b) }
func (l *hostileLink) Data([]byte)                  {}
func (l *hostileLink) Drain()                       {}
func (l *hostileLink) Piece(peer.Data) error        { return nil }

func (l *hostileLink) Closed(peer.CloseReason) {
	l.closed, l.waiting = true, nil
	l.h.all.ended = l.h.s.w.now
}

// Ready implements transfer.Handler: it announces everything.
func (l *hostileLink) Ready(peer.Hello) error {
	var have peer.Have
	for id, name := range l.h.names {
		if data := l.h.s.film.files[string(name)]; len(data) > 4096 { // no playlist
			have.Entries = append(have.Entries, peer.HaveEntry{Segment: id, State: peer.HoldsComplete, Pieces: uint16(segment.Pieces(int64(len(data))))})
		}
	}
	l.session.Send(have)
	if l.h.rate > 0 && !l.h.bursts {
		l.drip()
	}
	return nil
}

// Message implements transfer.Handler.
func (l *hostileLink) Message(m peer.Message) error {
	switch m := m.(type) {
	case peer.CertificateRequest:
		if l.h.dumb {
			return nil
		}
		for _, id := range m.Segments {
			name := l.h.names[id]
			l.session.Send(peer.Certificate{Segment: id, Raw: issue(l.h.s.w, name, l.h.s.film.files[string(name)])})
		}
	case peer.Request:
		l.asked = l.h.s.w.now
		if l.h.all.since.IsZero() {
			l.h.all.since = l.asked
		}
		l.h.all.asked += len(m.Requests)
		data := l.h.s.film.files[string(l.h.names[m.Segment])]
		l.paid = l.paid && !l.h.each
		for _, q := range m.Requests {
			part := peer.Data{Request: q.ID, Payload: pieceOf(data, int(q.Piece))}
			if l.h.piece && !l.paid {
				l.paid = true
				half := len(part.Payload) / 2 // a message holds less than a piece
				l.send(peer.Data{Request: part.Request, Payload: part.Payload[:half]})
				l.send(peer.Data{Request: part.Request, Offset: uint16(half), Payload: part.Payload[half:]})
				continue
			}
			l.waiting = append(l.waiting, part)
		}
		if l.h.bursts {
			l.burst()
		}
		if l.h.busy > 0 {
			l.h.s.w.After(l.h.busy, l.reject)
		}
	case peer.Cancel:
		var left []peer.Data
		for _, part := range l.waiting {
			kept := true
			for _, id := range m.IDs {
				kept = kept && part.Request != id
			}
			if kept {
				left = append(left, part)
			}
		}
		l.waiting = left
	}
	return nil
}

// reject takes back all that it was asked for, as a busy viewer does.
func (l *hostileLink) reject() {
	var ids []uint32
	for _, part := range l.waiting {
		ids = append(ids, part.Request)
	}
	l.waiting = nil
	for part := range slices.Chunk(ids, 255) {
		l.session.Send(peer.Reject{Reason: peer.RejectBusy, IDs: part})
	}
}

// drip sends what its rate allows of what it was asked for first, ten times a second.
func (l *hostileLink) drip() {
	l.part(l.h.rate / 10)
	if !l.closed {
		l.h.s.w.After(100*time.Millisecond, l.drip)
	}
}

// burst sends a message if the one before is paid for, as the links of `leeway-lab bench outage --case slow-peers/…` do.
func (l *hostileLink) burst() {
	w := l.h.s.w
	if w.now.Before(l.next) {
		return
	}
	if n := l.part(segment.PieceSize / 2); n > 0 {
		wait := time.Duration(n) * time.Second / time.Duration(l.h.rate)
		l.next = w.now.Add(wait)
		w.After(wait, l.burst)
	}
}

// part sends so many bytes at most of what it was asked for first.
func (l *hostileLink) part(n int) int {
	if len(l.waiting) == 0 || l.closed {
		return 0
	}
	part := &l.waiting[0]
	n = min(n, len(part.Payload))
	l.send(peer.Data{Request: part.Request, Offset: part.Offset, Payload: part.Payload[:n]})
	part.Offset += uint16(n)
	if part.Payload = part.Payload[n:]; len(part.Payload) == 0 {
		l.waiting = l.waiting[1:]
	}
	return n
}

func (l *hostileLink) send(m peer.Data) {
	b, err := peer.Append(nil, m)
	if err != nil {
		panic(err)
	}
	l.link.SendData(b)
}
