package peer

import (
	"encoding/binary"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
)

// The message types of parts (spec/parts.md). They are unknown to Decode, as to a peer that did not set SpeaksParts.
const (
	TypeFollow      Type = 0x60
	TypePlace       Type = 0x61
	TypeSubscribe   Type = 0x62
	TypeUnsubscribe Type = 0x63
	TypeEnd         Type = 0x64
	TypePart        Type = 0x65
	TypeEnough      Type = 0x66
	TypeHold        Type = 0x67
)

// Limits of the messages of parts.
const (
	Stripes   = 4         // trees of a stream
	MaxPath   = 8         // peer IDs of a place
	MaxRank   = 1<<53 - 1 // of a place: of a node that nothing feeds
	MaxPushID = 1<<22 - 1 // of a part

	pushedBit = 1 << 31 // of the request ID of a pushed piece
	placeLen  = 16 + 1 + 8 + 3
	partLen   = 16 + 4 + 4
)

// PushedID is the request ID with which a piece of a push travels.
func PushedID(push uint32, piece int) uint32 { return pushedBit | push*MaxPieces | uint32(piece) }

// Pushed reads a request ID: the push and the piece of it, if it is that of a pushed piece.
func Pushed(request uint32) (push uint32, piece int, is bool) {
	rest := request &^ pushedBit
	return rest / MaxPieces, int(rest % MaxPieces), request&pushedBit != 0
}

// Follow says that the sender plays, or serves, a stream; or no more.
type Follow struct {
	Stream segment.ID
	On     bool
}

// Place says where the sender stands in the tree of a stripe.
type Place struct {
	Stream      segment.ID
	Stripe      uint8
	Rank        uint64 // of the source at the top of the tree; MaxRank: nothing feeds the sender
	Room, Least uint8
	Path        []swarm.ID // from the source to the sender; empty if nothing feeds it
}

// Subscribe asks for the pieces of a stripe from now on. Slots are the children that the sender takes.
type Subscribe struct {
	Stream        segment.ID
	Stripe, Slots uint8
}

// Unsubscribe ends a subscription of the sender.
type Unsubscribe struct {
	Stream segment.ID
	Stripe uint8
}

// End refuses or ends a subscription of the receiver.
type End struct {
	Stream segment.ID
	Stripe uint8
}

// Part announces a push of a part's pieces.
type Part struct {
	Stream segment.ID
	Push   uint32 // chosen by the sender, up to MaxPushID
	Turn   uint32
	Raw    []byte // certificate (package certificate parses it)
}

// Enough says that nothing more of a part is wanted.
type Enough struct{ Stream, Segment segment.ID }

// Hold says that nothing of any part is wanted for now; or that it is again.
type Hold struct {
	Stream segment.ID
	On     bool
}

// Type implements Message.
func (Follow) Type() Type { return TypeFollow }

// Type implements Message.
func (Place) Type() Type { return TypePlace }

// Type implements Message.
func (Subscribe) Type() Type { return TypeSubscribe }

// Type implements Message.
func (Unsubscribe) Type() Type { return TypeUnsubscribe }

// Type implements Message.
func (End) Type() Type { return TypeEnd }

// Type implements Message.
func (Part) Type() Type { return TypePart }

// Type implements Message.
func (Enough) Type() Type { return TypeEnough }

// Type implements Message.
func (Hold) Type() Type { return TypeHold }

// DecodeParts reads one message of parts that came over the channel. Byte slices of the result alias b. Errors are as with Decode.
func DecodeParts(channel Channel, b []byte) (Message, error) {
	switch {
	case len(b) == 0:
		return nil, malformed(0, ReasonEmpty)
	case Type(b[0]) < TypeFollow || Type(b[0]) > TypeHold:
		return nil, &UnknownTypeError{Type: Type(b[0])}
	case channel != Control:
		return nil, malformed(Type(b[0]), ReasonChannel)
	case len(b) > MaxControl:
		return nil, malformed(Type(b[0]), ReasonLong)
	}
	m, reason := decodeParts(Type(b[0]), b[1:])
	if reason == "" {
		reason = m.check()
	}
	if reason != "" {
		return nil, malformed(Type(b[0]), reason)
	}
	return m, nil
}

