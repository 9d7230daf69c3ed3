package rtclink

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// crumbling is a connection of SCTP whose messages never end: of each it sends the first fragment, without its bytes.
type crumbling struct{ net.Conn }

func (c crumbling) Write(packet []byte) (int, error) {
	const opensChannel = 50 // the protocol identifier of RFC 8832
	out := append([]byte(nil), packet[:webrtcend.CommonHeader]...)
	for at := webrtcend.CommonHeader; at+chunkHeader <= len(packet); {
		chunk := packet[at:]
		length := int(binary.BigEndian.Uint16(chunk[2:]))
		padded := (length + webrtcend.ChunkAlignment - 1) / webrtcend.ChunkAlignment * webrtcend.ChunkAlignment
		if header := map[byte]int{chunkData: 16, chunkIData: 20}[chunk[0]]; header > 0 && binary.BigEndian.Uint32(chunk[header-4:]) != opensChannel {
			chunk[1] &^= flagEnd
			binary.BigEndian.PutUint16(chunk[2:], uint16(header))
			out = append(out, chunk[:header]...)
		} else {
			out = append(out, chunk[:min(padded, len(chunk))]...)
		}
		at += padded
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(packet), nil
}

// TestFragmentsWithoutEndAreBounded: what SCTP keeps of messages that are not whole is bounded in bytes, of which a fragment may have none. Without
// another bound a peer fills the memory.
func TestFragmentsWithoutEndAreBounded(t *testing.T) {
	leakCheck(t)
	here, there := loop(t)
	host := listen(t, nil)
	var sending, receiving *sctp.Association
	var up sync.WaitGroup
	for _, end := range []struct {
		conn net.Conn
		into **sctp.Association
	}{{crumbling{here}, &sending}, {there, &receiving}} {
		up.Go(func() {
			var err error
			if *end.into, err = (&Link{host: host}).overlay(end.conn, &sdp.Description{}); err != nil {
				t.Error(err)
			}
		})
	}
	if up.Wait(); t.Failed() {
		return
	}
	defer receiving.Close() //nolint:errcheck // the test is over
	defer sending.Close()   //nolint:errcheck // the test is over
	dc, err := datachannel.Dial(sending, 0, &datachannel.Config{ChannelType: datachannel.ChannelTypeReliableUnordered, Label: peer.DataLabel + "0", LoggerFactory: host.loggers})
	if err != nil {
		t.Fatal(err)
	}
	other, err := datachannel.Accept(receiving, &datachannel.Config{LoggerFactory: host.loggers})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * 4096 {
		if _, err := dc.Write([]byte("x")); err != nil {
			break // the other side has ended it
		}
	}
	_ = other.SetReadDeadline(time.Now().Add(patience))
	if _, err := other.Read(make([]byte, 64)); err == nil || errors.Is(err, sctp.ErrReadDeadlineExceeded) {
		t.Errorf("%d fragments that end no message do not end the association: %v", 2*4096, err)
	}
}
