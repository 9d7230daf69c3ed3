package viewer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// simSeed certifies what it fetches, once, and serves it.
type simSeed struct {
	id       signal.ID
	w        *world
	node     *node
	film     *film
	origin   origin
	uploader *transfer.Uploader
	held     map[segment.ID][]byte
	certs    map[segment.ID][]byte
	waiting  map[segment.ID][]*transfer.Session
	names    map[segment.ID]segment.Name
	sent     int64
	issue    func(segment.Name, []byte) []byte
	rests    bool // nothing is fetched
	refuses  bool // pieces of what it has yet to fetch
	uploads  []*transfer.Upload
	ahead    int         // segments that are fetched behind one that was asked for
	few      func() bool // there are too few viewers to certify anything
	parts    *partSeed   // nil: it speaks of none
}

func newSeed(w *world, f *film, rate float64) *simSeed {
	s := &simSeed{
		id: signal.ID{0xff, 1}, w: w, film: f, node: newNode(w, "seed", rate, 1e9),
		few: func() bool { return false }, held: map[segment.ID][]byte{}, certs: map[segment.ID][]byte{}, waiting: map[segment.ID][]*transfer.Session{}, names: f.names(),
	}
	s.uploader = transfer.NewUploader(w.Now)
	s.origin = origin{f, s.node}
	s.issue = func(n segment.Name, data []byte) []byte { return issue(w, n, data) }
	return s
}

// issue certifies data under a name.
func issue(w *world, n segment.Name, data []byte) []byte {
	object := int64(len(data))
	if i := strings.LastIndexByte(string(n), '-'); strings.Contains(string(n), "#") {
		last, _ := strconv.ParseInt(string(n[i+1:]), 10, 64)
		object = last + 1
	}
	raw, err := certificate.Issue(nil, testKey(), certificate.Certificate{
		IssuedAt: w.now, NotAfter: w.now.Add(6 * time.Hour), ObjectLength: object, Length: int64(len(data)),
		Site: "test", Name: n, Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// seedLink is the seed's side of one link.
type seedLink struct {
	s       *simSeed
	id      signal.ID
	session *transfer.Session
	upload  *transfer.Upload
}

func (s *simSeed) signal(t *simTracker, m *signal.Signal) {
	if m.Kind != "offer" {
		return
	}
	l := &seedLink{s: s}
	offer := transfer.Description{SDP: m.SDP, Plan: peer.DefaultPlan}
	link, answer, err := s.node.Answer(LinkSettings{}, offer, l)
	if err != nil {
		panic(err)
	}
	hello := peer.Hello{MinVersion: 1, MaxVersion: 1, Flags: peer.OnDemand, MaxRequests: 256, Peer: s.id, Swarm: swarmID}
	if l.id = m.From; s.parts != nil {
		hello.Flags |= peer.SpeaksParts
	}
	l.session = transfer.NewSession(link, hello, m.From, l, s.w.Now)
	pushed := func(bool) { s.w.Post(func() { s.parts.sent(l) }) }
	l.upload = s.uploader.Add(transfer.UploadConfig{Link: link, Session: l.session, Pieces: s, Observer: l, MaxRequests: 256, Pushed: pushed})
	s.uploads = append(s.uploads, l.upload)
	if to := t.sessions[m.From]; to != nil {
		to.push(&signal.Signal{
			Swarm: swarmID, From: s.id, Role: "seed", Link: m.Link, Kind: "answer", SDP: answer.SDP,
			Plan: &signal.Plan{V: 1, Data: answer.Plan.Data, Message: answer.Plan.Message},
		})
	}
}

func (l *seedLink) Candidate(transfer.Candidate) {}
func (l *seedLink) Open()                        { l.session.Open() }
func (l *seedLink) Control(b []byte)             { l.session.Control(b) }
func (l *seedLink) Data(b []byte)                { l.session.Data(b) }
func (l *seedLink) Drain()                       { l.upload.Drain(); l.s.uploader.Work() }

func (l *seedLink) Closed(peer.CloseReason) {
	if l.upload.Remove(); l.s.parts != nil {
		l.s.parts.gone(l)
	}
}

func (l *seedLink) Ready(h peer.Hello) error {
	if l.s.parts != nil && h.Flags&peer.SpeaksParts != 0 {
		l.s.parts.linked(l, l.id)
	}
	return nil
}
func (l *seedLink) Piece(peer.Data) error   { return nil }
func (l *seedLink) Sent(_ peer.Lane, n int) { l.s.sent += int64(n) }
func (l *seedLink) Promoted(int)            {}
func (l *seedLink) Served()                 {}
func (l *seedLink) Canceled(int)            {}

func (l *seedLink) Rejected(peer.RejectReason, int) {}

func (l *seedLink) Message(m peer.Message) error {
	switch m := m.(type) {
	case peer.CertificateRequest:
		for _, id := range m.Segments {
			l.s.certify(l.session, id)
		}
	case peer.Request:
		_ = l.upload.Request(m)
		l.s.uploader.Work()
	case peer.Cancel:
		l.upload.Cancel(m)
		l.s.uploader.Work()
	default:
		if l.s.parts != nil {
			l.s.parts.heard(l, m)
		}
	}
	return nil
}

// certify fetches a segment once and answers all that wait for it.
func (s *simSeed) certify(to *transfer.Session, id segment.ID) {
	if s.few() {
		to.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneTooFewViewers})
		return
	}
	if raw := s.certs[id]; raw != nil {
		to.Send(peer.Certificate{Segment: id, Raw: raw})
		s.lookAhead(id)
		return
	}
	if s.rests {
		to.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneTooFewViewers})
		return
	}
	running := s.waiting[id] != nil
	if s.waiting[id] = append(s.waiting[id], to); running {
		return
	}
	name := s.names[id]
	if live := s.film.live; live != nil {
		if wait := live.seedKnows(string(name)).Sub(s.w.now); wait > 0 {
			s.w.After(wait, func() { s.fetch(id, name) })
			return
		}
	}
	s.fetch(id, name)
}

