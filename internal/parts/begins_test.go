package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// begin sends the first piece of a stripe of each part, and holds back the others.
func (m *member) begin(a Push) {
	push, piece, _ := peer.Pushed(a.Request)
	m.node.Sent(m.c.now, a.To)
	for key, id := range m.node.links[a.To].out.told {
		if id != push || m.begun[beginning{a.To, key, m.stream.shelf.parts[key.turn].stripe(piece)}] {
			continue
		}
		m.begun[beginning{a.To, key, m.stream.shelf.parts[key.turn].stripe(piece)}] = true
		m.send(a.To, 20_000, func(to *member) {
			to.node.Data(m.c.now, m.id, peer.Data{Request: a.Request, Payload: a.Data})
		})
	}
}

// beginning is that of a stripe of a part for a child.
type beginning struct {
	to     ID
	of     partID
	stripe int
}

// TestAParentThatBeginsEachPartIsLeft: it costs its children about as much as one that sends nothing.
func TestAParentThatBeginsEachPartIsLeft(t *testing.T) {
	play := func(does func(*member)) (share float64, waits int64) {
		c := newColony(t, 6)
		does(c.members[c.order[1]])
		c.run(60 * second)
		total, origin, waited, given := 0, 0, int64(0), 0
		for _, id := range c.order[2:] {
			m := c.members[id]
			total += m.peers
			origin += m.origin
			waited += m.waited
			given += len(m.given)
		}
		return 1 - float64(origin)/float64(total), waited / int64(given)
	}
	silent, silence := play(func(m *member) { m.mute = true })
	share, waits := play(func(m *member) { m.begun = map[beginning]bool{} })
	t.Logf("%.3f of the bytes came from peers, after %d ms; %.3f and %d ms beside a silent one", share, waits/1000, silent, silence/1000)
	if share < silent-0.05 || waits > silence+partTime/4 {
		t.Error("it is waited for again and again")
	}
}
