package parts

import (
	"math"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// falseTurns are what a viewer can say of parts that a seed has signed, shortly before the next one is published.
var falseTurns = map[string]func(c *colony, liar *member){
	"the latest part at the next turn": func(c *colony, liar *member) { liar.tells(c.turn(1), c.turn(0)) },
	"an old part at the next turn":     func(c *colony, liar *member) { liar.tells(c.turn(1), c.turn(-2*Kept)) },
	"old parts at all turns that come": func(c *colony, liar *member) {
		for i := range Kept {
			liar.tells(c.turn(2+i), c.turn(-Kept-i))
		}
	},
}

// turn is that of the part that is so many behind the latest one.
func (c *colony) turn(behind int) uint32 {
	n := int64(c.edge) - 1 + int64(behind)
	turn, _ := Turn(n/4, int(n%4))
	return turn
}

// tells has a viewer announce a part at another's turn, and push it, to all that took it for a parent.
func (m *member) tells(turn, of uint32) {
	m.lies++
	push := uint32(1<<20 + m.lies)
	for _, id := range m.c.order[1:] {
		if id == m.id {
			continue
		}
		m.send(id, 20_000, func(to *member) {
			to.node.Heard(to.c.now, m.id, peer.Part{Stream: stream1, Push: push, Turn: turn, Raw: rawOf(of)})
		})
	}
}

// TestFalseTurnsCostHonestViewersNothing: a viewer that others have as a parent tells parts at turns of others. They lose what it has told
// before, and no more, as if it had gone silent.
func TestFalseTurnsCostHonestViewersNothing(t *testing.T) {
	silent, _ := deceived(t, func(_ *colony, liar *member) { liar.mute = true })
	for name, does := range falseTurns {
		t.Run(name, func(t *testing.T) {
			share, charged := deceived(t, does)
			t.Logf("%.3f of the bytes came from peers, %.3f beside a silent one; %d bytes were charged to honest ones", share, silent, charged)
			if share < silent-0.05 || charged > 0 {
				t.Error("lies cost honest viewers something")
			}
		})
	}
}

// deceived plays a stream to viewers that list parts a little later than the seed, so that there is something ahead of their playlists.
// It returns which part of the bytes came from peers since the lies began, and what honest peers were charged.
func deceived(t *testing.T, does func(c *colony, liar *member)) (share float64, charged int64) {
	c := newColony(t, 6)
	c.lists = 150_000
	liar := c.members[c.order[1]]
	total, origin := 0, 0
	sum := func(sign int) {
		for _, id := range c.order[2:] {
			total += sign * c.members[id].peers
			origin += sign * c.members[id].origin
		}
	}
	c.run((2*Kept + 3) * partTime)
	sum(-1)
	var lie func()
	lie = func() {
		does(c, liar)
		liar.run()
		c.after(partTime, lie)
	}
	c.after(partTime-60_000, lie)
	c.run(c.now + 10*second)
	sum(1)
	for _, id := range c.order[2:] {
		for from, bytes := range c.members[id].charged {
			if from != liar.id {
				charged += bytes
			}
		}
	}
	return 1 - float64(origin)/float64(total), charged
}

// TestAFalseTurnTakesNoPlace of the part that is true there: a seed or another viewer tells it when the places are taken.
func TestAFalseTurnTakesNoPlace(t *testing.T) {
	third := ID{3}
	for _, honest := range []ID{seed, third} {
		r := newRig()
		r.Linked(third, false)
		r.Heard(0, third, peer.Follow{Stream: stream1, On: true})
		for stripe, to := range []ID{other, third, other, third} {
			r.Heard(1, to, peer.Place{Stream: stream1, Stripe: uint8(stripe), Path: []ID{to}, Room: 4, Least: 255})
		}
		for i := range uint32(Kept) {
			r.Heard(2, other, peer.Part{Stream: stream1, Push: i, Turn: 1 + i, Raw: rawOf(100 + i)})
		}
		r.settle(2)
		r.announces(3, honest, 0, 1)
		acts := r.settle(3)
		r.list(1)
		acts = append(acts, r.settle(4)...)
		if p := r.shelf.parts[1]; p.content == nil || p.content.Segment != p.named {
			t.Errorf("%x is not believed", honest[0])
		}
		for _, a := range acts {
			if b, ok := a.(Blame); ok && b.From != other {
				t.Errorf("%+v", b)
			}
		}
		if len(blamed(acts)) == 0 {
			t.Error("a lie costs nothing")
		}
	}
}

// TestWhatAViewerTellsWaitsUntilItIsListed: nothing is verified before. What is listed then is taken, and what is not is charged.
func TestWhatAViewerTellsWaitsUntilItIsListed(t *testing.T) {
	for name, c := range map[string]struct {
		of      uint32 // the part that is told at turn 1
		lists   []uint32
		takes   bool
		charged int // bytes at least
	}{
		"not listed":         {1, nil, false, 0},
		"listed":             {1, []uint32{1}, true, 0},
		"another is listed":  {2, []uint32{1}, false, 16_384},
		"passed":             {1, []uint32{2}, false, 16_384},
		"passed by a leap":   {1, []uint32{3 * turns}, false, 0},
		"another, in a leap": {2, []uint32{3 * turns}, false, 0},
	} {
		r := newRig()
		r.subscribed(1, other)
		r.settle(1)
		r.Heard(2, other, peer.Part{Stream: stream1, Push: 0, Turn: 1, Raw: rawOf(c.of)})
		r.sends(2, other, 0, 1, 0)
		if acts := r.settle(2); len(acts) > 0 {
			t.Errorf("%s: %d acts before it is listed", name, len(acts))
		}
		for _, turn := range c.lists {
			r.list(turn)
		}
		b := blamed(r.settle(3))
		if (r.Bytes(1, 0) != nil) != c.takes || b[Unsolicited] < c.charged || c.charged == 0 && len(b) > 0 {
			t.Errorf("%s: taken %v, blamed %v", name, r.Bytes(1, 0) != nil, b)
		}
	}
}

// TestWhatASeedHasToldAViewerMayTell before it is listed.
func TestWhatASeedHasToldAViewerMayTell(t *testing.T) {
	for _, first := range []ID{seed, other} {
		r := newRig()
		r.subscribed(1, other)
		r.settle(1)
		second := seed
		if first == seed {
			second = other
		}
		r.announces(2, first, 0, 1)
		r.settle(2)
		r.announces(3, second, 0, 1)
		r.sends(3, other, 0, 1, 0)
		if b := blamed(r.settle(3)); r.Bytes(1, 0) == nil || len(b) > 0 {
			t.Errorf("%x first: taken %v, blamed %v", first[0], r.Bytes(1, 0) != nil, b)
		}
	}
}

// TestPartsFarFromThePlaylistAreCharged in whole to the viewer that pushes them, wherever their pieces come first.
func TestPartsFarFromThePlaylistAreCharged(t *testing.T) {
	const pieces = 3
	for name, c := range map[string]struct {
		from    ID
		turn    uint32
		before  bool // the pieces come ahead of the announcement
		charged int  // bytes of pieces
	}{
		"too far ahead":              {other, (Ahead + 1) * turns, false, pieces * peer.PieceSize},
		"too far ahead, data first":  {other, (Ahead + 1) * turns, true, pieces * peer.PieceSize},
		"long past":                  {other, math.MaxUint32, false, pieces * peer.PieceSize},
		"of a seed, that others may": {seed, (Ahead + 1) * turns, false, 0},
	} {
		r := newRig()
		r.subscribed(1, c.from)
		push := func() {
			for i := range pieces {
				r.Data(2, c.from, peer.Data{Request: peer.PushedID(0, i), Payload: make([]byte, peer.PieceSize)})
			}
		}
		if c.before {
			push()
		}
		r.announces(2, c.from, 0, c.turn)
		if !c.before {
			push()
		}
		if b, certificate := blamed(r.settle(2)), len(rawOf(c.turn)); len(b) != 1 || b[Unsolicited] != c.charged+certificate {
			t.Errorf("%s: %v", name, b)
		}
	}
}

// TestATabThatWakesBlamesNoParent: what was pushed for as long as its subscription lasted comes at once, before its playlist goes on.
func TestATabThatWakesBlamesNoParent(t *testing.T) {
	const lease = 8 * second
	r := newRig()
	r.subscribed(1, other)
	for turn := range uint32(lease / partTime) {
		r.announces(2, other, turn, 1+turn)
		_, data := partOf(1 + turn)
		for i := 0; i*peer.PieceSize < len(data); i++ {
			r.sends(2, other, turn, 1+turn, i)
		}
	}
	for turn := range uint32(lease / partTime) {
		r.list(1 + turn)
	}
	if b := blamed(r.settle(3)); len(b) > 0 {
		t.Error(b)
	}
}

// TestWhatWaitedIsHeldAgainstTheTimeOfItsPush: a parent that has ended the subscription since is charged nothing for what it had pushed before.
func TestWhatWaitedIsHeldAgainstTheTimeOfItsPush(t *testing.T) {
	for name, c := range map[string]struct {
		stripes []uint8 // that the receiver subscribes to; the piece is of stripe 1
		charged int
	}{
		"of a stripe that was subscribed to": {[]uint8{0, 1, 2, 3}, 0},
		"of one that was not":                {[]uint8{0, 2, 3}, peer.PieceSize},
	} {
		r := newRig()
		place := func(now int64, room uint8) {
			for _, stripe := range c.stripes {
				r.Heard(now, other, peer.Place{Stream: stream1, Stripe: stripe, Path: []ID{other}, Room: room, Least: 255})
			}
		}
		place(1, 4)
		r.announces(2, other, 0, 1)
		r.sends(2, other, 0, 1, 0)
		for _, stripe := range c.stripes {
			r.Heard(3, other, peer.End{Stream: stream1, Stripe: stripe})
		}
		place(3, 0) // it is not subscribed to again
		r.Tick(4 + Grace)
		id, data := partOf(1)
		r.Listed(4+Grace, 1, id, len(data))
		b := blamed(r.settle(4 + Grace))
		if took := r.Bytes(1, 0) != nil; b[Unsolicited] != c.charged || took != (c.charged == 0) {
			t.Errorf("%s: taken %v, blamed %v", name, took, b)
		}
	}
}

// TestAStreamIsLeftBeforeItsPlaylistIsOld, also if the player asks for what that lists: else what a seed tells would take more places than
// there are ahead of it, and be charged.
func TestAStreamIsLeftBeforeItsPlaylistIsOld(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	for turn := range uint32(Kept) {
		r.list(turn)
	}
	for n := range uint32(2 * Kept) {
		now := int64(n) * partTime
		if Idle(r.Stream, now) {
			if n != idle {
				t.Errorf("it is left after %d parts", n)
			}
			return
		}
		r.Ask(now, n%Kept, Wanted{Deadline: now + second, RTT: second / 20, Rate: 1_000_000})
		r.Buffer(now, second, false)
		r.announces(now, seed, n, Kept+n)
		if b := blamed(r.settle(now)); len(b) > 0 {
			t.Fatalf("after %d parts: %v", n, b)
		}
	}
	t.Error("it is not left")
}
