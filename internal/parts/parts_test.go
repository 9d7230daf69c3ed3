package parts

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

var (
	other = ID{2}
	seed  = ID{0xff}
)

// rig is a viewer with a seed, whose answers to Verify and Check are the true ones.
type rig struct {
	*Node
	*Stream
	acts []Act
}

func newRig() *rig {
	r := &rig{Node: New(Config{Self: ID{1}})}
	r.Linked(seed, true)
	r.Linked(other, false)
	r.Stream = r.Follow(0, stream1, Settings{Slots: 8, Part: partTime})
	for _, from := range []ID{seed, other} {
		r.Heard(0, from, peer.Follow{Stream: stream1, On: true})
	}
	r.list(0)
	return r
}

func (r *rig) list(turn uint32) {
	id, data := partOf(turn)
	r.Listed(0, turn, id, len(data))
}

// settle answers what is asked, and returns all that was to be done since the last call.
func (r *rig) settle(now int64) []Act {
	for acts := r.Take(); acts != nil; acts = r.Take() {
		r.acts = append(r.acts, acts...)
		for _, a := range acts {
			switch a := a.(type) {
			case Verify:
				if len(a.Raw) < 16 {
					r.Refused(now, a)
				} else {
					r.Certified(now, a, contentOf(binary.BigEndian.Uint32(a.Raw)-1))
				}
			case Check:
				r.Checked(now, a, sha256.Sum256(a.Data) == a.Digest)
			}
		}
	}
	out := r.acts
	r.acts = nil
	return out
}

// blamed sums what peers are blamed for.
func blamed(acts []Act) map[Why]int {
	out := map[Why]int{}
	for _, a := range acts {
		if b, ok := a.(Blame); ok {
			out[b.Why] += max(1, b.Bytes)
		}
	}
	return out
}

