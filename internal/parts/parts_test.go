package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestAPieceIsPushedOnWhenItIsVerified(t *testing.T) {
	r := fedRig()
	_, data := partOf(1)
	stripe := uint8(r.shelf.parts[1].stripe(1))
	for s := range uint8(stripes) {
		r.Heard(4, other, peer.Subscribe{Stream: stream1, Stripe: s})
	}
	for i := range segment.Pieces(int64(len(data))) {
		if i > 0 {
			r.sends(5, seed, 0, 1, i)
		}
	}
	acts := r.settle(5)
	parts := said[peer.Part](acts, other)
	if len(parts) != 1 || string(parts[0].Raw) != string(rawOf(1)) {
		t.Fatalf("%+v", parts)
	}
	pushes := 0
	for _, a := range acts {
		if p, ok := a.(Push); ok && p.To == other {
			pushes++
		}
	}
	if pushes != mostHanded {
		t.Errorf("%d pieces were handed over at once; stripe %d", pushes, stripe)
	}
	r.Sent(6, other)
	if acts := r.settle(6); len(acts) != 1 {
		t.Errorf("%+v", acts)
	}
	if b := blamed(acts); len(b) > 0 {
		t.Errorf("%v", b)
	}
}

// TestAChildThatPiecesWaitForIsGivenUp: the link is slow to send them, or the child has enough while they wait.
func TestAChildThatPiecesWaitForIsGivenUp(t *testing.T) {
	const late = partTime
	id, data := partOf(1)
	for name, c := range map[string]struct {
		does func(r *rig)
		ends int
	}{
		"sent in time":          {func(r *rig) { r.Sent(5+partTime*3/4, other) }, 0},
		"sent late":             {func(r *rig) { r.Sent(5+late, other) }, 1},
		"enough while it waits": {func(r *rig) { r.Heard(5+late, other, peer.Enough{Stream: stream1, Segment: id}) }, 1},
		"hold while it waits":   {func(r *rig) { r.Heard(5+late, other, peer.Hold{Stream: stream1, On: true}) }, 0},
	} {
		r := fedRig()
		for s := range uint8(stripes) {
			r.Heard(4, other, peer.Subscribe{Stream: stream1, Stripe: s})
		}
		for i := 1; i < segment.Pieces(int64(len(data))); i++ {
			r.sends(5, seed, 0, 1, i)
		}
		r.settle(5)
		c.does(r)
		r.Tick(5 + late)
		if ends := said[peer.End](r.settle(5+late), other); len(ends) != c.ends {
			t.Errorf("%s: %d subscriptions ended", name, len(ends))
		}
	}
}

func TestDataAheadOfItsCertificateWaits(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.settle(1)
	r.sends(2, seed, 7, 1, 0)
	if acts := r.settle(2); len(acts) > 0 {
		t.Fatalf("%+v", acts)
	}
	r.announces(3, seed, 7, 1)
	acts := r.settle(3)
	if r.Bytes(1, 0) == nil || len(blamed(acts)) > 0 {
		t.Errorf("piece %v, blamed %v", r.Bytes(1, 0) != nil, blamed(acts))
	}
}

// TestWhatWasNotAskedForIsCharged: of a peer that the viewer did not subscribe to, of parts that are far away, twice, and of no push.
func TestWhatWasNotAskedForIsCharged(t *testing.T) {
	for name, does := range map[string]func(r *rig){
		"a certificate of a stranger": func(r *rig) { r.announces(2, other, 0, 1) },
		"data of a stranger":          func(r *rig) { r.sends(2, other, 0, 1, 0) },
		"a part far ahead":            func(r *rig) { r.announces(2, seed, 0, Ahead*turns+1) },
		"a part twice":                func(r *rig) { r.announces(2, seed, 0, 1); r.announces(2, seed, 1, 1) },
		"two parts of one push":       func(r *rig) { r.announces(2, seed, 0, 1); r.announces(2, seed, 0, 2) },
		"a piece twice": func(r *rig) {
			r.announces(2, seed, 0, 1)
			r.sends(2, seed, 0, 1, 0)
			r.settle(2)
			r.sends(2, seed, 0, 1, 0)
		},
		"a piece beyond the part":           func(r *rig) { r.announces(2, seed, 0, 1); r.settle(2); r.begins(2, seed, 0, 500) },
		"data that is not of a push":        func(r *rig) { r.Data(2, seed, peer.Data{Request: 5, Payload: []byte{1}}) },
		"a part of a stream of no interest": func(r *rig) { r.Heard(2, seed, peer.Part{Stream: segment.ID{9}, Raw: []byte{1}}) },
		"many pieces in part": func(r *rig) {
			r.announces(2, seed, 0, 2)
			r.announces(2, seed, 1, 1)
			r.settle(2)
			for i := range 9 {
				r.begins(2, seed, 0, i)
				r.begins(2, seed, 1, i)
			}
		},
		"parts after the subscription": func(r *rig) {
			r.announces(2, seed, 0, 1)
			r.settle(2)
			for s := range uint8(stripes) {
				r.Heard(3, seed, peer.End{Stream: stream1, Stripe: s})
			}
			r.sends(3+Grace, seed, 0, 1, 0)
		},
	} {
		r := newRig()
		r.subscribed(1, seed)
		r.settle(1)
		does(r)
		if b := blamed(r.settle(2)); b[Unsolicited] == 0 || len(b) != 1 {
			t.Errorf("%s: blamed %v", name, b)
		}
	}
}

