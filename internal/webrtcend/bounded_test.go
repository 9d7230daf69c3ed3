package webrtcend

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"testing"
)

// ack is a chunk that acknowledges the messages up to a number and in blocks behind it.
func ack(blocks ...uint16) []byte {
	chunk := make([]byte, ackHeader)
	chunk[0] = chunkSACK
	binary.BigEndian.PutUint16(chunk[2:], uint16(ackHeader+2*len(blocks)))
	binary.BigEndian.PutUint16(chunk[12:], uint16(len(blocks)/2))
	for _, b := range blocks {
		chunk = binary.BigEndian.AppendUint16(chunk, b)
	}
	return chunk
}

func packetOf(chunks ...[]byte) []byte {
	return append(make([]byte, CommonHeader), bytes.Join(chunks, nil)...)
}

// TestAcksThatTakeLongAreDropped: those that an honest peer sends pass.
func TestAcksThatTakeLongAreDropped(t *testing.T) {
	data := []byte{0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 51, 'x', 0, 0, 0}
	twice := ack(2, 3)
	twice = append(twice, 0, 0, 0, 7) // a message came twice
	twice[3] += 4
	twice[15] = 1
	more := ack(2, 3)
	more[12] = 0xff
	for _, c := range []struct {
		name   string
		packet []byte
		passes bool
	}{
		{"no blocks", packetOf(ack()), true},
		{"blocks", packetOf(ack(2, 3, 5, 5, 6, 9)), true},
		{"a message twice", packetOf(twice), true},
		{"with a message", packetOf(ack(2, 3), data), true},
		{"behind a message", packetOf(data, ack(2, 3)), true},
		{"a message alone", packetOf(data), true},
		{"nothing", nil, true},
		{"half a chunk", packetOf(data[:10]), true},
		{"a block twice", packetOf(ack(2, 300, 2, 300)), false},
		{"blocks that overlap", packetOf(ack(2, 300, 300, 400)), false},
		{"a block from its end on", packetOf(ack(3, 2)), false},
		{"a block of what is acknowledged", packetOf(ack(0, 2)), false},
		{"two in a packet", packetOf(ack(2, 3), ack(2, 3)), false},
		{"two around a message", packetOf(ack(2, 3), data, ack(2, 3)), false},
		{"fewer blocks than it says", packetOf(more), false},
		{"none but a header", packetOf([]byte{chunkSACK, 0, 0, 4}), false},
	} {
		if got := plainAcks(c.packet); got != c.passes {
			t.Errorf("%s: passes %t", c.name, got)
		}
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	go func() {
		for _, packet := range [][]byte{packetOf(more), packetOf(ack(2, 300, 2, 300)), packetOf(data)} {
			if _, err := there.Write(packet); err != nil {
				return
			}
		}
	}()
	p := make([]byte, 2000)
	if n, err := (&Bounded{Conn: here}).Read(p); err != nil || !bytes.Equal(p[:n], packetOf(data)) {
		t.Errorf("read %x, %v", p[:n], err)
	}
}

// TestFragmentsOfNextToNoBytesEndAConnection: in one message as in many, with bytes or without. Those of long messages do not.
func TestFragmentsOfNextToNoBytesEndAConnection(t *testing.T) {
	fragment := func(kind, flags byte, bytes int) []byte {
		header := map[byte]int{chunkData: dataHeader, chunkIData: interleavedData}[kind]
		chunk := make([]byte, (header+bytes+3)/4*4)
		chunk[0], chunk[1] = kind, flags
		binary.BigEndian.PutUint16(chunk[2:], uint16(header+bytes))
		return chunk
	}
	const first, middle, last, whole = 2, 0, 1, 3
	for _, c := range []struct {
		name   string
		packet func(kind byte) []byte
		ends   bool
	}{
		{"of one message, empty", func(k byte) []byte { return packetOf(fragment(k, middle, 0), fragment(k, middle, 0)) }, true},
		{"first ones, of a byte", func(k byte) []byte { return packetOf(fragment(k, first, 1)) }, true},
		{"last ones, of a byte", func(k byte) []byte { return packetOf(fragment(k, last, 1)) }, true},
		{"messages of a byte", func(k byte) []byte { return packetOf(fragment(k, whole, 1), fragment(k, whole, 1)) }, false},
		{"messages of little more than a packet", func(k byte) []byte {
			return packetOf(fragment(k, first, 12), fragment(k, middle, 1100), fragment(k, last, 1))
		}, false},
	} {
		for _, kind := range []byte{chunkData, chunkIData} {
			b := &Bounded{}
			packets := 0
			for ; packets < 100_000 && b.lacked <= mostLacked; packets++ {
				b.lacks(c.packet(kind))
			}
			if ended := packets < 5000; ended != c.ends {
				t.Errorf("%s, kind %d: %d packets", c.name, kind, packets)
			}
		}
	}
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		for range 5000 {
			if _, err := there.Write(packetOf(fragment(chunkIData, middle, 0))); err != nil {
				return
			}
		}
	}()
	b, p, err := &Bounded{Conn: here}, make([]byte, 2000), error(nil)
	for err == nil {
		_, err = b.Read(p)
	}
	if !errors.Is(err, errCrumbs) {
		t.Errorf("ended by %v", err)
	}
}

// TestAnAckFitsAPacket: a peer that leaves out every other message is told of the first ones.
func TestAnAckFitsAPacket(t *testing.T) {
	var all []uint16
	for i := range 3900 {
		all = append(all, uint16(2*i+2), uint16(2*i+2))
	}
	for _, sum := range []bool{false, true} {
		long := packetOf(ack(all...))
		if sum {
			binary.LittleEndian.PutUint32(long[8:], crc32.Checksum(long, castagnoli))
		}
		here, there := net.Pipe()
		go func() {
			defer here.Close()
			if n, err := (&Bounded{Conn: here}).Write(long); n != len(long) || err != nil {
				t.Errorf("%d bytes of %d are written, %v", n, len(long), err)
			}
		}()
		p := make([]byte, 1<<16)
		n, err := there.Read(p)
		_ = there.Close()
		p = p[:n]
		if err != nil || n > MTU || n < MTU-ackBlock || !plainAcks(p) || !bytes.Equal(p[CommonHeader+ackHeader:], long[CommonHeader+ackHeader:n]) {
			t.Fatalf("an ack of %d bytes goes out as %d, %v", len(long), n, err)
		}
		got := binary.LittleEndian.Uint32(p[8:])
		clear(p[8:12])
		if want := crc32.Checksum(p, castagnoli); sum && got != want || !sum && got != 0 {
			t.Errorf("checksum %x", got)
		}
	}
	for _, packet := range [][]byte{packetOf(ack(all[:500]...)), packetOf(make([]byte, MTU))} {
		if got := shortAck(packet); !bytes.Equal(got, packet) {
			t.Error("another packet is changed")
		}
	}
}

// FuzzBounded: nothing that comes or goes has these look beyond it.
func FuzzBounded(f *testing.F) {
	f.Add(packetOf(ack(2, 3, 5, 9), ack()))
	f.Add(packetOf(make([]byte, 2*MTU)))
	f.Fuzz(func(t *testing.T, packet []byte) {
		(&Bounded{}).lacks(packet)
		if len(packet) >= CommonHeader+ackHeader && plainAcks(packet) && packet[CommonHeader] == chunkSACK && len(shortAck(packet)) > MTU {
			t.Errorf("%d bytes go out", len(shortAck(packet)))
		}
	})
}
