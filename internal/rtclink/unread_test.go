package rtclink

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// makeChunk makes one of SCTP's: what follows its header is the sequence number and as many bytes more as asked for.
func makeChunk(kind, flags byte, number uint32, more int) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind, flags}, uint16(8+more))
	b = binary.BigEndian.AppendUint32(b, number)
	b = append(b, make([]byte, more)...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestMoreIsReadWhereAMessageMayHaveEnded(t *testing.T) {
	const begin, middle, end = 2, 0, 1
	sack := makeChunk(chunkSACK, 0, 0, 8)
	var u unread
	for i, c := range []struct {
		chunks [][]byte
		more   bool
	}{
		{[][]byte{sack}, false},
		{[][]byte{makeChunk(chunkIData, begin|end, 1<<32-3, 20)}, true}, // the first, whatever it is
		{[][]byte{makeChunk(chunkIData, begin, 1<<32-2, 21)}, false},
		{[][]byte{makeChunk(chunkIData, middle, 1<<32-1, 20)}, false},
		{[][]byte{makeChunk(chunkIData, end, 0, 20)}, true}, // the numbers wrap
		{[][]byte{makeChunk(chunkData, middle, 2, 20), sack}, false},
		{[][]byte{makeChunk(chunkData, middle, 1, 20)}, true}, // late: it may be what was missing
		{[][]byte{makeChunk(chunkData, middle, 2, 20)}, true}, // again
		{[][]byte{makeChunk(chunkData, middle, 3, 21), makeChunk(chunkData, end, 4, 2)}, true},
		{[][]byte{makeChunk(chunkData, end, 5, 21), makeChunk(chunkData, begin, 6, 2)}, true},
		{[][]byte{makeChunk(chunkData, middle, 7, 20)}, false},
		{[][]byte{makeChunk(chunkHeartbeat, 0, 0, 4)}, false},
		{[][]byte{makeChunk(chunkHeartbeatAck, 0, 0, 4)}, false},
		{[][]byte{sack, makeChunk(192, 0, 0, 4)}, true}, // FORWARD-TSN: what waited behind a message given up goes on
		{[][]byte{makeChunk(6, 0, 0, 0)}, true},         // ABORT
		{[][]byte{{chunkData, 0, 0, 3}}, true},          // malformed: SCTP says what it is
		{[][]byte{{chunkData, 0, 0, 200, 0, 0, 0, 9}}, true},
		{[][]byte{{chunkData, 0, 0, 6, 0, 0, 0, 0}}, true},
		{nil, true},
	} {
		packet := make([]byte, webrtcend.CommonHeader)
		for _, chunk := range c.chunks {
			packet = append(packet, chunk...)
		}
		if got := u.more(packet); got != c.more {
			t.Errorf("packet %d: %v, want %v", i, got, c.more)
		}
	}
}

// looped is a path that brings back what was sent by it.
type looped struct {
	datagrams
	sent [][]byte
}

func (l *looped) Write(b []byte) (int, error) {
	l.sent = append(l.sent, bytes.Clone(b))
	return len(b), nil
}

func (l *looped) Read(p []byte) (int, error) {
	if len(l.sent) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, l.sent[0])
	l.sent = l.sent[1:]
	return n, nil
}

// TestARecordThatEndsAMessageHasChannelsLookedAt reads packets out of records: each is judged as it came, and once SCTP is done
// with it, which is when it reads on.
func TestARecordThatEndsAMessageHasChannelsLookedAt(t *testing.T) {
	gcm, err := newGCM(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	path := &looped{}
	r := newRecords(path, &keys{read: gcm, write: gcm}, func() ([][]byte, error) { return nil, nil }, func() {}, func() { looks++ })
	header := make([]byte, webrtcend.CommonHeader)
	packets := []struct {
		chunk []byte
		looks int
	}{
		{makeChunk(chunkIData, flagEnd, 1, 900), 1}, {makeChunk(chunkIData, 0, 2, 900), 0}, {makeChunk(chunkSACK, 0, 0, 8), 0},
		{makeChunk(chunkIData, flagEnd, 3, 17), 1}, {makeChunk(chunkIData, flagEnd, 4, 900), 1}, {makeChunk(chunkHeartbeat, 0, 0, 40), 0},
	}
	for _, p := range packets {
		if _, err := r.Write(append(bytes.Clone(header), p.chunk...)); err != nil {
			t.Fatal(err)
		}
	}
	buf, want := make([]byte, 8192), 0
	for i, p := range packets {
		n, err := r.Read(buf)
		if err != nil || !bytes.Equal(buf[webrtcend.CommonHeader:n], p.chunk) {
			t.Fatalf("packet %d: %d bytes, %v", i, n, err)
		}
		if looks != want {
			t.Errorf("before packet %d the channels were looked at %d times, want %d", i, looks, want)
		}
		want += p.looks
	}
}

// FuzzUnread holds the judgment of a packet to what a plain reading of it says: where a fragment ends a message there is more.
func FuzzUnread(f *testing.F) {
	f.Add(append(make([]byte, webrtcend.CommonHeader), makeChunk(chunkIData, 1, 7, 20)...), uint32(6))
	f.Add(append(make([]byte, webrtcend.CommonHeader), makeChunk(chunkData, 0, 7, 20)...), uint32(7))
	f.Fuzz(func(t *testing.T, packet []byte, highest uint32) {
		u := unread{known: true, highest: highest}
		if u.more(packet) || len(packet) < webrtcend.CommonHeader+chunkHeader {
			return
		}
		switch kind := packet[webrtcend.CommonHeader]; kind {
		case chunkSACK, chunkHeartbeat, chunkHeartbeatAck:
		case chunkData, chunkIData:
			number := binary.BigEndian.Uint32(packet[webrtcend.CommonHeader+chunkHeader:])
			if packet[webrtcend.CommonHeader+1]&flagEnd != 0 || int32(number-highest) <= 0 {
				t.Errorf("fragment %d after %d with flags %x: nothing to read", number, highest, packet[webrtcend.CommonHeader+1])
			}
		default:
			t.Errorf("chunk of type %d: nothing to read", kind)
		}
	})
}
