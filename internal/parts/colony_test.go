package parts

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	second   = int64(1_000_000)
	partTime = second / 2
)

var stream1 = segment.ID{1}

// partOf is the part at a turn: its bytes differ from those of any other.
func partOf(turn uint32) (segment.ID, []byte) {
	var id segment.ID
	binary.BigEndian.PutUint32(id[:], turn+1)
	made.Lock()
	defer made.Unlock()
	if data := made.parts[turn]; data != nil {
		return id, data
	}
	data := make([]byte, 150_000+int(turn%3)*40_000)
	r := rand.New(rand.NewPCG(uint64(turn), 5))
	for i := 0; i+8 <= len(data); i += 8 {
		binary.BigEndian.PutUint64(data[i:], r.Uint64())
	}
	made.parts[turn] = data
	return id, data
}

// made has the parts that tests have made.
var made = struct {
	sync.Mutex
	parts map[uint32][]byte
}{parts: map[uint32][]byte{}}

// contentOf certifies a part. The raw certificate of the tests is the turn of the part that it is of, and its segment's ID.
func contentOf(turn uint32) Content {
	id, data := partOf(turn)
	return Content{Segment: id, Length: len(data), Digests: certificate.DigestPieces(data), Raw: rawOf(turn)}
}

func rawOf(turn uint32) []byte {
	id, _ := partOf(turn)
	return append(id[:], "certificate"...)
}

func pieceOf(data []byte, i int) []byte {
	return data[i*peer.PieceSize : i*peer.PieceSize+segment.PieceLen(int64(len(data)), i)]
}

// colony is a seed and viewers that are all linked, in virtual time. Messages travel 20 ms, pieces one after the other.
type colony struct {
	t       *testing.T
	now     int64
	queue   []event // in the order of their times
	members map[ID]*member
	order   []ID
	edge    uint32
	lists   int64 // how long after the seed viewers list a part
}

type member struct {
	c       *colony
	id      ID
	node    *Node
	stream  *Stream
	poison  bool          // it sends wrong bytes
	mute    bool          // it tells no part
	line    map[ID]int64  // until when the way to a peer is taken
	blamed  map[Why]int64 // bytes, or times
	charged map[ID]int64  // bytes that count as unsolicited
	lies    int
	banned  map[ID]bool
	given   map[uint32]bool
	figures
}

// figures of a player.
type figures struct {
	peers   int // bytes of given parts that peers sent
	origin  int
	fetches int
	waited  int64 // for the given parts
	wants   []wanted
	begun   map[beginning]bool // nil: it pushes all
}

// wanted is a part that the player does not have yet, and when it was listed. It waits for the first.
type wanted struct {
	turn   uint32
	listed int64
}

// ask has the player ask for the part that it wants next, if it does not wait for one.
func (m *member) ask() {
	if len(m.wants) > 0 && m.stream.player.asked == nil {
		w := m.wants[0]
		m.stream.Ask(m.c.now, w.turn, Wanted{Deadline: w.listed + 3*partTime, RTT: second / 20, Rate: 2_000_000})
	}
}

type event struct {
	at int64
	do func()
}

func (c *colony) after(d int64, do func()) {
	at := c.now + d
	i, _ := slices.BinarySearchFunc(c.queue, at, func(e event, at int64) int {
		if e.at <= at { // behind what was put in before it
			return -1
		}
		return 1
	})
	c.queue = slices.Insert(c.queue, i, event{at, do})
}

func (c *colony) run(until int64) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := c.queue[0]
		c.queue = c.queue[1:]
		c.now = e.at
		e.do()
	}
	c.now = until
}

func newColony(t *testing.T, viewers int) *colony {
	c := &colony{t: t, members: map[ID]*member{}, lists: second / 50}
	c.add(ID{0xff}, Config{Seed: true}, Settings{Part: partTime})
	for i := range viewers {
		c.add(ID{byte(i + 1)}, Config{}, Settings{Slots: 4, Part: partTime})
	}
	for _, a := range c.order {
		for _, b := range c.order {
			if a != b {
				c.members[a].node.Linked(b, b == ID{0xff})
			}
		}
	}
	c.edge = 1
	for _, id := range c.order {
		first, data := partOf(0)
		c.members[id].stream.Listed(0, 0, first, len(data))
		c.members[id].run()
		c.tick(c.members[id])
	}
	c.publish()
	return c
}

func (c *colony) add(id ID, cfg Config, set Settings) {
	cfg.Self = id
	m := &member{c: c, id: id, node: New(cfg), line: map[ID]int64{}, blamed: map[Why]int64{}, charged: map[ID]int64{}, banned: map[ID]bool{}, given: map[uint32]bool{}}
	m.stream = m.node.Follow(0, stream1, set)
	c.members[id] = m
	c.order = append(c.order, id)
}

func (c *colony) tick(m *member) {
	c.after(m.node.Next(c.now)-c.now, func() {
		m.node.Tick(c.now)
		m.run()
		c.tick(m)
	})
}

// publish makes a part at the origin: the seed has it, and each viewer's playlist names it and its player asks for it.
func (c *colony) publish() {
	c.after(partTime, func() {
		turn, _ := Turn(int64(c.edge/4), int(c.edge%4))
		c.edge++
		id, data := partOf(turn)
		seed := c.members[ID{0xff}]
		seed.stream.Listed(c.now, turn, id, len(data))
		seed.stream.Certify(c.now, turn, contentOf(turn))
		for i := range segment.Pieces(int64(len(data))) {
			seed.stream.Have(c.now, turn, i, pieceOf(data, i))
		}
		seed.run()
		for _, v := range c.order {
			m := c.members[v]
			if m == seed {
				continue
			}
			c.after(c.lists, func() {
				m.stream.Listed(c.now, turn, id, len(data))
				m.wants = append(m.wants, wanted{turn, c.now})
				m.ask()
				m.run()
			})
		}
		c.publish()
	})
}

