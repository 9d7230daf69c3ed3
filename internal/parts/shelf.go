package parts

import (
	"math"
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/segment"
)

// never is a time before all others.
const never = math.MinInt64 / 2

// shelf has the parts of a stream.
type shelf struct {
	parts  map[uint32]*part // by turn
	listed []uint32         // the latest turns that the own playlist has named, in order
}

// part is what there is of a part.
type part struct {
	turn     uint32
	named    segment.ID                   // by the own playlist; zero: not yet
	length   int                          // bytes; 0: not known
	content  *Content                     // nil: there is no verified certificate
	fits     func(name segment.Name) bool // of a stream of chunks: whether something of this name is to be here; nil: nothing is expected
	pieces   []piece
	progress int64         // when a peer's last piece came
	without  map[ID]bool   // peers that want nothing more of it
	judged   [][]byte      // certificates that are being verified
	whole    bool          // the origin was asked for all of it, at an unknown length
	enough   bool          // parents were told
	sought   int           // how often the packager's certificate of it was asked for
	beside   any           // of a chunk that the origin has sent, or of the end of a segment: what the owner loads that certificate by
	missed   [stripes]bool // the parent was told to have missed it
}

// piece is what there is of a piece.
type piece struct {
	data     []byte // verified, or of the origin
	verified bool
	origin   bool // the player gets the origin's bytes
	asked    bool // of the origin
	checking int  // copies of peers that are being checked
}

// lacks says whether nothing has come of a piece, and the origin was not asked for it.
func (p *piece) lacks() bool { return p.data == nil && p.checking == 0 && !p.asked }

// Turn is that of a part: the number of its segment, and its own number in it. ok is false for a number that no turn has.
func Turn(sequence int64, number int) (turn uint32, ok bool) {
	return uint32(sequence<<8 | int64(number)), sequence >= 0 && number >= 0 && number < turns
}

// turns are the turns of a segment.
const turns = 256

// longest is the longest part at a turn, bytes: at the last one of a segment it may be the end of a segment of chunks.
func longest(turn uint32) int {
	if turn%turns == turns-1 {
		return segment.MaxLength
	}
	return MaxPart
}

// list notes the turn of a listed part, and says whether it is the latest.
func (s *shelf) list(turn uint32) bool {
	if len(s.listed) > 0 && s.ahead(turn) <= 0 {
		return false
	}
	if s.listed = append(s.listed, turn); len(s.listed) > Kept {
		s.listed = slices.Delete(s.listed, 0, len(s.listed)-Kept)
	}
	return true
}

// ahead is how far a turn is ahead of the latest listed one. Turns wrap.
func (s *shelf) ahead(turn uint32) int32 { return int32(turn - s.listed[len(s.listed)-1]) }

// near says whether parts of a turn are taken of peers.
func (s *shelf) near(turn uint32) bool {
	if len(s.listed) == 0 {
		return false
	}
	ahead := s.ahead(turn)
	if ahead <= 0 {
		return slices.Contains(s.listed, turn)
	}
	if ahead > Ahead*turns {
		return false
	}
	if s.parts[turn] != nil {
		return true
	}
	held := 0
	for t := range s.parts {
		if s.ahead(t) > 0 {
			held++
		}
	}
	return held < Kept
}

// part finds or makes a part.
func (s *shelf) part(turn uint32) *part {
	p := s.parts[turn]
	if p == nil {
		p = &part{turn: turn, progress: never, without: map[ID]bool{}}
		s.parts[turn] = p
	}
	return p
}

// evict drops what is not near, but for the part that the player waits for.
func (s *shelf) evict(asked int64) {
	for turn := range s.parts {
		if !s.near(turn) && int64(turn) != asked {
			delete(s.parts, turn)
		}
	}
}

// elsewhere says whether a segment has its place at another turn.
func (s *shelf) elsewhere(turn uint32, id segment.ID) bool {
	for _, p := range s.parts {
		if p.turn != turn && (p.named == id || p.content != nil && p.content.Segment == id) {
			return true
		}
	}
	return false
}

// usual is how long a part is whose length is not known: as the longest that is here. The end of a segment of chunks is none.
func (s *shelf) usual() (length int) {
	for _, p := range s.parts {
		if p.turn%turns != End {
			length = max(length, p.length)
		}
	}
	return length
}

// size notes the length of a part.
func (p *part) size(length int) {
	p.length = length
	p.pieces = make([]piece, segment.Pieces(int64(length)))
}

// misfits says whether something is another than what is to be at the turn of the part.
func (p *part) misfits(c *Content) bool {
	return p.named != (segment.ID{}) && p.named != c.Segment || p.fits != nil && !p.fits(c.Name)
}

// stripe is the tree of a piece.
func (p *part) stripe(i int) int {
	return mesh.StripeOf(int(p.turn/turns+p.turn%turns), i, len(p.pieces), stripes)
}
