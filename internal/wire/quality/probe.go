package quality

import "encoding/binary"

// The types of binary messages.
const (
	typeProbe = 1
	typeEcho  = 2
)

// Message is a Probe or an Echo.
type Message interface {
	// Append writes the message, with zeros up to size bytes if that is larger than its header.
	Append(b []byte, size int) []byte
	message()
}

// Probe is a message of a stream. Times are µs of the clock of the side that writes them.
type Probe struct {
	Stream   uint16
	Sequence uint32
	Sent     int64
}

// Echo is what the server makes of a probe.
type Echo struct {
	Probe
	Received, Echoed int64
}

func (Probe) message() {}

// Append implements Message.
func (p Probe) Append(b []byte, size int) []byte {
	return pad(p.header(b, typeProbe), size-ProbeSize)
}

// Append implements Message.
func (e Echo) Append(b []byte, size int) []byte {
	b = e.header(b, typeEcho)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Received))
	return pad(binary.BigEndian.AppendUint64(b, uint64(e.Echoed)), size-EchoSize)
}

func (p Probe) header(b []byte, kind byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, kind, 0), p.Stream)
	b = binary.BigEndian.AppendUint32(b, p.Sequence)
	return binary.BigEndian.AppendUint64(b, uint64(p.Sent))
}

func pad(b []byte, n int) []byte {
	if n <= 0 {
		return b
	}
	return append(b, make([]byte, n)...)
}

// Decode reads a message of the quality channel. Its error is a *MalformedError.
func Decode(b []byte) (Message, error) {
	switch {
	case len(b) > MaxSize:
		return nil, malformed(ReasonLong)
	case len(b) < ProbeSize || b[0] == typeEcho && len(b) < EchoSize:
		return nil, malformed(ReasonShort)
	case b[0] != typeProbe && b[0] != typeEcho:
		return nil, malformed(ReasonType)
	case b[1] != 0:
		return nil, malformed(ReasonReserved)
	}
	p := Probe{binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:]), int64(binary.BigEndian.Uint64(b[8:]))}
	ok := p.Sequence <= maxSequence && clock(p.Sent)
	if b[0] == typeProbe {
		if !ok {
			return nil, malformed(ReasonRange)
		}
		return p, nil
	}
	e := Echo{p, int64(binary.BigEndian.Uint64(b[16:])), int64(binary.BigEndian.Uint64(b[24:]))}
	if !ok || !clock(e.Received) || !clock(e.Echoed) {
		return nil, malformed(ReasonRange)
	}
	return e, nil
}

func clock(us int64) bool { return us >= 0 && us <= MaxClock }