// fetch has a segment from the origin.
func (s *simSeed) fetch(id segment.ID, name segment.Name) {
	s.origin.Get(Fetch{URL: "http://film.test" + string(name)}, func(int64) {}, func(got Fetched, err error) {
		list := s.waiting[id]
		delete(s.waiting, id)
		if err == nil && s.certs[id] == nil {
			s.held[id], s.certs[id] = got.Data, s.issue(name, got.Data)
		}
		for _, session := range list {
			if err != nil {
				session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneOrigin})
				continue
			}
			session.Send(peer.Certificate{Segment: id, Raw: s.certs[id]})
			s.lookAhead(id)
		}
		for _, up := range s.uploads {
			up.Loaded()
		}
		s.uploader.Work()
	})
}

// lookAhead fetches what follows a segment whose certificate was sent.
func (s *simSeed) lookAhead(id segment.ID) {
	var level, n int
	if _, err := fmt.Sscanf(string(s.names[id]), "/media/film/%d/seg-%d.ts", &level, &n); err != nil {
		return
	}
	for next := n + 1; next <= n+s.ahead; next++ {
		name := segment.WholeName(fmt.Sprintf("/media/film/%d/seg-%d.ts", level, next))
		following := segment.NewID("test", name)
		if s.names[following] != "" && s.certs[following] == nil && s.waiting[following] == nil {
			s.waiting[following] = []*transfer.Session{}
			s.fetch(following, name)
		}
	}
}

// Piece implements transfer.Pieces.
func (s *simSeed) Piece(id segment.ID, n int) ([]byte, transfer.Refusal) {
	data := s.held[id]
	if name, known := s.names[id]; data == nil && known && s.film.live == nil && !s.rests && !s.film.outage && !s.few() {
		if s.waiting[id] == nil {
			s.waiting[id] = []*transfer.Session{}
			s.fetch(id, name)
		}
		if s.refuses {
			return nil, transfer.Refuse(peer.RejectNotHeld)
		}
		return nil, transfer.Later
	}
	if data == nil || n*segment.PieceSize >= len(data) {
		return nil, transfer.Refuse(peer.RejectNotHeld)
	}
	return pieceOf(data, n), transfer.Served
}
