package parts

import (
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Act is something that the node's owner is to do: one of the types below.
type Act interface{ act() }

// Say is a control message to send.
type Say struct {
	To      ID
	Message peer.Message
}

// Push is a piece to send as the data of a request with this ID. Sent is to be called once it has been sent, or will not be.
type Push struct {
	To      ID
	Request uint32
	Data    []byte
}

// Verify asks for the certificate of a part to be parsed and verified: Certified or Refused is the answer. An outcome that says that
// the peer is at fault ends its link, as with a certificate that was asked for.
type Verify struct {
	From   ID
	Stream segment.ID
	Turn   uint32
	Raw    []byte
}

// Check asks for the digest of a piece to be compared: Checked is the answer.
type Check struct {
	From   ID // the zero ID: the origin
	Stream segment.ID
	Turn   uint32
	Piece  int
	Data   []byte
	Digest [32]byte
	of     *part
}

// Run is a run of pieces, both ends included.
type Run struct{ First, Last int }

// Fetch asks the origin for runs of pieces of the part that the player waits for, one request each; without runs for the whole part,
// whose length is not known.
type Fetch struct {
	Stream segment.ID
	Turn   uint32
	Runs   []Run
}

// Ready says that all of the part that the player waits for has come: Bytes has it. Or it is a chunk whose segment has been told to end.
type Ready struct {
	Stream segment.ID
	Turn   uint32
}

// Certificate asks for the packager's certificate of a part to be loaded and verified: Loaded is the answer. One load of a stream runs
// at a time.
type Certificate struct {
	Stream segment.ID
	Turn   uint32
	Of     any // of a chunk, or of the end of a segment: what it is loaded by (Sign)
}

// GiveUp gives up the load of a certificate that runs: it has missed.
type GiveUp struct{ Stream segment.ID }

// Why is what a peer did.
type Why string

// What peers are blamed for.
const (
	BadPiece    Why = "bad-piece"   // a piece does not match its digest: the peer is banned
	Unsolicited Why = "unsolicited" // Bytes of data count as unsolicited
	Malformed   Why = "malformed"   // data that overlaps or is beyond its piece: protocol-error
	Crumbs      Why = "crumbs"      // a piece in more messages than it may have: over-limit (data)
	TooMuch     Why = "too-much"    // follows more streams than it may: over-limit (messages)
)

// Blame says what a peer did that the owner counts, or ends the link for.
type Blame struct {
	From  ID
	Why   Why
	Bytes int // of Unsolicited; of a BadPiece that no Check was of
}

func (Say) act()         {}
func (Push) act()        {}
func (Verify) act()      {}
func (Check) act()       {}
func (Fetch) act()       {}
func (Ready) act()       {}
func (Certificate) act() {}
func (GiveUp) act()      {}
func (Blame) act()       {}
