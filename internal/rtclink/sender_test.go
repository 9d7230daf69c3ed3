package rtclink

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// ackEnd hears acks too.
type ackEnd struct {
	*end
	acks  chan []byte
	moved chan struct{}
}

func (e *ackEnd) Moved() {
	select {
	case e.moved <- struct{}{}:
	default:
	}
}

func (e *ackEnd) Ack(b []byte) { e.acks <- append([]byte(nil), b...) }

// TestBackgroundIsUnorderedFromTheAnswerer sends over channels that the other side opened, with one packet in a hundred
// lost, and has the receiver acknowledge every message: both channels must let later messages overtake lost ones.
func TestBackgroundIsUnorderedFromTheAnswerer(t *testing.T) {
	leakCheck(t)
	viewer, seed := listen(t, nil), listen(t, func(c *Config) { c.Plan = peer.Plan{V: 1, Data: 2, Message: 2400} })
	path := newLossyPath(t, net.UDPAddrFromAddrPort(viewer.Addr()), everyLarge(100))
	t.Cleanup(path.close)
	a, b := newEnd(), &ackEnd{end: newEnd(), acks: make(chan []byte, 4096), moved: make(chan struct{}, 1)}
	a.rewrite = path.through // the seed, which answers, reaches the viewer through the path only
	b.rewrite = func(string) (string, bool) { return "", false }
	const count = 1000
	var mu sync.Mutex
	var order []uint32
	all, linked := make(chan struct{}), make(chan struct{})
	a.data = func(m []byte) {
		<-linked
		mu.Lock()
		defer mu.Unlock()
		a.link.(*Link).SendAck(m[:4])
		if order = append(order, binary.BigEndian.Uint32(m)); len(order) == count {
			close(all)
		}
	}
	link := connectAck(t, viewer, seed, a, b)
	close(linked)
	wait(t, b.moved, "a pair to be selected")
	size := 2 * link.Payload()
	if size < 2000 || size%4 != 0 || size > 2400 {
		t.Fatalf("two packets carry %d bytes", size)
	}
	m, most := make([]byte, size), 0
	for i := uint32(0); i < count; {
		binary.BigEndian.PutUint32(m, i)
		behind, room := link.Room(len(m))
		if room && link.SendBackground(m) {
			i++
			most = max(most, behind) // after a timeout the window falls below what is held, and nothing is taken
			continue
		}
		select { // an ack may come before SCTP's own, which makes the room, and be the last
		case <-b.acks:
		case <-time.After(10 * time.Millisecond):
		}
	}
	wait(t, all, "every message")
	if most > link.MaxMessage() {
		t.Errorf("%d bytes waited in SCTP when a message was taken, a message is %d", most, link.MaxMessage())
	}
	overtaken := 0
	for i, v := range order {
		if i > 0 && v < order[i-1] {
			overtaken++
		}
	}
	if overtaken == 0 {
		t.Errorf("%d messages over a path that loses one packet in 100 came in order", count)
	}
}

// connectAck is connect for an answerer that hears acks, and returns its link.
func connectAck(t *testing.T, offerer, answerer *Host, offering *end, answering *ackEnd) *Link {
	t.Helper()
	offering.peer, answering.peer = answering.end, offering
	l, offer, err := offerer.Offer(offering)
	if err != nil {
		t.Fatal(err)
	}
	a, answer, err := answerer.Answer(offer, answering)
	if err != nil {
		t.Fatal(err)
	}
	answering.attach(a)
	if err := l.Accept(answer); err != nil {
		t.Fatal(err)
	}
	offering.attach(l)
	wait(t, offering.opened, "offerer to open")
	wait(t, answering.opened, "answerer to open")
	return a.(*Link)
}

func TestAClosedLinkTakesNoBackground(t *testing.T) {
	leakCheck(t)
	l := (&Host{cfg: Config{InFlight: DefaultInFlight}}).assemble(peer.DefaultPlan, newEnd())
	if _, room := l.Room(10); room || l.SendBackground(make([]byte, 10)) || l.Payload() != 0 {
		t.Error("a link that is not open took a message")
	}
	l.SendAck([]byte{1})
}
