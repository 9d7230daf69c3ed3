package rtclink

import (
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// tapped is a connection of SCTP that notes the ordered chunks that go out: the number that they have in their stream, by the
// number that they have on the way.
type tapped struct {
	net.Conn
	mu      sync.Mutex
	numbers map[uint32]uint32 // guarded by mu
}

func (c *tapped) Write(packet []byte) (int, error) {
	c.mu.Lock()
	for at := webrtcend.CommonHeader; at+chunkHeader <= len(packet); {
		chunk := packet[at:]
		length := int(binary.BigEndian.Uint16(chunk[2:]))
		if length < chunkHeader {
			break
		}
		const flagUnordered = 1 << 2
		if kind := chunk[0]; (kind == chunkData || kind == chunkIData) && chunk[1]&flagUnordered == 0 {
			number := uint32(binary.BigEndian.Uint16(chunk[10:]))
			if kind == chunkIData {
				number = binary.BigEndian.Uint32(chunk[12:])
			}
			c.numbers[binary.BigEndian.Uint32(chunk[4:])] = number
		}
		at += (length + webrtcend.ChunkAlignment - 1) / webrtcend.ChunkAlignment * webrtcend.ChunkAlignment
	}
	c.mu.Unlock()
	return c.Conn.Write(packet)
}

// loop is two UDP sockets that are connected to each other.
func loop(t *testing.T) (a, b net.Conn) {
	t.Helper()
	var ends [2]*net.UDPConn
	for i := range ends {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = c
	}
	addrs := [2]*net.UDPAddr{ends[0].LocalAddr().(*net.UDPAddr), ends[1].LocalAddr().(*net.UDPAddr)}
	var out [2]net.Conn
	for i, c := range ends {
		_ = c.Close()
		dialed, err := net.DialUDP("udp4", addrs[i], addrs[1-i])
		if err != nil {
			t.Fatal(err)
		}
		out[i] = dialed
	}
	return out[0], out[1]
}

// TestControlMessagesLeaveInTheOrderOfTheirNumbers: a receiver may hold a message back whose number in the stream is not the next
// one, and one that is strict holds it for good.
func TestControlMessagesLeaveInTheOrderOfTheirNumbers(t *testing.T) {
	leakCheck(t)
	const senders, each = 32, 100
	here, there := loop(t)
	tap := &tapped{Conn: here, numbers: map[uint32]uint32{}}
	host := listen(t, nil)
	var sending, receiving *sctp.Association
	var up sync.WaitGroup
	up.Go(func() {
		var err error
		if sending, err = (&Link{host: host}).overlay(tap, &sdp.Description{}); err != nil {
			t.Error(err)
		}
	})
	up.Go(func() {
		var err error
		if receiving, err = (&Link{host: host}).overlay(there, &sdp.Description{}); err != nil {
			t.Error(err)
		}
	})
	if up.Wait(); t.Failed() {
		return
	}
	defer receiving.Close() //nolint:errcheck // the test is over
	defer sending.Close()   //nolint:errcheck // the test is over
	dc, err := datachannel.Dial(sending, 0, &datachannel.Config{ChannelType: datachannel.ChannelTypeReliable, Label: peer.ControlLabel, LoggerFactory: host.loggers})
	if err != nil {
		t.Fatal(err)
	}
	other, err := datachannel.Accept(receiving, &datachannel.Config{LoggerFactory: host.loggers})
	if err != nil {
		t.Fatal(err)
	}
	said := control{life: &life{}, channels: &channels{control: dc}}
	said.life.opened.Store(true)
	var all sync.WaitGroup
	all.Go(func() {
		buf := make([]byte, 64)
		for range senders * each {
			if _, err := other.Read(buf); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range senders {
		all.Go(func() {
			for range each {
				said.SendControl([]byte("said by one of many"))
			}
		})
	}
	all.Wait()
	tap.mu.Lock()
	defer tap.mu.Unlock()
	onTheWay := slices.Collect(maps.Keys(tap.numbers))
	slices.SortFunc(onTheWay, func(a, b uint32) int { return int(int32(a - b)) })
	if len(onTheWay) <= senders*each {
		t.Fatalf("%d chunks were seen of %d messages and what opens the channel", len(onTheWay), senders*each)
	}
	swapped := 0
	for i, n := range onTheWay[1:] {
		if before := onTheWay[i]; uint16(tap.numbers[n]) != uint16(tap.numbers[before])+1 {
			swapped++
		}
	}
	if swapped != 0 {
		t.Errorf("%d of %d chunks do not follow the one before them in their stream", swapped, len(onTheWay))
	}
}
