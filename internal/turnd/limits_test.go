package turnd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"

	"github.com/leeway-video/leeway/internal/relay"
)

func TestFrameLength(t *testing.T) {
	for _, c := range []struct {
		header [4]byte
		want   int
	}{
		{[4]byte{0, 1, 0, 0}, 20}, {[4]byte{0, 1, 0, 8}, 28}, {[4]byte{0, 1, 0, 7}, 0}, {[4]byte{0, 1, 0xff, 0xfc}, 65552},
		{[4]byte{0x40, 0, 0, 0}, 4}, {[4]byte{0x40, 0, 0, 1}, 8}, {[4]byte{0x40, 0, 0, 4}, 8}, {[4]byte{0x7f, 0xff, 0xff, 0xff}, 65540},
		{[4]byte{'G', 'E', 'T', ' '}, 4 + 0x5420}, {[4]byte{0x80, 0, 0, 0}, 0}, {[4]byte{0xff, 0xff, 0xff, 0xff}, 0}, {[4]byte{0x16, 3, 1, 0}, 20 + 0x100},
	} {
		if n := frameLength(c.header[:]); n != c.want {
			t.Errorf("%x: %d, want %d", c.header, n, c.want)
		}
	}
}

// ended says whether the server closes a connection.
func ended(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Read(make([]byte, 1))
	timeout, ok := err.(net.Error)
	return err != nil && (!ok || !timeout.Timeout())
}

func TestConnectionsThatSpeakNoTURNEnd(t *testing.T) {
	w := newWorld(t, func(c *Config, _ *relay.Config) { c.FirstFrame = 200 * time.Millisecond })
	for name, said := range map[string][]byte{
		"silence":        nil,
		"half a frame":   {0, 1, 0, 8, 0x21},
		"HTTP":           []byte("GET / HTTP/1.1\r\nHost: turn\r\n\r\n"),
		"too long":       append([]byte{0, 1, 0x10, 0, 0x21, 0x12, 0xa4, 0x42}, make([]byte, 0x1000)...),
		"noise":          bytes.Repeat([]byte{0xa5}, 5000),
		"no STUN cookie": append([]byte{0, 1, 0, 0}, bytes.Repeat([]byte{7}, 16)...),
	} {
		for _, addr := range []net.Addr{w.Addr(), w.TLSAddr()} {
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write(said)
			if !ended(t, c) {
				t.Errorf("%s at %v is served on", name, addr)
			}
			_ = c.Close()
		}
	}
}

// TestAConnectionMayComeInPieces: a client's bytes arrive as its network cuts them.
func TestAConnectionMayComeInPieces(t *testing.T) {
	w := newWorld(t, nil)
	c, err := net.Dial("tcp", w.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest)
	two := append(append([]byte{}, request.Raw...), request.Raw...)
	for _, b := range two {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	in := turn.NewSTUNConn(c)
	for range 2 {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		p := make([]byte, 1000)
		n, _, err := in.ReadFrom(p)
		if err != nil {
			t.Fatal(err)
		}
		answer := &stun.Message{Raw: p[:n]}
		if err := answer.Decode(); err != nil || answer.Type != stun.BindingSuccess || answer.TransactionID != request.TransactionID {
			t.Errorf("answered %v: %v", answer, err)
		}
	}
}

func TestConnectionsOfAnAddressAreCounted(t *testing.T) {
	w := newWorld(t, func(_ *Config, r *relay.Config) { r.MaxPerAddress = 2 })
	var all []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", w.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
		if len(all) == 3 && !ended(t, c) {
			t.Error("a third connection of an address is served")
		}
	}
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest)
	for _, c := range all[:2] {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := c.Write(request.Raw); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Errorf("one of the first two is not served: %v", err)
		}
	}
}

// TestAnAllocationMakesNoMoreGrowThanItNeeds: permissions and channels are bounded, and those there are can be refreshed.
func TestAnAllocationMakesNoMoreGrowThanItNeeds(t *testing.T) {
	w := newWorld(t, func(_ *Config, r *relay.Config) { r.Reach.Allow = peers("127.0.0.0/8") })
	c := w.client("udp", "a")
	conn, err := c.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer := func(i int) net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i)), Port: 9} }
	for i := range maxPeers {
		if err := c.CreatePermission(peer(i)); err != nil {
			t.Fatalf("permission %d: %v", i, err)
		}
	}
	if err := c.CreatePermission(peer(maxPeers)); err == nil {
		t.Error("permissions are not bounded")
	}
	if err := c.CreatePermission(peer(0)); err != nil {
		t.Errorf("a permission is not refreshed: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.relayed {
		r.mu.Lock()
		for i := range maxChannels {
			r.channels[uint16(i)] = addrPort(peer(i))
		}
		r.mu.Unlock()
		if r.permits(addrPort(peer(0)).Addr()) {
			t.Error("channels are not bounded")
		}
	}
}

