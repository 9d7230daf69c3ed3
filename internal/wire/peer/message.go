// Package peer is the codec of the peer protocol (spec/peer-protocol.md): the binary messages that two peers
// exchange over the data channels of one link.
//
// Every message begins with its type byte; integers are big-endian:
//
//	0x01 hello               min u8, max u8, flags u16, max requests u16, peer 16, swarm 16
//	0x02 have                count u8, {segment 16, state u8, pieces u16, [bitmap]}…
//	0x03 certificate-request count u8, segment 16…
//	0x04 certificate         segment 16, certificate
//	0x05 certificate-none    segment 16, reason u8, object length u64
//	0x10 request             segment 16, lane u8, count u8, {id u32, piece u16}…
//	0x11 cancel              count u8, id u32…
//	0x12 reject              reason u8, count u8, id u32…
//	0x13 promote             count u8, id u32…
//	0x20 data                id u32, offset u16, sent at u32, payload
//	0x21 background-data     of the background transport (package background)
//	0x30 ack                 of the background transport (package ledbat)
//	0x40 ping                nonce u32, sent at u32
//	0x41 pong                nonce u32, sent at u32
//	0x50 bye                 reason u8
//	0x60 to 0x67             of parts (spec/parts.md, DecodeParts)
//
// The same checks hold when a message is written and when it is read, so that what one side sends is never
// what the other side must end the link for.
package peer

import (
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
)

// Type is the first byte of a message.
type Type byte

// The message types.
const (
	TypeHello              Type = 0x01
	TypeHave               Type = 0x02
	TypeCertificateRequest Type = 0x03
	TypeCertificate        Type = 0x04
	TypeCertificateNone    Type = 0x05
	TypeRequest            Type = 0x10
	TypeCancel             Type = 0x11
	TypeReject             Type = 0x12
	TypePromote            Type = 0x13
	TypeData               Type = 0x20
	TypeBackgroundData     Type = 0x21 // unknown to Decode, as to a peer that did not set AcksBackground
	TypeAck                Type = 0x30 // likewise
	TypePing               Type = 0x40
	TypePong               Type = 0x41
	TypeBye                Type = 0x50
)

// Limits of the protocol.
const (
	Version          = 1          // the highest version spoken here
	MaxControl       = 65535      // bytes of a message on the control or ack channel
	MinMessage       = 1200       // lowest M of a channel plan, bytes
	MaxMessage       = 65535      // highest M of a channel plan, bytes
	DataHeader       = 11         // bytes of a data message before its payload
	PieceSize        = 16384      // bytes of a piece (segment.PieceSize)
	MaxPieces        = 512        // pieces of a segment
	MaxSegment       = 8 << 20    // bytes of a segment (segment.MaxLength)
	MaxObject        = 1<<53 - 1  // bytes of an object: what JavaScript counts exactly
	MaxCertificate   = 17837      // bytes of a certificate
	MaxRequests      = 1024       // highest "max requests" of a hello
	MaxUnknown       = 64         // unknown messages that a link survives
	MaxUnsolicited   = 1 << 20    // bytes of unsolicited data that a link survives
	MaxHaveSegments  = 4096       // segments remembered a peer
	maxCount         = 255        // entries of a list
	helloLen         = 1 + 6 + 32 // bytes of a hello of version 1
	haveEntryLen     = 16 + 3     // bytes of a have entry without its bitmap
	bitmapMax        = MaxPieces / 8
	certificateNoLen = 1 + 16 + 1 + 8
)

// Flags of a hello; bits not named here are ignored.
type Flags uint16

// The flags.
const (
	OnDemand Flags = 1 << 0 // a seed: may be asked for the certificate of any segment of the title
	NoUpload Flags = 1 << 1 // role leech: never ask it
	// AcksBackground says that the sender acks background data. Without it no background data is sent to that peer.
	AcksBackground Flags = 1 << 2
	// SpeaksParts says that the sender knows the messages of parts. Without it none is sent to that peer.
	SpeaksParts Flags = 1 << 3
)

// Lane is the lane of a request.
type Lane byte

// The lanes.
const (
	Foreground Lane = 0
	Background Lane = 1
)

// State is what a peer says it holds of a segment.
type State byte

// The states of a have entry.
const (
	HoldsNone     State = 0 // withdrawn
	HoldsPartial  State = 1 // the pieces of the bitmap
	HoldsComplete State = 2
)

// NoneReason says why there is no certificate.
type NoneReason byte

