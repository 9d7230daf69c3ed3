package arm

import (
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

func TestSocketsAreSharedOverDifferentPeers(t *testing.T) {
	opened := 0
	all := &sockets[int]{limit: 2, open: func() (int, error) { opened++; return opened, nil }}
	peer := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:4000")}
	var seats []*seat[int]
	for i := range 2 {
		s, err := all.take(peer)
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		seats = append(seats, s)
	}
	if seats[0].socket == seats[1].socket {
		t.Error("two sessions with one peer share a socket")
	}
	if _, err := all.take(peer); err == nil || err.Code != armwire.PortInUse {
		t.Errorf("a third session with the peer: %v", err)
	}
	other, err := all.take([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:4001")})
	if err != nil || opened != 2 {
		t.Errorf("another peer: %v, %d sockets", err, opened)
	}
	if err := other.meet(peer); err == nil {
		t.Error("an address that is in use was met")
	}
	seats[0].leave()
	seats[1].leave()
	if err := other.meet(peer); err != nil {
		t.Errorf("an address that is free again: %v", err)
	}
}

func TestAddressesOfADescription(t *testing.T) {
	sdp := "v=0\r\na=candidate:1 1 udp 2130706431 192.0.2.1 4000 typ host\r\na=candidate:2 1 UDP 2130706431 2001:db8::1 4001 typ host\r\n" +
		"a=candidate:3 1 tcp 2130706431 192.0.2.1 9 typ host tcptype active\r\na=candidate:4 1 udp 1 x.local 4002 typ host\r\na=candidate:5\r\n"
	got := addressesOf(sdp)
	if len(got) != 2 || got[0].String() != "192.0.2.1:4000" || got[1].String() != "[2001:db8::1]:4001" {
		t.Errorf("%v", got)
	}
	if got = addressesOf("candidate:1 1 udp 1 192.0.2.9 5 typ host"); len(got) != 1 {
		t.Errorf("one candidate: %v", got)
	}
}

func TestChunksSayWhenTheyWereDue(t *testing.T) {
	b := make([]byte, 100)
	at := time.UnixMicro(1_790_000_000_123_456)
	putChunk(b, 7, at)
	if got, ok := chunkDue(b); !ok || !got.Equal(at) {
		t.Errorf("%v, %v", got, ok)
	}
	for _, bad := range [][]byte{nil, b[:19], make([]byte, 100), append([]byte("lwck12345678"), 255, 255, 255, 255, 255, 255, 255, 255)} {
		if _, ok := chunkDue(bad); ok {
			t.Errorf("%x is taken for a chunk", bad)
		}
	}
}

// TestPacerKeepsToItsTimes: what is due stays due, however late it is looked for.
func TestPacerKeepsToItsTimes(t *testing.T) {
	p := newPacer()
	now := time.UnixMicro(1_790_000_000_000_000)
	src := &source{rate: 8000, chunk: 100} // ten a second
	f := p.add(nil, src, now)
	first := f.due
	if first.Before(now) || first.After(now.Add(f.every)) {
		t.Errorf("the first chunk is due %v after the begin", first.Sub(now))
	}
	for i := range 5 {
		got, number, due := p.pop(now.Add(time.Second))
		if got != f || number != uint64(i) || !due.Equal(first.Add(time.Duration(i)*100*time.Millisecond)) {
			t.Errorf("chunk %d: number %d, due %v after the first", i, number, due.Sub(first))
		}
	}
	if got, _, _ := p.pop(now.Add(-time.Second)); got != nil {
		t.Error("a chunk before its time")
	}
	p.remove(f)
	p.remove(f)
	if got, _, _ := p.pop(now.Add(time.Hour)); got != nil {
		t.Error("a chunk of a flow that is gone")
	}
}
