package ledbat

import "encoding/binary"

// Ack is what the receiver of background data tells its sender.
//
// On the wire, big-endian, on the ack channel:
//
//	type u8 (0x30) · cumulative u32 · highest u32 · bitmap u64 · received at u32 · hold u32
type Ack struct {
	Cumulative uint32 // every sequence below it has come
	Highest    uint32 // the highest sequence that has come
	Bitmap     uint64 // most significant bit: Highest − 1 has come; least: Highest − 64
	ReceivedAt uint32 // µs of the receiver's clock, wrapping: when Highest came
	Hold       uint32 // µs from then until this ack was sent
}

// AckType and AckLen are the first byte and the length of an ack on the wire.
const (
	AckType = 0x30
	AckLen  = 25
)

// has says whether the sequence that lies so far below the highest one has come.
func (a Ack) has(below int64) bool {
	return below >= 1 && below <= 64 && a.Bitmap>>(64-below)&1 == 1
}

// Append appends the ack as it goes over the wire.
func (a Ack) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, AckType), a.Cumulative)
	b = binary.BigEndian.AppendUint32(b, a.Highest)
	b = binary.BigEndian.AppendUint64(b, a.Bitmap)
	b = binary.BigEndian.AppendUint32(b, a.ReceivedAt)
	return binary.BigEndian.AppendUint32(b, a.Hold)
}

// ParseAck reads an ack. ok is false when b is none.
func ParseAck(b []byte) (a Ack, ok bool) {
	if len(b) != AckLen || b[0] != AckType {
		return Ack{}, false
	}
	return Ack{
		Cumulative: binary.BigEndian.Uint32(b[1:]), Highest: binary.BigEndian.Uint32(b[5:]), Bitmap: binary.BigEndian.Uint64(b[9:]),
		ReceivedAt: binary.BigEndian.Uint32(b[17:]), Hold: binary.BigEndian.Uint32(b[21:]),
	}, true
}
