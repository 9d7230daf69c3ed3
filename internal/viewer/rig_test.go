package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// rig is an engine whose parts a test calls one by one: its origin answers when the test says so, and its peers say what the test has
// them say.
type rig struct {
	*engine
	t        *testing.T
	w        *world
	uploads  bool
	relays   bool
	fetches  []Fetch
	answers  []func(Fetched, error)
	canceled int
	banned   []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	rules, err := site.New(site.Config{Name: "test", Hosts: []string{"film.test"}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, w: newWorld(), uploads: true}
	r.engine = newEngine(engineHost{
		loop: r.w, rules: rules, self: func() swarm.ID { return swarm.ID{15: 1} }, swarm: swarm.ID{9}, uploads: func() bool { return r.uploads },
		relayOnly: func() bool { return r.relays }, line: newLine(r.w, r), credit: &credit{}, ledger: &ledger{},
		banned: func(id string) { r.banned = append(r.banned, id) }, unheard: func(string) {}, adrift: func() {}, awoke: func() {},
		turnedOff: func(schedule.Reason) {}, notice: func(string, string) {},
	}, engineConfig{Policy: schedule.DefaultPolicy, StoreBytes: 1 << 24, Playhead: func() (time.Duration, time.Duration) { return 0, 0 }})
	r.engine.turn.due = true // the schedule decides nothing: the test does
	return r
}

// Get implements Origin.
func (r *rig) Get(f Fetch, _ func(int64), done func(Fetched, error)) (cancel func()) {
	r.fetches, r.answers = append(r.fetches, f), append(r.answers, done)
	return func() { r.canceled++ }
}

// answer has the origin answer the n-th fetch.
func (r *rig) answer(n int, data []byte, err error) {
	if most := r.fetches[n].MaxBytes; most > 0 && int64(len(data)) > most {
		data, err = nil, ErrTooLarge
	}
	r.answers[n](Fetched{Data: data}, err)
	r.w.run(time.Millisecond)
}

// media are bytes of so many pieces, the last of which is short.
func media(pieces int) []byte {
	b := make([]byte, pieces*segment.PieceSize-100)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// segment is number n of the film, six seconds long; certified where data is given.
func (r *rig) segment(n int, data []byte) *seg {
	r.t.Helper()
	at := time.Duration(n) * 6 * time.Second
	s, err := r.segments.resolve(Reference{URL: "http://film.test/" + string(rune('a'+n)) + ".ts", Start: at, Duration: 6 * time.Second}, 1_000_000)
	if err != nil {
		r.t.Fatal(err)
	}
	if data != nil {
		r.verification.certify(s, &certificate.Certificate{Length: int64(len(data)), Digests: certificate.DigestPieces(data)})
	}
	return s
}

// waits has the player wait for a segment, which is to be there after so long, and returns what it gets.
func (r *rig) waits(s *seg, deadline time.Duration) *outcome {
	o := &outcome{}
	o.load = &load{request: request{Reference: s.ref, deadline: func() time.Duration { return deadline }}, started: r.w.now, done: func(got *Result, err error) {
		o.got, o.err, o.n = got, err, o.n+1
	}}
	r.loads.ask(s, o.load)
	return o
}

type outcome struct {
	load *load
	got  *Result
	err  error
	n    int
}

// noted is a link that notes what is sent.
type noted struct {
	path  transfer.Path
	sent  []peer.Message
	ended peer.CloseReason
	done  chan struct{}
}

func (m *noted) SendControl(b []byte) {
	one, err := peer.Decode(peer.Control, b)
	if peer.IsUnknown(err) {
		one, err = peer.DecodeParts(peer.Control, b)
	}
	if err != nil {
		panic(err)
	}
	m.sent = append(m.sent, one)
}
func (*noted) SendData([]byte) bool                  { return true }
func (*noted) MaxMessage() int                       { return 16384 }
func (m *noted) Path() transfer.Path                 { return m.path }
func (*noted) AddCandidate(transfer.Candidate) error { return nil }
func (m *noted) Done() <-chan struct{}               { return m.done }
func (m *noted) Close(reason peer.CloseReason, _ []byte) {
	if m.ended == "" {
		m.ended = reason
	}
}

// friend is a linked peer and what was sent to it.
type friend struct {
	*remote
	*noted
}

// peer links peer number n, which has said hello.
func (r *rig) peer(n byte, role schedule.Role, flags peer.Flags) *friend {
	r.t.Helper()
	link, id := &noted{path: transfer.Direct, done: make(chan struct{})}, swarm.ID{15: n}
	f := &friend{r.addLink(id, role, link, nil), link}
	f.says(peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: 64, Flags: flags, Peer: id, Swarm: swarm.ID{9}})
	f.sent = nil
	return f
}

func (f *friend) says(m peer.Message) {
	b, err := peer.Append(nil, m)
	if err != nil {
		panic(err)
	}
	f.session.Control(b)
}

// holds has the peer say that it holds all of a segment.
func (f *friend) holds(s *seg, pieces int) {
	f.says(peer.Have{Entries: []peer.HaveEntry{{Segment: s.key, State: peer.HoldsComplete, Pieces: uint16(pieces)}}})
}

// of are the messages of a kind that were sent.
func of[M peer.Message](f *friend) (list []M) {
	for _, m := range f.sent {
		if m, ok := m.(M); ok {
			list = append(list, m)
		}
	}
	return list
}
