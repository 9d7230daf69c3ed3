package viewer

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// simTracker introduces every newcomer to all that are there, and to the seed.
type simTracker struct {
	w          *world
	film       *film
	seed       *simSeed
	policy     signal.Policy
	sessions   map[signal.ID]*simSocket
	order      []signal.ID
	known      map[string]signal.ID // tickets
	next       byte
	down       bool // sockets are refused
	stats      signal.Stats
	left       int
	introduced int // peers named to those that join
	keys       []signal.VerifyKey
	rules      bool         // the site has rules for names: no join ahead of the welcome
	home       *swarm.Swarm // introduces as trackers do; nil: all to all
	guard      *simGuard    // asks for join tokens; nil: none are asked for
	from       string       // the address that sockets come from
	weighs     *weighing    // compares what peers cost with what they save; nil: nothing does
}

var swarmID = signal.ID{5, 5, 5}

func newTracker(w *world, f *film) *simTracker {
	point, err := testKey().PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	id := certificate.KeyIDOf(&testKey().PublicKey)
	return &simTracker{
		w: w, film: f, sessions: map[signal.ID]*simSocket{}, known: map[string]signal.ID{},
		policy: signal.Policy{Role: "full", MaxLinks: 16, Relay: "allow", Local: "never", SignedManifests: "off"},
		keys:   []signal.VerifyKey{{KeyID: id[:], Alg: 1, Key: point}},
	}
}

// simSocket is one viewer's socket.
type simSocket struct {
	t      *simTracker
	events SocketEvents
	id     signal.ID
	closed bool
	mute   bool // nothing comes through any more, either way
	delay  time.Duration
	from   string // address
}

// Dial implements Dialer.
func (t *simTracker) Dial(_, _ string, events SocketEvents) Socket {
	s := &simSocket{t: t, events: events, delay: oneWay, from: t.from}
	t.w.After(3*oneWay, func() {
		if t.down {
			events.Lost()
		} else if !s.closed {
			events.Opened()
		}
	})
	return s
}

func (s *simSocket) Send(text []byte) {
	m, err := signal.Decode(text)
	if err != nil {
		panic(err) // what a viewer sends is well-formed
	}
	s.t.w.After(oneWay, func() {
		if !s.mute {
			s.t.message(s, m)
		}
	})
}

func (s *simSocket) Close() {
	s.closed = true
	s.t.w.After(oneWay, func() { s.t.gone(s) })
}

func (s *simSocket) push(m signal.Message) {
	b, err := signal.Encode(m)
	if err != nil {
		panic(err)
	}
	s.t.w.After(oneWay, func() {
		if !s.closed && !s.mute {
			s.events.Message(b)
		}
	})
}

func (t *simTracker) gone(s *simSocket) {
	if t.sessions[s.id] == s {
		if t.home != nil {
			t.home.Leave(s.id)
		}
		delete(t.sessions, s.id)
		t.order = slices.DeleteFunc(t.order, func(id signal.ID) bool { return id == s.id })
	}
}

// crash loses every socket.
func (t *simTracker) crash() {
	t.down = true
	for _, id := range slices.Clone(t.order) {
		s := t.sessions[id]
		t.gone(s)
		s.events.Lost()
	}
}

func (t *simTracker) message(s *simSocket, m signal.Message) {
	switch m := m.(type) {
	case *signal.Hello:
		t.hello(s, m)
	case *signal.Token:
		t.guard.renew(s, m)
	case *signal.Join:
		if m.Ahead && t.rules {
			s.push(&signal.Error{Request: m.Request, Code: "bad-title", Message: "The site has rules of its own for names."})
			return
		}
		joined := &signal.Joined{Request: m.Request, Swarm: swarmID, Viewers: len(t.order) + 1, Seeds: 1}
		introduce := &signal.Introduce{Swarm: swarmID}
		if t.seed != nil {
			introduce.Peers = append(introduce.Peers, signal.Peer{Peer: t.seed.id, Role: "seed"})
		}
		if t.home != nil {
			t.home.Join(swarm.Member{ID: s.id, Role: m.Role, Address: s.from, Joined: t.w.now})
			introduce.Peers = append(introduce.Peers, t.choose(s, m.Want-1, m.Range)...)
		}
		for _, id := range t.order {
			if id != s.id && t.home == nil {
				introduce.Peers = append(introduce.Peers, signal.Peer{Peer: id, Role: "viewer"})
			}
		}
		if !slices.Contains(t.order, s.id) {
			t.order = append(t.order, s.id)
		}
		t.sessions[s.id] = s
		n := min(len(m.Offers), len(introduce.Peers)) // ready offers go to the first of them
		for i, p := range introduce.Peers[:n] {
			joined.Offered = append(joined.Offered, signal.Offered{Link: m.Offers[i].Link, Peer: p.Peer, Role: p.Role})
		}
		s.push(joined)
		for i, p := range introduce.Peers[:n] {
			o := m.Offers[i]
			t.message(s, &signal.Signal{Swarm: swarmID, To: p.Peer, Link: o.Link, Kind: "offer", SDP: o.SDP, Plan: o.Plan, Early: o.Early, Wanted: o.Wanted})
		}
		introduce.Peers = introduce.Peers[n:]
		t.introduced += len(introduce.Peers)
		s.push(introduce)
	case *signal.Signal:
		out := *m
		out.From, out.To, out.Role = s.id, signal.ID{}, "viewer"
		if t.seed != nil && m.To == t.seed.id {
			t.w.After(oneWay, func() { t.seed.signal(t, &out) })
		} else if to := t.sessions[m.To]; to != nil {
			to.push(&out)
		}
	case *signal.Update:
		if t.home != nil && t.sessions[s.id] == s {
			if peers := t.choose(s, m.Want, m.Range); len(peers) > 0 {
				s.push(&signal.Introduce{Swarm: swarmID, Peers: peers})
			}
		}
	case *signal.Stats:
		t.add(m)
		t.weighs.credit(s.id, m)
	case *signal.Leave:
		t.left++
	}
}

