package viewer

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// simTracker introduces every newcomer to all that are there, and to the seed.
type simTracker struct {
	w          *world
	film       *film
	seed       *simSeed
	other      *simSeed // a second seed; nil: there is none
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
	rules      bool          // the site has rules for names: no join ahead of the welcome
	home       *swarm.Swarm  // introduces as trackers do; nil: all to all
	guard      *simGuard     // asks for join tokens; nil: none are asked for
	from       string        // the address that sockets come from
	weighs     *weighing     // compares what peers cost with what they save; nil: nothing does
	ahead      time.Duration // of the clocks of viewers
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
		for _, seed := range t.seeds() {
			introduce.Peers = append(introduce.Peers, signal.Peer{Peer: seed.id, Role: "seed"})
		}
		if t.home != nil {
			t.home.Join(swarm.Member{ID: s.id, Role: m.Role, Labels: swarm.Labels{Address: s.from}, Joined: t.w.now})
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
		if i := slices.IndexFunc(t.seeds(), func(s *simSeed) bool { return s.id == m.To }); i >= 0 {
			t.w.After(oneWay, func() { t.seeds()[i].signal(t, &out) })
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

// seeds are those that are introduced to all.
func (t *simTracker) seeds() (all []*simSeed) {
	for _, s := range []*simSeed{t.seed, t.other} {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
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
		Session: s.id, Ticket: ticket, Resumed: resumed, ServerTime: t.w.now.Add(t.ahead).UnixMilli(), Site: rules, Policy: t.policy, VerifyKeys: t.keys,
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
