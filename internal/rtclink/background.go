package rtclink

import "github.com/leeway-video/leeway/internal/wire/peer"

// What SCTP puts around user data in a packet, bytes: the common header, and the header of a chunk, which is longer where
// both sides interleave messages (RFC 8260). Chunks are padded to a multiple of 4.
const (
	commonHeader    = 12
	dataHeader      = 16
	interleavedData = 20
	chunkAlignment  = 4
)

// SendAck hands a message to the ack channel. A peer that does not read its acks is closed instead of buffered for.
func (l *Link) SendAck(message []byte) {
	if !l.opened.Load() || l.closing.Load() {
		return
	}
	if l.ack.BufferedAmount() > controlBound {
		l.Close(peer.CloseLimit, nil)
		return
	}
	if _, err := l.ack.Write(message); err != nil {
		l.Close(peer.CloseFailed, nil)
	}
}

// SendBackground hands SCTP a data message of the background lane, unless more than about one message would wait for
// SCTP's own window. Less than that must not be asked for: SCTP lets its window grow only while something waits, and a
// message longer than the first window would never go. behind says how many bytes waited already, so that the message's
// delay begins in our own buffer and not on the path.
//
// Nothing says when there is room again: acks come as long as something is in flight, and with them the next try.
func (l *Link) SendBackground(message []byte) (behind int, ok bool) {
	if !l.opened.Load() || l.closing.Load() || len(message) > l.plan.Message {
		return 0, false
	}
	l.mu.Lock()
	held, window := int(l.buffered()), int(l.association.CWND())
	if held+len(message) > window+l.plan.Message {
		l.mu.Unlock()
		return 0, false
	}
	c := l.data[l.next]
	l.next = (l.next + 1) % len(l.data)
	l.written += int64(len(message))
	l.mu.Unlock()
	if _, err := c.Write(message); err != nil {
		l.Close(peer.CloseFailed, nil)
		return 0, false
	}
	return max(held-window, 0), true
}

// Payload is how many bytes of a message one packet carries, 0 while the link is not open.
func (l *Link) Payload() int {
	if !l.opened.Load() || l.closing.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	header := commonHeader + dataHeader
	if m, ok := l.association.Metadata(); ok && m.MessageInterleavingEnabled {
		header = commonHeader + interleavedData
	}
	n := int(l.association.MTU()) - header
	return n - n%chunkAlignment
}