// perUpdate bounds what one introduction names.
const perUpdate = 8

// choose notes what a member says of itself and picks the peers that it is to offer to.
func (t *simTracker) choose(s *simSocket, want int, span *signal.Range) []signal.Peer {
	m := t.home.Member(s.id)
	m.Want, m.Saturated, m.RTT = want, want <= 0, 2*s.delay
	if span != nil {
		m.Range = swarm.Range{From: span.From, To: span.To}
	}
	var out []signal.Peer
	for _, met := range t.home.Introduce(m.ID, min(want, perUpdate), t.w.now) {
		out = append(out, signal.Peer{Peer: met.ID, Role: "viewer"})
	}
	return out
}

func (t *simTracker) add(m *signal.Stats) {
	sum := &t.stats
	for k, n := range m.Bytes {
		bump(&sum.Bytes, k, n)
	}
	for k, n := range m.Segments {
		bump(&sum.Segments, k, n)
	}
	sum.PlayedMs += m.PlayedMs
	sum.Stalls += m.Stalls
	sum.StartupMs += m.StartupMs
	sum.PrefetchedBytes += m.PrefetchedBytes
	sum.PrefetchWasted += m.PrefetchWasted
}

func (t *simTracker) hello(s *simSocket, m *signal.Hello) {
	tokenEnd, ok := t.guard.admit(s, m)
	if !ok {
		return
	}
	resumed := false
	if s.id, resumed = t.known[m.Ticket]; !resumed {
		t.next++
		s.id = signal.ID{t.next, 0xaa}
	}
	ticket := "ticket " + s.id.String()
	t.known[ticket] = s.id
	rules, err := json.Marshal(t.film.rules.Config())
	if err != nil {
		panic(err)
	}
	s.push(&signal.Welcome{
		Session: s.id, Ticket: ticket, Resumed: resumed, ServerTime: t.w.now.UnixMilli(), Site: rules, Policy: t.policy, VerifyKeys: t.keys,
		Limits: signal.Limits{MessageBytes: 65536, Swarms: 4, MessagesPerSecond: 50, Links: 32}, UpdateEvery: 10_000, StatsInterval: 10_000,
		TokenExpires: tokenEnd,
	})
}

// everyone pushes a message to all sessions.
func (t *simTracker) everyone(m signal.Message) {
	for _, id := range t.order {
		t.sessions[id].push(m)
	}
}

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
}

func newSeed(w *world, f *film, rate float64) *simSeed {
	s := &simSeed{
		id: signal.ID{0xff, 1}, w: w, film: f, node: newNode(w, "seed", rate, 1e9),
		held: map[segment.ID][]byte{}, certs: map[segment.ID][]byte{}, waiting: map[segment.ID][]*transfer.Session{}, names: f.names(),
	}
	s.uploader = transfer.NewUploader(w.Now)
	s.origin = origin{f, s.node}
	s.issue = func(n segment.Name, data []byte) []byte { return issue(w, n, data) }
	return s
}

// issue certifies data under a name.
func issue(w *world, n segment.Name, data []byte) []byte {
	raw, err := certificate.Issue(nil, testKey(), certificate.Certificate{
		IssuedAt: w.now, NotAfter: w.now.Add(6 * time.Hour), ObjectLength: int64(len(data)), Length: int64(len(data)),
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
	l.session = transfer.NewSession(link, hello, m.From, l, s.w.Now)
	l.upload = s.uploader.Add(transfer.UploadConfig{Link: link, Session: l.session, Pieces: s, Observer: l, MaxRequests: 256})
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
func (l *seedLink) Closed(peer.CloseReason)      { l.upload.Remove() }
func (l *seedLink) Ready(peer.Hello) error       { return nil }
func (l *seedLink) Piece(peer.Data) error        { return nil }
func (l *seedLink) Sent(_ peer.Lane, n int)      { l.s.sent += int64(n) }
func (l *seedLink) Promoted(int)                 {}
func (l *seedLink) Served()                      {}
func (l *seedLink) Canceled(int)                 {}

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
	}
	return nil
}

// certify fetches a segment once and answers all that wait for it.
func (s *simSeed) certify(to *transfer.Session, id segment.ID) {
	if raw := s.certs[id]; raw != nil {
		to.Send(peer.Certificate{Segment: id, Raw: raw})
		return
	}
	if s.rests {
		to.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneTooFewViewers})
		return
	}
	s.waiting[id] = append(s.waiting[id], to)
	if len(s.waiting[id]) > 1 {
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
		for _, session := range list {
			if err != nil {
				session.Send(peer.CertificateNone{Segment: id, Reason: peer.NoneOrigin})
				continue
			}
			if s.certs[id] == nil {
				s.held[id], s.certs[id] = got.Data, s.issue(name, got.Data)
			}
			session.Send(peer.Certificate{Segment: id, Raw: s.certs[id]})
		}
	})
}

// Piece implements transfer.Pieces.
func (s *simSeed) Piece(id segment.ID, n int) ([]byte, transfer.Refusal) {
	data := s.held[id]
	if data == nil || n*segment.PieceSize >= len(data) {
		return nil, transfer.Refuse(peer.RejectNotHeld)
	}
	return pieceOf(data, n), transfer.Served
}