func TestBreachesOfPushes(t *testing.T) {
	for want, does := range map[Why]func(r *rig){
		BadPiece: func(r *rig) {
			_, data := partOf(1)
			r.Data(2, seed, peer.Data{Request: peer.PushedID(0, 0), Payload: make([]byte, len(pieceOf(data, 0)))})
		},
		Malformed: func(r *rig) { r.begins(2, seed, 0, 0); r.begins(2, seed, 0, 0) },
		Crumbs: func(r *rig) {
			for i := range uint16(peer.MaxPieceMessages + 1) {
				r.Data(2, seed, peer.Data{Request: peer.PushedID(0, 0), Offset: i, Payload: []byte{1}})
			}
		},
		TooMuch: func(r *rig) {
			for i := range byte(MaxStreams) {
				r.Heard(2, seed, peer.Follow{Stream: segment.ID{100 + i}, On: true})
			}
		},
	} {
		r := announcedRig()
		does(r)
		if b := blamed(r.settle(2)); b[want] != 1 || len(b) != 1 {
			t.Errorf("%s: blamed %v", want, b)
		}
	}
}

// TestABadPieceIsFoundBesideAGoodOne: one that is here already is compared, not taken for good.
func TestABadPieceIsFoundBesideAGoodOne(t *testing.T) {
	r := announcedRig()
	_, data := partOf(1)
	r.list(1)
	r.Origin(2, 1, 0, pieceOf(data, 0))
	r.settle(2)
	r.Data(3, seed, peer.Data{Request: peer.PushedID(0, 0), Payload: make([]byte, peer.PieceSize)})
	if b := blamed(r.settle(3)); b[BadPiece] != peer.PieceSize || r.Counts.Dropped != 0 {
		t.Errorf("blamed %v, %d dropped", b, r.Counts.Dropped)
	}
}

func TestAChildThatDoesNotReadHasOlderPartsDropped(t *testing.T) {
	n := New(Config{Self: seed, Seed: true})
	s := n.Follow(0, stream1, Settings{Part: partTime})
	n.Linked(other, false)
	n.Heard(0, other, peer.Follow{Stream: stream1, On: true})
	for stripe := range uint8(stripes) {
		n.Heard(0, other, peer.Subscribe{Stream: stream1, Stripe: stripe})
	}
	most := 0
	for turn := range uint32(2 * Kept) {
		id, data := partOf(turn)
		s.Listed(0, turn, id, len(data))
		s.Certify(0, turn, contentOf(turn))
		for i := range segment.Pieces(int64(len(data))) {
			s.Have(0, turn, i, pieceOf(data, i))
		}
		most = max(most, n.links[other].out.waits)
		n.Take()
	}
	if _, data := partOf(2); most > Backlog+len(data) || n.Counts.Shed == 0 {
		t.Errorf("%d bytes wait, %d were shed", most, n.Counts.Shed)
	}
	if len(s.shelf.parts) > Kept || len(n.links[other].out.told) > mostPushes {
		t.Errorf("%d parts, %d told", len(s.shelf.parts), len(n.links[other].out.told))
	}
	for turn, p := range s.shelf.parts {
		for i := range p.pieces {
			if s.Bytes(turn, i) != nil {
				t.Fatalf("a seed keeps piece %d of part %d, which it has pushed", i, turn)
			}
		}
	}
	l := n.links[other]
	id, _ := partOf(2*Kept - 1)
	n.Heard(1, other, peer.Enough{Stream: stream1, Segment: id})
	for _, q := range l.out.waiting {
		if q.turn == 2*Kept-1 {
			t.Error("a part waits of which the child has enough")
		}
	}
	n.Heard(1, other, peer.Hold{Stream: stream1, On: true})
	if len(l.out.waiting) > 0 || l.out.waits != 0 {
		t.Errorf("%d bytes wait for a child that holds", l.out.waits)
	}
}

// TestAStreamThatIsLeftOwesNothing: what is on its way then is no fault, and the stream can be followed again.
func TestAStreamThatIsLeftOwesNothing(t *testing.T) {
	r := announcedRig()
	r.Unfollow(3, stream1)
	r.settle(3)
	r.sends(4, seed, 0, 1, 0)
	r.announces(4, seed, 1, 2)
	r.sends(4, seed, 1, 2, 0)
	if b := blamed(r.settle(4)); len(b) > 0 {
		t.Errorf("blamed %v for what was on its way", b)
	}
	if r.Followers(stream1) != 2 {
		t.Errorf("%d followers", r.Followers(stream1))
	}
	r.Stream = r.Follow(5, stream1, Settings{Slots: 8, Part: partTime})
	r.list(2)
	r.subscribed(6, seed)
	if len(said[peer.Subscribe](r.settle(6), seed)) != stripes {
		t.Error("it does not subscribe again")
	}
}