// The reasons of certificate-none.
const (
	NoneUnknown       NoneReason = 0
	NoneNotAllowed    NoneReason = 1
	NoneBudget        NoneReason = 2
	NoneOrigin        NoneReason = 3
	NoneTooLarge      NoneReason = 4
	NoneWithdrawn     NoneReason = 5
	NoneTooFewViewers NoneReason = 6
)

// RejectReason says why a request is not served.
type RejectReason byte

// The reasons of reject.
const (
	RejectNotHeld    RejectReason = 0
	RejectBusy       RejectReason = 1
	RejectBudget     RejectReason = 2
	RejectWithdrawn  RejectReason = 3
	RejectLaneOff    RejectReason = 4
	RejectOutOfRange RejectReason = 5
)

// ByeReason says why a link is ended by its other side.
type ByeReason byte

// The reasons of bye.
const (
	ByeLeaving       ByeReason = 0
	ByeSwarmLeft     ByeReason = 1
	ByeIdle          ByeReason = 2
	ByeReplaced      ByeReason = 3
	ByeDraining      ByeReason = 4
	ByeProtocolError ByeReason = 5
	ByeBadPiece      ByeReason = 6
	ByeOverLimit     ByeReason = 7
	ByePolicy        ByeReason = 8
)

// Message is one message of the protocol: one of the struct types below.
type Message interface {
	// Type is the message's first byte.
	Type() Type
	// append writes what follows the type byte.
	append(dst []byte) []byte
	// check returns why the message is out of its limits, or "".
	check() Reason
}

// Hello is the first message of each side.
type Hello struct {
	MinVersion, MaxVersion uint8
	Flags                  Flags
	MaxRequests            uint16 // requests that the sender keeps queued for the other side
	Peer, Swarm            swarm.ID
}

// HaveEntry says what the sender holds of one segment.
type HaveEntry struct {
	Segment segment.ID
	State   State
	Pieces  uint16 // pieces of the segment; 0 for HoldsNone
	Bitmap  []byte // HoldsPartial: most significant bit first, padding zero
}

// Have announces or withdraws segments.
type Have struct{ Entries []HaveEntry }

// CertificateRequest asks for the certificates of segments.
type CertificateRequest struct{ Segments []segment.ID }

// Certificate carries a certificate (package certificate parses it).
type Certificate struct {
	Segment segment.ID
	Raw     []byte
}

// CertificateNone says that there is none.
type CertificateNone struct {
	Segment      segment.ID
	Reason       NoneReason
	ObjectLength uint64 // bytes; 0 unless Reason is NoneTooLarge
}

// PieceRequest is one piece asked for.
type PieceRequest struct {
	ID    uint32 // chosen by the requester, unique on the link while outstanding
	Piece uint16
}

// Request asks for pieces of a segment.
type Request struct {
	Segment  segment.ID
	Lane     Lane
	Requests []PieceRequest
}

// Cancel takes requests back.
type Cancel struct{ IDs []uint32 }

// Reject refuses requests.
type Reject struct {
	Reason RejectReason
	IDs    []uint32
}

// Promote moves background requests to the foreground.
type Promote struct{ IDs []uint32 }

// Data is a part of a piece.
type Data struct {
	Request uint32
	Offset  uint16 // bytes from the start of the piece
	SentAt  uint32 // sender's clock, µs, wrapping
	Payload []byte
}

// Ping asks for a pong.
type Ping struct{ Nonce, SentAt uint32 }

// Pong answers a ping with its own figures.
type Pong struct{ Nonce, SentAt uint32 }

// Bye ends the link.
type Bye struct{ Reason ByeReason }

// Type implements Message.
func (Hello) Type() Type { return TypeHello }

// Type implements Message.
func (Have) Type() Type { return TypeHave }

// Type implements Message.
func (CertificateRequest) Type() Type { return TypeCertificateRequest }

// Type implements Message.
func (Certificate) Type() Type { return TypeCertificate }

// Type implements Message.
func (CertificateNone) Type() Type { return TypeCertificateNone }

// Type implements Message.
func (Request) Type() Type { return TypeRequest }

// Type implements Message.
func (Cancel) Type() Type { return TypeCancel }

// Type implements Message.
func (Reject) Type() Type { return TypeReject }

// Type implements Message.
func (Promote) Type() Type { return TypePromote }

// Type implements Message.
func (Data) Type() Type { return TypeData }

// Type implements Message.
func (Ping) Type() Type { return TypePing }

// Type implements Message.
func (Pong) Type() Type { return TypePong }

// Type implements Message.
func (Bye) Type() Type { return TypeBye }