// TestStrangersDoNotUseUpAnAllocation: what comes from where the client has given no permission to costs it nothing.
func TestStrangersDoNotUseUpAnAllocation(t *testing.T) {
	now := time.Now()
	w := newWorld(t, func(_ *Config, r *relay.Config) {
		r.Reach.Allow, r.AllocationRate, r.Now = peers("127.0.0.0/8"), 100_000, func() time.Time { return now } // what is used up does not come back
	})
	c := w.client("udp", "a")
	conn, err := c.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stranger, peer := socketOn(t, "127.0.0.2:0"), socketOn(t, "127.0.0.1:0")
	if err := c.CreatePermission(peer.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := stranger.WriteTo(make([]byte, 1000), conn.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	if _, got := exchange(t, peer, conn.LocalAddr(), conn, "hello"); got != "hello" {
		t.Errorf("%q arrived", got)
	}
}

// socketOn is a socket of an address of this machine.
func socketOn(t *testing.T, addr string) net.PacketConn {
	t.Helper()
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Skipf("no socket on %s: %v", addr, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestPortsAreNotReservedAndTCPIsNotRelayed(t *testing.T) {
	w := newWorld(t, nil)
	g := generator{w.Server}
	for name, c := range map[string]turn.AllocateListenerConfig{
		"without a peer":  {Network: "udp4"}, // how pion looks for an even port
		"a certain port":  {Network: "udp4", UserID: "demo:a", RequestedPort: 50000},
		"no such family":  {Network: "udp6", UserID: "demo:a"},
		"a stream socket": {Network: "tcp4", UserID: "demo:a"},
	} {
		if conn, _, err := g.AllocatePacketConn(c); err == nil {
			_ = conn.Close()
			t.Errorf("%s: there is a socket", name)
		}
	}
	if _, _, err := g.AllocateListener(turn.AllocateListenerConfig{Network: "tcp4", UserID: "demo:a"}); err == nil {
		t.Error("there is a listener")
	}
	if _, err := g.AllocateConn(turn.AllocateConnConfig{Network: "tcp4", UserID: "demo:a"}); err == nil {
		t.Error("there is a connection")
	}
	if err := w.relay.Ready(); err != nil || w.Allocations() != 0 {
		t.Errorf("something is left: %v", err)
	}
}

// freePorts finds ports that are free, side by side, below those that the kernel gives to others meanwhile.
func freePorts(t *testing.T, count int) (first int) {
	t.Helper()
search:
	for first = 20_000 + count*rand.IntN(1000); first < 32_000; first += count {
		for i := range count {
			c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: first + i})
			if err != nil {
				continue search
			}
			_ = c.Close()
		}
		return first
	}
	t.Fatal("no ports are free")
	return 0
}

// TestPortsRunOut: the range is used to its last port, and what is given back is used again.
func TestPortsRunOut(t *testing.T) {
	const count = 6
	first := freePorts(t, count)
	w := newWorld(t, func(c *Config, _ *relay.Config) { c.PortMin, c.PortMax = uint16(first), uint16(first+count-1) })
	ports := map[int]net.PacketConn{}
	for i := range count {
		conn := w.allocate("udp", fmt.Sprint(i))
		ports[conn.LocalAddr().(*net.UDPAddr).Port] = conn
	}
	if len(ports) != count {
		t.Errorf("%d ports, want %d", len(ports), count)
	}
	if _, err := w.client("udp", "more").Allocate(); err == nil {
		t.Error("there are more allocations than ports")
	}
	_ = ports[first+2].Close() // says so to the server, and does not wait
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); w.Allocations() == count; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("an allocation that was given back is still there")
		}
	}
	again := w.allocate("udp", "again")
	if port := again.LocalAddr().(*net.UDPAddr).Port; port != first+2 {
		t.Errorf("port %d, want %d", port, first+2)
	}
}

func FuzzStreamFrames(f *testing.F) {
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest)
	f.Add(request.Raw)
	f.Add([]byte{0x40, 0, 0, 3, 1, 2, 3, 0, 0x40, 0, 0, 0})
	f.Add([]byte("GET / HTTP/1.1"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for len(in) >= channelHeader {
			n := frameLength(in)
			if n == 0 || n > maxFrame {
				return
			}
			if n < channelHeader || in[0]>>6 == 1 && n%4 != 0 || in[0]>>6 == 0 && n != stunHeader+int(binary.BigEndian.Uint16(in[2:])) {
				t.Fatalf("%x is %d bytes long", in[:channelHeader], n)
			}
			if n > len(in) {
				return
			}
			in = in[n:]
		}
	})
}
