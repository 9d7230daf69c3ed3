package peer

import "encoding/binary"

// Append writes m behind dst. It fails with a *MalformedError, and leaves dst as it was, when m is out of the
// protocol's limits.
func Append(dst []byte, m Message) ([]byte, error) {
	if r := m.check(); r != "" {
		return dst, malformed(m.Type(), r)
	}
	n := len(dst)
	out := m.append(append(dst, byte(m.Type())))
	if len(out)-n > MaxControl {
		return out[:n], malformed(m.Type(), ReasonLong)
	}
	return out, nil
}

func (m Hello) append(dst []byte) []byte {
	dst = append(dst, m.MinVersion, m.MaxVersion)
	dst = binary.BigEndian.AppendUint16(dst, uint16(m.Flags))
	dst = binary.BigEndian.AppendUint16(dst, m.MaxRequests)
	dst = append(dst, m.Peer[:]...)
	return append(dst, m.Swarm[:]...)
}

func (m Have) append(dst []byte) []byte {
	dst = append(dst, byte(len(m.Entries)))
	for _, e := range m.Entries {
		dst = append(dst, e.Segment[:]...)
		dst = append(dst, byte(e.State))
		dst = binary.BigEndian.AppendUint16(dst, e.Pieces)
		if e.State == HoldsPartial {
			dst = append(dst, e.Bitmap...)
		}
	}
	return dst
}

func (m CertificateRequest) append(dst []byte) []byte {
	dst = append(dst, byte(len(m.Segments)))
	for _, id := range m.Segments {
		dst = append(dst, id[:]...)
	}
	return dst
}

func (m Certificate) append(dst []byte) []byte {
	return append(append(dst, m.Segment[:]...), m.Raw...)
}

func (m CertificateNone) append(dst []byte) []byte {
	dst = append(dst, m.Segment[:]...)
	dst = append(dst, byte(m.Reason))
	return binary.BigEndian.AppendUint64(dst, m.ObjectLength)
}

func (m Request) append(dst []byte) []byte {
	dst = append(dst, m.Segment[:]...)
	dst = append(dst, byte(m.Lane), byte(len(m.Requests)))
	for _, r := range m.Requests {
		dst = binary.BigEndian.AppendUint32(dst, r.ID)
		dst = binary.BigEndian.AppendUint16(dst, r.Piece)
	}
	return dst
}

func appendIDs(dst []byte, ids []uint32) []byte {
	dst = append(dst, byte(len(ids)))
	for _, id := range ids {
		dst = binary.BigEndian.AppendUint32(dst, id)
	}
	return dst
}

func (m Cancel) append(dst []byte) []byte { return appendIDs(dst, m.IDs) }

func (m Reject) append(dst []byte) []byte { return appendIDs(append(dst, byte(m.Reason)), m.IDs) }

func (m Promote) append(dst []byte) []byte { return appendIDs(dst, m.IDs) }

func (m Data) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, m.Request)
	dst = binary.BigEndian.AppendUint16(dst, m.Offset)
	dst = binary.BigEndian.AppendUint32(dst, m.SentAt)
	return append(dst, m.Payload...)
}

func appendPing(dst []byte, nonce, sentAt uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, nonce), sentAt)
}

func (m Ping) append(dst []byte) []byte { return appendPing(dst, m.Nonce, m.SentAt) }

func (m Pong) append(dst []byte) []byte { return appendPing(dst, m.Nonce, m.SentAt) }

func (m Bye) append(dst []byte) []byte { return append(dst, byte(m.Reason)) }