func decodeParts(t Type, b []byte) (Message, Reason) {
	if len(b) < 16 {
		return nil, ReasonShort
	}
	stream, rest := segment.ID(b[:16]), b[16:]
	switch t {
	case TypePlace:
		return decodePlace(b)
	case TypePart:
		if len(b) <= partLen {
			return nil, ReasonShort
		}
		return Part{Stream: stream, Push: binary.BigEndian.Uint32(rest), Turn: binary.BigEndian.Uint32(rest[4:]), Raw: b[partLen:]}, ""
	case TypeEnough:
		if r := exact(rest, 16); r != "" {
			return nil, r
		}
		return Enough{Stream: stream, Segment: segment.ID(rest)}, ""
	case TypeSubscribe:
		if r := exact(rest, 2); r != "" {
			return nil, r
		}
		return Subscribe{Stream: stream, Stripe: rest[0], Slots: rest[1]}, ""
	}
	if r := exact(rest, 1); r != "" {
		return nil, r
	}
	switch t {
	case TypeUnsubscribe:
		return Unsubscribe{Stream: stream, Stripe: rest[0]}, ""
	case TypeEnd:
		return End{Stream: stream, Stripe: rest[0]}, ""
	}
	if rest[0] > 1 {
		return nil, ReasonLimit
	}
	if t == TypeFollow {
		return Follow{Stream: stream, On: rest[0] == 1}, ""
	}
	return Hold{Stream: stream, On: rest[0] == 1}, ""
}

// decodePlace checks the count before anything is allocated for it.
func decodePlace(b []byte) (Message, Reason) {
	if len(b) < placeLen {
		return nil, ReasonShort
	}
	n, ids := int(b[placeLen-1]), b[placeLen:]
	if n > MaxPath {
		return nil, ReasonLimit
	}
	if r := exact(ids, n*16); r != "" {
		return nil, r
	}
	m := Place{Stream: segment.ID(b[:16]), Stripe: b[16], Rank: binary.BigEndian.Uint64(b[17:]), Room: b[25], Least: b[26]}
	for i := range n {
		m.Path = append(m.Path, swarm.ID(ids[i*16:i*16+16]))
	}
	return m, ""
}

func (m Follow) append(dst []byte) []byte { return appendSwitch(dst, m.Stream, m.On) }

func (m Hold) append(dst []byte) []byte { return appendSwitch(dst, m.Stream, m.On) }

func appendSwitch(dst []byte, stream segment.ID, on bool) []byte {
	dst = append(dst, stream[:]...)
	if on {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func (m Place) append(dst []byte) []byte {
	dst = append(append(dst, m.Stream[:]...), m.Stripe)
	dst = binary.BigEndian.AppendUint64(dst, m.Rank)
	dst = append(dst, m.Room, m.Least, byte(len(m.Path)))
	for _, id := range m.Path {
		dst = append(dst, id[:]...)
	}
	return dst
}

func (m Subscribe) append(dst []byte) []byte {
	return append(append(dst, m.Stream[:]...), m.Stripe, m.Slots)
}

func (m Unsubscribe) append(dst []byte) []byte { return append(append(dst, m.Stream[:]...), m.Stripe) }

func (m End) append(dst []byte) []byte { return append(append(dst, m.Stream[:]...), m.Stripe) }

func (m Part) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, m.Stream[:]...), m.Push)
	return append(binary.BigEndian.AppendUint32(dst, m.Turn), m.Raw...)
}

func (m Enough) append(dst []byte) []byte {
	return append(append(dst, m.Stream[:]...), m.Segment[:]...)
}

func (Follow) check() Reason { return "" }

func (Hold) check() Reason { return "" }

func (Enough) check() Reason { return "" }

func checkStripe(stripe uint8) Reason {
	if stripe >= Stripes {
		return ReasonLimit
	}
	return ""
}

func (m Subscribe) check() Reason { return checkStripe(m.Stripe) }

func (m Unsubscribe) check() Reason { return checkStripe(m.Stripe) }

func (m End) check() Reason { return checkStripe(m.Stripe) }

func (m Place) check() Reason {
	if len(m.Path) > MaxPath || m.Rank > MaxRank || (m.Rank == MaxRank) != (len(m.Path) == 0) {
		return ReasonLimit
	}
	return checkStripe(m.Stripe)
}

func (m Part) check() Reason {
	if reason := checkCertificate(m.Raw); reason != "" || m.Push <= MaxPushID {
		return reason
	}
	return ReasonLimit
}
