package background

import (
	"encoding/binary"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// A background data message, big-endian:
//
//	type u8 (0x21) · request u32 · offset u16 · sequence u32 · sent at u32 · echo u32 · flags u8 · payload
const (
	DataType = byte(peer.TypeBackgroundData)
	Header   = 20 // bytes before the payload

	flagEchoes = 1 << 0
	flagAckNow = 1 << 1
)

func appendData(b []byte, d peer.Data, s ledbat.Stamp) []byte {
	b = binary.BigEndian.AppendUint32(append(b, DataType), d.Request)
	b = binary.BigEndian.AppendUint16(b, d.Offset)
	b = binary.BigEndian.AppendUint32(b, s.Sequence)
	b = binary.BigEndian.AppendUint32(b, s.SentAt)
	b = binary.BigEndian.AppendUint32(b, s.Echo)
	flags := byte(0)
	if s.Echoes {
		flags |= flagEchoes
	}
	if s.AckNow {
		flags |= flagAckNow
	}
	return append(append(b, flags), d.Payload...)
}

func malformed(r peer.Reason) error {
	return &peer.MalformedError{Type: peer.TypeBackgroundData, Reason: r}
}

// parseData reads a background message of at most max bytes; the payload aliases b.
func parseData(b []byte, max int) (peer.Data, ledbat.Stamp, error) {
	switch {
	case len(b) == 0 || b[0] != DataType:
		return peer.Data{}, ledbat.Stamp{}, malformed(peer.ReasonEmpty)
	case len(b) > max:
		return peer.Data{}, ledbat.Stamp{}, malformed(peer.ReasonLong)
	case len(b) <= Header:
		return peer.Data{}, ledbat.Stamp{}, malformed(peer.ReasonShort)
	}
	d := peer.Data{Request: binary.BigEndian.Uint32(b[1:]), Offset: binary.BigEndian.Uint16(b[5:]), Payload: b[Header:]}
	if int(d.Offset)+len(d.Payload) > peer.PieceSize {
		return peer.Data{}, ledbat.Stamp{}, malformed(peer.ReasonLimit)
	}
	s := ledbat.Stamp{
		Sequence: binary.BigEndian.Uint32(b[7:]), SentAt: binary.BigEndian.Uint32(b[11:]), Echo: binary.BigEndian.Uint32(b[15:]),
		Echoes: b[19]&flagEchoes != 0, AckNow: b[19]&flagAckNow != 0,
	}
	d.SentAt = s.SentAt
	return d, s, nil
}
