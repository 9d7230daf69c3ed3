package peer

import (
	"encoding/binary"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
)

// Channel is one of the kinds of data channel of a link.
type Channel int

// The channels.
const (
	Control Channel = iota
	Ack
	DataChannel
)

// Decode reads one message that came over channel. Byte slices of the result alias b. The error is a
// *MalformedError, which ends the link, or an *UnknownTypeError, which is skipped and counted.
// Data messages are read more cheaply, and against the channel plan, by DecodeData.
func Decode(channel Channel, b []byte) (Message, error) {
	t, body, err := open(channel, b)
	if err != nil {
		return nil, err
	}
	m, reason := decode(t, body)
	if reason == "" {
		reason = m.check()
	}
	if reason != "" {
		return nil, malformed(t, reason)
	}
	return m, nil
}

// DecodeData reads a message of a data channel whose plan allows at most max bytes. It allocates nothing unless
// it fails; Payload aliases b.
func DecodeData(b []byte, max int) (Data, error) {
	t, body, err := open(DataChannel, b)
	if err != nil {
		return Data{}, err
	}
	if len(b) > max {
		return Data{}, malformed(t, ReasonLong)
	}
	m, reason := decodeData(body)
	if reason == "" {
		reason = m.check()
	}
	if reason != "" {
		return Data{}, malformed(t, reason)
	}
	return m, nil
}

// open checks what does not depend on the layout: size, type, channel.
func open(channel Channel, b []byte) (Type, []byte, error) {
	if len(b) == 0 {
		return 0, nil, malformed(0, ReasonEmpty)
	}
	t := Type(b[0])
	want, known := channelOf(t)
	switch {
	case !known:
		return t, nil, &UnknownTypeError{Type: t}
	case want != channel:
		return t, nil, malformed(t, ReasonChannel)
	case len(b) > MaxControl:
		return t, nil, malformed(t, ReasonLong)
	}
	return t, b[1:], nil
}

func channelOf(t Type) (Channel, bool) {
	switch t {
	case TypeData:
		return DataChannel, true
	case TypeHello, TypeHave, TypeCertificateRequest, TypeCertificate, TypeCertificateNone, TypeRequest,
		TypeCancel, TypeReject, TypePromote, TypePing, TypePong, TypeBye:
		return Control, true
	}
	return 0, false
}

func decode(t Type, b []byte) (Message, Reason) {
	switch t {
	case TypeHello:
		return decodeHello(b)
	case TypeHave:
		return decodeHave(b)
	case TypeCertificateRequest:
		return decodeCertificateRequest(b)
	case TypeCertificate:
		if len(b) <= 16 {
			return nil, ReasonShort
		}
		return Certificate{Segment: segment.ID(b[:16]), Raw: b[16:]}, ""
	case TypeCertificateNone:
		if r := exact(b, certificateNoLen-1); r != "" {
			return nil, r
		}
		return CertificateNone{Segment: segment.ID(b[:16]), Reason: NoneReason(b[16]), ObjectLength: binary.BigEndian.Uint64(b[17:])}, ""
	case TypeRequest:
		return decodeRequest(b)
	case TypeCancel:
		ids, r := decodeIDs(b)
		return Cancel{IDs: ids}, r
	case TypePromote:
		ids, r := decodeIDs(b)
		return Promote{IDs: ids}, r
	case TypeReject:
		if len(b) < 1 {
			return nil, ReasonShort
		}
		ids, r := decodeIDs(b[1:])
		return Reject{Reason: RejectReason(b[0]), IDs: ids}, r
	case TypeData:
		return decodeData(b)
	case TypePing, TypePong:
		if r := exact(b, 8); r != "" {
			return nil, r
		}
		nonce, at := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if t == TypePong {
			return Pong{Nonce: nonce, SentAt: at}, ""
		}
		return Ping{Nonce: nonce, SentAt: at}, ""
	default: // TypeBye; channelOf names no other
		if r := exact(b, 1); r != "" {
			return nil, r
		}
		return Bye{Reason: ByeReason(b[0])}, ""
	}
}

