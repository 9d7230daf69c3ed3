package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

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

// TestTheEndOfASegmentIsNoPart: how long the origin takes for a chunk does not follow from how long the segment is.
func TestTheEndOfASegmentIsNoPart(t *testing.T) {
	s := shelf{parts: map[uint32]*part{}}
	s.part(turns + 1).size(20_000)
	s.part(turns + End).size(80_000)
	if got := s.usual(); got != 20_000 {
		t.Errorf("a part has %d bytes", got)
	}
}

// TestNothingIsHeldOfAPartThatIsTooLong: a playlist may name a range of any length, and what is held of a part grows with that.
func TestNothingIsHeldOfAPartThatIsTooLong(t *testing.T) {
	r := newRig()
	for i, length := range []int{MaxPart, MaxPart + 1, 64 << 20} {
		turn := uint32(i + 1)
		id, data := partOf(turn)
		r.Listed(1, turn, id, length)
		r.Ask(1, turn, Wanted{Deadline: 10 * partTime})
		if want := length / segment.PieceSize; length <= MaxPart && r.Pieces(turn) != want || length > MaxPart && r.Pieces(turn) != 0 {
			t.Errorf("%d pieces are held of a part of %d bytes", r.Pieces(turn), length)
		}
		if length <= MaxPart {
			continue
		}
		fetches := 0
		for _, a := range r.settle(1) {
			if f, is := a.(Fetch); is && f.Turn == turn && f.Runs == nil {
				fetches++
			}
		}
		if r.Origin(1, turn, 0, data); fetches != 1 || r.Bytes(turn, 0) != nil {
			t.Errorf("a part of %d bytes: the origin is asked %d times for all of it; held: %v", length, fetches, r.Bytes(turn, 0) != nil)
		}
	}
}

// TestVectorsOfLengths: the end of a segment of chunks may be longer than what is pushed.
func TestVectorsOfLengths(t *testing.T) {
	v := spec.Vectors[struct {
		Lengths []struct {
			Turn   uint32 `json:"turn"`
			Length int    `json:"length"`
			Taken  bool   `json:"taken"`
		} `json:"lengths"`
	}](t, "parts.json")
	for _, c := range v.Lengths {
		r := newRig()
		r.Listed(1, c.Turn-1, segment.ID{1}, 0)
		r.Certify(2, c.Turn, Content{Segment: segment.ID{2}, Length: c.Length, Digests: make([][32]byte, segment.Pieces(int64(c.Length)))})
		if taken := r.Length(c.Turn) == c.Length; taken != c.Taken {
			t.Errorf("%d bytes at turn %d: taken %v", c.Length, c.Turn, taken)
		}
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
