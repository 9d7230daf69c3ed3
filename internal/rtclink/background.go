package rtclink

// What SCTP puts around user data in a packet, bytes: the common header, and the header of a chunk, which is longer where
// both sides interleave messages (RFC 8260). Chunks are padded to a multiple of 4.
const (
	commonHeader    = 12
	dataHeader      = 16
	interleavedData = 20
	chunkAlignment  = 4
	// packetPayload is how many bytes of a message one packet carries at least.
	packetPayload = (outboundMTU - commonHeader - interleavedData) / chunkAlignment * chunkAlignment
)

// SendAck hands a message to the ack channel.
func (l *Link) SendAck(message []byte) {
	if l.usable() {
		l.say(l.ack, message)
	}
}

// Room says whether SCTP takes n more bytes of background: as long as no more than about one message waits for its own
// window. Less than that must not be asked for: SCTP lets its window grow only while something waits, and a message longer
// than the first window would never go. behind says how many bytes wait already: the delay of a message behind them begins
// in our own buffer and not on the path.
//
// Nothing says when there is room again: acks come as long as something is in flight, and with them the next try.
func (l *Link) Room(n int) (behind int, ok bool) {
	if !l.usable() {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	held, window := int(l.buffered()), int(l.association.CWND())
	return max(held-window, 0), held+n <= window+l.plan.Message
}

// SendBackground hands SCTP a data message of the background lane, whatever the room; false says that it is too long or
// the link has ended.
func (l *Link) SendBackground(message []byte) bool {
	if !l.usable() || len(message) > l.plan.Message {
		return false
	}
	l.mu.Lock()
	c := l.turn(len(message))
	l.mu.Unlock()
	return l.carry(c, message)
}

// Payload is how many bytes of a message one packet carries, 0 while the link is not open.
func (l *Link) Payload() int {
	if !l.usable() {
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
