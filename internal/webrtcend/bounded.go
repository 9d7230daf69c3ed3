package webrtcend

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"net"
)

// Of chunks of SCTP (RFC 9260, 3.2; RFC 8260, 2.1), those of messages and those that acknowledge (3.3.4), bytes.
const (
	chunkHeader = 4
	chunkData   = 0
	chunkSACK   = 3
	chunkIData  = 64
	wholeFlags  = 3  // of a fragment that is a message's first and its last
	ackHeader   = 16 // with the chunk's
	ackBlock    = 4
)

// A fragment is to have fairSize bytes in the mean. Those of a message are as long as a packet, but for the last one, and one that fills up a
// packet; a connection whose fragments lack mostLacked ends.
const (
	fairSize   = 256
	mostLacked = 4096 * fairSize
)

var errCrumbs = errors.New("SCTP: the other side sends fragments of next to no bytes")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Bounded is a connection below SCTP, which takes all that comes. It keeps any number of fragments of a message, as long as they have few bytes
// together, and looks through them for each one more. It makes room for as many blocks as a header of 16 bytes says that it acknowledges, and
// looks at each message on its way once for each block that has it; such packets are dropped. And it says all that is missing, however long
// that is: a peer that leaves every other message out would have an answer of 16 kB to each packet. What goes out fits one.
type Bounded struct {
	net.Conn
	lacked int // bytes that fragments lacked; of the goroutine that reads
}

// Read implements net.Conn.
func (b *Bounded) Read(p []byte) (int, error) {
	for {
		n, err := b.Conn.Read(p)
		if err != nil {
			return n, err
		}
		if b.lacks(p[:n]); b.lacked > mostLacked {
			return 0, errCrumbs
		}
		if plainAcks(p[:n]) {
			return n, nil
		}
	}
}

// lacks takes in the fragments of a packet.
func (b *Bounded) lacks(packet []byte) {
	for chunk := range chunks(packet) {
		header := dataHeader
		if chunk[0] == chunkIData {
			header = interleavedData
		}
		if (chunk[0] == chunkData || chunk[0] == chunkIData) && chunk[1]&wholeFlags != wholeFlags {
			b.lacked = max(0, b.lacked+fairSize+header-len(chunk))
		}
	}
}

// chunks goes through those of a packet, up to one that is malformed: SCTP takes nothing of such a packet.
func chunks(packet []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := CommonHeader; at+chunkHeader <= len(packet); {
			length := int(binary.BigEndian.Uint16(packet[at+2:]))
			if length < chunkHeader || length > len(packet)-at || !yield(packet[at:at+length]) {
				return
			}
			at += (length + ChunkAlignment - 1) / ChunkAlignment * ChunkAlignment
		}
	}
}

// Write implements net.Conn.
func (b *Bounded) Write(packet []byte) (int, error) {
	if _, err := b.Conn.Write(shortAck(packet)); err != nil {
		return 0, err
	}
	return len(packet), nil
}

// plainAcks says whether a packet has at most one chunk that acknowledges, which has the blocks that it says, each behind the one before.
func plainAcks(packet []byte) bool {
	acks := 0
	for chunk := range chunks(packet) {
		if chunk[0] == chunkSACK {
			if acks++; acks > 1 || !ascending(chunk) {
				return false
			}
		}
	}
	return true
}

func ascending(ack []byte) bool {
	if len(ack) < ackHeader {
		return false
	}
	blocks, twice := int(binary.BigEndian.Uint16(ack[12:])), int(binary.BigEndian.Uint16(ack[14:]))
	if len(ack) != ackHeader+ackBlock*(blocks+twice) {
		return false
	}
	for last := uint16(0); blocks > 0; blocks-- {
		block := ack[len(ack)-ackBlock*(blocks+twice):]
		first, end := binary.BigEndian.Uint16(block), binary.BigEndian.Uint16(block[2:])
		if first <= last || end < first {
			return false
		}
		last = end
	}
	return true
}

// shortAck is a packet that fits MTU where what acknowledges makes it longer: the first of its blocks, which are those that are missed for longest.
func shortAck(packet []byte) []byte {
	if len(packet) <= MTU || packet[CommonHeader] != chunkSACK {
		return packet
	}
	blocks := min(int(binary.BigEndian.Uint16(packet[CommonHeader+12:])), (MTU-CommonHeader-ackHeader)/ackBlock)
	length := ackHeader + ackBlock*blocks
	short := append([]byte(nil), packet[:CommonHeader+length]...)
	binary.BigEndian.PutUint16(short[CommonHeader+2:], uint16(length))
	binary.BigEndian.PutUint16(short[CommonHeader+12:], uint16(blocks))
	binary.BigEndian.PutUint16(short[CommonHeader+14:], 0)
	if sum := short[8:12]; binary.LittleEndian.Uint32(sum) != 0 { // else the two have agreed on none
		clear(sum)
		binary.LittleEndian.PutUint32(sum, crc32.Checksum(short, castagnoli))
	}
	return short
}