// run does what the node wants.
func (m *member) run() {
	for acts := m.node.Take(); acts != nil; acts = m.node.Take() {
		for _, a := range acts {
			m.act(a)
		}
	}
}

func (m *member) act(a Act) {
	c := m.c
	switch a := a.(type) {
	case Say:
		raw, err := peer.Append(nil, a.Message)
		if err != nil {
			c.t.Fatalf("%+v: %v", a.Message, err)
		}
		msg, err := peer.DecodeParts(peer.Control, raw)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, is := msg.(peer.Part); is && m.mute {
			return
		}
		m.send(a.To, 20_000, func(to *member) { to.node.Heard(c.now, m.id, msg) })
	case Push:
		m.push(a)
	case Verify:
		turn := binary.BigEndian.Uint32(a.Raw) - 1
		c.after(1000, func() {
			m.node.Certified(c.now, a, contentOf(turn))
			m.run()
		})
	case Check:
		ok := sha256.Sum256(a.Data) == a.Digest
		c.after(1000, func() {
			m.node.Checked(c.now, a, ok)
			m.run()
		})
	case Fetch:
		m.fetch(a)
	case Ready:
		m.ready(a.Turn)
	case Blame:
		m.blamed[a.Why] += int64(max(1, a.Bytes))
		if a.Why == Unsolicited {
			m.charged[a.From] += int64(peer.Unsolicited(a.Bytes))
		}
		if (a.Why == BadPiece || m.charged[a.From] > peer.MaxUnsolicited) && !m.banned[a.From] {
			m.banned[a.From] = true
			m.node.Gone(c.now, a.From)
			c.members[a.From].banned[m.id] = true
			c.members[a.From].node.Gone(c.now, m.id)
			c.members[a.From].run()
		}
	}
}

func (m *member) send(to ID, after int64, do func(to *member)) {
	m.c.after(after, func() {
		if o := m.c.members[to]; !o.banned[m.id] {
			do(o)
			o.run()
		}
	})
}

// push sends a piece in two messages, over a line of 2 MB/s to each peer.
func (m *member) push(a Push) {
	c, data := m.c, a.Data
	if m.poison {
		data = bytes.Repeat([]byte{7}, len(data))
	}
	m.line[a.To] = max(m.line[a.To], c.now) + int64(len(data))/2
	if m.begun != nil {
		m.begin(a)
		return
	}
	cut := len(data) / 2
	c.after(m.line[a.To]-c.now, func() {
		m.node.Sent(c.now, a.To)
		m.run()
	})
	for _, d := range []peer.Data{{Request: a.Request, Offset: uint16(cut), Payload: data[cut:]}, {Request: a.Request, Payload: data[:cut]}} {
		m.send(a.To, m.line[a.To]-c.now+20_000, func(to *member) { to.node.Data(c.now, m.id, d) })
	}
}

func (m *member) fetch(a Fetch) {
	c := m.c
	_, data := partOf(a.Turn)
	runs := a.Runs
	if runs == nil {
		runs = []Run{{0, segment.Pieces(int64(len(data))) - 1}}
	}
	m.fetches += len(runs)
	for _, r := range runs {
		c.after(second/10, func() {
			for i := r.First; i <= r.Last; i++ {
				m.origin += len(pieceOf(data, i))
				m.stream.Origin(c.now, a.Turn, i, pieceOf(data, i))
			}
			m.run()
		})
	}
}

func (m *member) ready(turn uint32) {
	_, data := partOf(turn)
	var got []byte
	for i := range m.stream.Pieces(turn) {
		got = append(got, m.stream.Bytes(turn, i)...)
	}
	if !bytes.Equal(got, data) {
		m.c.t.Errorf("%x: part %d is wrong", m.id[0], turn)
	}
	m.given[turn] = true
	if len(m.wants) > 0 && m.wants[0].turn == turn {
		m.waited += m.c.now - m.wants[0].listed
		m.wants = m.wants[1:]
	}
	m.ask()
	m.peers += len(data)
}

// TestAColonySharesParts: most bytes come from peers, each part is given to each player, and no peer is blamed.
func TestAColonySharesParts(t *testing.T) {
	c := newColony(t, 6)
	c.run(20 * second)
	total, origin := 0, 0
	for _, id := range c.order[1:] {
		m := c.members[id]
		if len(m.given) < int(c.edge)-2 || len(m.blamed) > 0 {
			t.Errorf("%x: %d of %d parts, blamed %v", id[0], len(m.given), c.edge, m.blamed)
		}
		total += m.peers
		origin += m.origin
	}
	if share := 1 - float64(origin)/float64(total); share < 0.8 {
		t.Errorf("%.2f of the bytes came from peers", share)
	}
}

// TestPollutersAreOutAtTheirFirstPiece, and nothing wrong is given to a player.
func TestPollutersAreOutAtTheirFirstPiece(t *testing.T) {
	c := newColony(t, 6)
	for _, id := range c.order[1:3] {
		c.members[id].poison = true
	}
	c.run(20 * second)
	bad := int64(0)
	for _, id := range c.order[3:] {
		m := c.members[id]
		if len(m.given) < int(c.edge)-2 {
			t.Errorf("%x: %d of %d parts", id[0], len(m.given), c.edge)
		}
		bad += m.blamed[BadPiece]
		for banned := range m.banned {
			if !c.members[banned].poison {
				t.Errorf("%x bans %x", id[0], banned[0])
			}
		}
	}
	if bad == 0 {
		t.Error("nothing wrong was sent")
	}
}