func exact(b []byte, n int) Reason {
	switch {
	case len(b) < n:
		return ReasonShort
	case len(b) > n:
		return ReasonLong
	}
	return ""
}

// decodeHello leaves trailing bytes alone: they are room for later versions.
func decodeHello(b []byte) (Message, Reason) {
	if len(b) < helloLen-1 {
		return nil, ReasonShort
	}
	return Hello{
		MinVersion: b[0], MaxVersion: b[1],
		Flags:       Flags(binary.BigEndian.Uint16(b[2:])),
		MaxRequests: binary.BigEndian.Uint16(b[4:]),
		Peer:        swarm.ID(b[6:22]), Swarm: swarm.ID(b[22:38]),
	}, ""
}

func decodeHave(b []byte) (Message, Reason) {
	n, b, r := decodeCount(b, haveEntryLen)
	if r != "" {
		return nil, r
	}
	entries := make([]HaveEntry, n)
	for i := range entries {
		e := &entries[i]
		if len(b) < haveEntryLen {
			return nil, ReasonShort
		}
		e.Segment, e.State, e.Pieces = segment.ID(b[:16]), State(b[16]), binary.BigEndian.Uint16(b[17:])
		b = b[haveEntryLen:]
		if e.State == HoldsPartial {
			size := BitmapLen(int(e.Pieces))
			if e.Pieces < 1 || size > bitmapMax {
				return nil, ReasonLimit
			}
			if len(b) < size {
				return nil, ReasonShort
			}
			e.Bitmap, b = b[:size:size], b[size:]
		}
		if r := e.check(); r != "" {
			return nil, r
		}
	}
	if len(b) > 0 {
		return nil, ReasonLong
	}
	return Have{Entries: entries}, ""
}

// decodeCount reads a list's count and checks it against the least that its entries take, before anything is
// allocated for them.
func decodeCount(b []byte, entry int) (int, []byte, Reason) {
	if len(b) < 1 {
		return 0, nil, ReasonShort
	}
	n := int(b[0])
	switch {
	case n == 0:
		return 0, nil, ReasonCount
	case len(b)-1 < n*entry:
		return 0, nil, ReasonShort
	}
	return n, b[1:], ""
}

func decodeCertificateRequest(b []byte) (Message, Reason) {
	n, b, r := decodeCount(b, 16)
	if r != "" {
		return nil, r
	}
	if r := exact(b, n*16); r != "" {
		return nil, r
	}
	ids := make([]segment.ID, n)
	for i := range ids {
		ids[i] = segment.ID(b[i*16 : i*16+16])
	}
	return CertificateRequest{Segments: ids}, ""
}

func decodeRequest(b []byte) (Message, Reason) {
	if len(b) < 17 {
		return nil, ReasonShort
	}
	m := Request{Segment: segment.ID(b[:16]), Lane: Lane(b[16])}
	n, b, r := decodeCount(b[17:], 6)
	if r != "" {
		return nil, r
	}
	if r := exact(b, n*6); r != "" {
		return nil, r
	}
	m.Requests = make([]PieceRequest, n)
	for i := range m.Requests {
		m.Requests[i] = PieceRequest{ID: binary.BigEndian.Uint32(b[i*6:]), Piece: binary.BigEndian.Uint16(b[i*6+4:])}
	}
	return m, ""
}

func decodeIDs(b []byte) ([]uint32, Reason) {
	n, b, r := decodeCount(b, 4)
	if r != "" {
		return nil, r
	}
	if r := exact(b, n*4); r != "" {
		return nil, r
	}
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = binary.BigEndian.Uint32(b[i*4:])
	}
	return ids, ""
}

func decodeData(b []byte) (Data, Reason) {
	if len(b) < DataHeader { // type byte is gone: the header's rest and one byte of payload
		return Data{}, ReasonShort
	}
	return Data{
		Request: binary.BigEndian.Uint32(b),
		Offset:  binary.BigEndian.Uint16(b[4:]),
		SentAt:  binary.BigEndian.Uint32(b[6:]),
		Payload: b[10:],
	}, ""
}