func said[M peer.Message](acts []Act, to ID) (out []M) {
	for _, a := range acts {
		if s, ok := a.(Say); ok && s.To == to {
			if m, ok := s.Message.(M); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// subscribed has the viewer subscribe to a peer in all stripes.
func (r *rig) subscribed(now int64, to ID) {
	for stripe := range uint8(stripes) {
		r.Heard(now, to, peer.Place{Stream: stream1, Stripe: stripe, Path: []ID{to}, Room: 4, Least: 255})
	}
}

func (r *rig) announces(now int64, from ID, push, turn uint32) {
	r.Heard(now, from, peer.Part{Stream: stream1, Push: push, Turn: turn, Raw: rawOf(turn)})
}

// sends has a peer send a piece of a part, whole.
func (r *rig) sends(now int64, from ID, push, turn uint32, i int) {
	_, data := partOf(turn)
	r.Data(now, from, peer.Data{Request: peer.PushedID(push, i), Payload: pieceOf(data, i)})
}

func TestAPieceIsPushedOnWhenItIsVerified(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.announces(2, seed, 0, 1)
	r.settle(2)
	r.sends(3, seed, 0, 1, 0) // it becomes the parent
	r.settle(3)
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
	r.Sent(other)
	if acts := r.settle(6); len(acts) != 1 {
		t.Errorf("%+v", acts)
	}
	if b := blamed(acts); len(b) > 0 {
		t.Errorf("%v", b)
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
		"a piece beyond the part":           func(r *rig) { r.announces(2, seed, 0, 1); r.settle(2); r.sends2(2, seed, 0, 500) },
		"data that is not of a push":        func(r *rig) { r.Data(2, seed, peer.Data{Request: 5, Payload: []byte{1}}) },
		"a part of a stream of no interest": func(r *rig) { r.Heard(2, seed, peer.Part{Stream: segment.ID{9}, Raw: []byte{1}}) },
		"many pieces in part": func(r *rig) {
			r.announces(2, seed, 0, 2)
			r.announces(2, seed, 1, 1)
			r.settle(2)
			for i := range 9 {
				r.sends2(2, seed, 0, i)
				r.sends2(2, seed, 1, i)
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

// sends2 has a peer send the first byte of a piece.
func (r *rig) sends2(now int64, from ID, push uint32, i int) {
	r.Data(now, from, peer.Data{Request: peer.PushedID(push, i), Payload: []byte{1}})
}

func TestBreachesOfPushes(t *testing.T) {
	for want, does := range map[Why]func(r *rig){
		BadPiece: func(r *rig) {
			_, data := partOf(1)
			r.Data(2, seed, peer.Data{Request: peer.PushedID(0, 0), Payload: make([]byte, len(pieceOf(data, 0)))})
		},
		Malformed: func(r *rig) { r.sends2(2, seed, 0, 0); r.sends2(2, seed, 0, 0) },
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
		r := newRig()
		r.subscribed(1, seed)
		r.announces(2, seed, 0, 1)
		r.settle(2)
		does(r)
		if b := blamed(r.settle(2)); b[want] != 1 || len(b) != 1 {
			t.Errorf("%s: blamed %v", want, b)
		}
	}
}

// TestABadPieceIsFoundBesideAGoodOne: one that is here already is compared, not taken for good.
func TestABadPieceIsFoundBesideAGoodOne(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.announces(2, seed, 0, 1)
	r.settle(2)
	_, data := partOf(1)
	r.list(1)
	r.Origin(2, 1, 0, pieceOf(data, 0))
	r.settle(2)
	r.Data(3, seed, peer.Data{Request: peer.PushedID(0, 0), Payload: make([]byte, peer.PieceSize)})
	if b := blamed(r.settle(3)); b[BadPiece] != 1 {
		t.Errorf("blamed %v", b)
	}
}

// TestAPlaylistContradictsATurn: a peer tells a true certificate at a wrong turn. What came of it is dropped, and the part has its place
// where the playlist names it.
func TestAPlaylistContradictsATurn(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.settle(1)
	r.Heard(2, seed, peer.Part{Stream: stream1, Turn: 2, Raw: rawOf(1)})
	r.settle(2)
	r.sends(3, seed, 0, 1, 0)
	r.settle(3)
	if r.Bytes(2, 0) == nil {
		t.Fatal("nothing was taken ahead of the playlist")
	}
	r.list(1)
	r.list(2)
	if r.Bytes(2, 0) != nil {
		t.Error("a wrong part is held")
	}
	r.announces(4, seed, 1, 2)
	r.sends(4, seed, 1, 2, 0)
	if b := blamed(r.settle(4)); r.Bytes(2, 0) == nil || len(b) > 0 {
		t.Errorf("the true part is not taken: blamed %v", b)
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

// TestTheOriginIsAskedWhenPeersAreDue: at once where no peer is awaited, and for the rest half a part later, when the parents have missed
// it.
func TestTheOriginIsAskedWhenPeersAreDue(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.announces(2, seed, 0, 1)
	r.settle(2)
	r.sends(3, seed, 0, 1, 0)
	r.settle(3)
	r.list(2)
	r.Ask(second, 2, Wanted{Deadline: 10 * second, RTT: 50_000, Rate: 1_000_000})
	awaited := map[int]bool{}
	p := r.shelf.parts[2]
	for i := range p.pieces {
		awaited[i] = r.mesh.Awaited(p.stripe(i))
	}
	fetched := map[int]bool{}
	fetches := func(acts []Act) (count int) {
		for _, a := range acts {
			if f, ok := a.(Fetch); ok {
				for _, run := range f.Runs {
					for i := run.First; i <= run.Last; i++ {
						if fetched[i] {
							t.Errorf("piece %d is fetched twice", i)
						}
						fetched[i] = true
						count++
					}
				}
			}
		}
		return count
	}
	fetches(r.settle(second))
	for i := range p.pieces {
		if fetched[i] == awaited[i] {
			t.Errorf("piece %d: awaited %v, fetched %v", i, awaited[i], fetched[i])
		}
	}
	due := r.player.asked.at + partTime/2
	if next := r.Next(due - 1); next != due {
		t.Errorf("looked at %d, due at %d", next, due)
	}
	r.Tick(due - 1)
	if fetches(r.settle(due-1)) > 0 {
		t.Error("before it is due")
	}
	r.Tick(due)
	acts := r.settle(due)
	if fetches(acts); len(fetched) != len(p.pieces) || len(said[peer.Enough](acts, seed)) != 1 {
		t.Errorf("%d of %d pieces, %+v", len(fetched), len(p.pieces), said[peer.Enough](acts, seed))
	}
	_, data := partOf(2)
	for i := range p.pieces {
		r.Origin(due+1, 2, i, pieceOf(data, i))
	}
	ready := 0
	for _, a := range r.settle(due + 1) {
		if a == (Ready{stream1, 2}) {
			ready++
		}
	}
	if ready != 1 {
		t.Errorf("%d times ready", ready)
	}
}

func TestPeersHoldWhileTheBufferIsShort(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.announces(2, seed, 0, 1)
	r.settle(2)
	r.sends(3, seed, 0, 1, 0)
	r.settle(3)
	r.Buffer(4, partTime/8, false)
	holds := said[peer.Hold](r.settle(4), seed)
	r.Buffer(5, partTime, false)
	r.Buffer(6, partTime, true)
	if offs := said[peer.Hold](r.settle(6), seed); len(holds) != 1 || !holds[0].On || len(offs) != 1 || offs[0].On {
		t.Errorf("%+v, %+v", holds, offs)
	}
}

// TestAStreamThatIsLeftOwesNothing: what is on its way then is no fault, and the stream can be followed again.
func TestAStreamThatIsLeftOwesNothing(t *testing.T) {
	r := newRig()
	r.subscribed(1, seed)
	r.announces(2, seed, 0, 1)
	r.settle(2)
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

// TestTurnsOfSegmentsAreApart, and wrap.
func TestTurnsOfSegmentsAreApart(t *testing.T) {
	s := shelf{parts: map[uint32]*part{}}
	turn := func(sequence int64, n int) uint32 {
		at, ok := Turn(sequence, n)
		if !ok {
			t.Fatalf("no turn of part %d of segment %d", n, sequence)
		}
		return at
	}
	last := int64(1)<<24 - 1 // the next segment's turns begin at 0 again
	if turn(last, 3) == turn(last+1, 2) || turn(last+1, 0) != 0 {
		t.Error("parts share a turn")
	}
	for _, at := range []uint32{turn(last, 2), turn(last, 3), turn(last+1, 0)} {
		if !s.list(at) {
			t.Errorf("%d is not the latest", at)
		}
	}
	if s.list(turn(last, 3)) || !s.near(turn(last, 2)) || s.near(turn(last, 1)) || !s.near(turn(last+1, 1)) || s.near(turn(last+2+Ahead, 0)) {
		t.Error("other turns are near")
	}
	for _, bad := range [][2]int64{{-1, 0}, {0, -1}, {0, turns}} {
		if _, ok := Turn(bad[0], int(bad[1])); ok {
			t.Errorf("part %d of segment %d has a turn", bad[1], bad[0])
		}
	}
	for n := range uint32(2 * Kept) {
		if at := turn(last+1, 1) + n; s.near(at) {
			s.part(at)
		}
	}
	if len(s.parts) != Kept {
		t.Errorf("%d parts ahead of the playlist are taken", len(s.parts))
	}
}
