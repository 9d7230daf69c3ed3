package netlab

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newLab returns a lab that is closed with the test, and fails when closing leaves something behind.
func newLab(t *testing.T, opts Options) *Lab {
	t.Helper()
	if err := Available(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("continuous integration runs as root: %v", err)
		}
		t.Skip(err)
	}
	lab, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

func start(t *testing.T, lab *Lab) {
	t.Helper()
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
}

// pair is two hosts with one line in between, whose Up is what a sends to b.
func pair(t *testing.T, path Path) (lab *Lab, a, b *Host, line *Line) {
	t.Helper()
	lab = newLab(t, Options{Seed: 7})
	a, b = lab.Host("a"), lab.Host("b")
	line = lab.Connect(a, b, path)
	start(t, lab)
	return lab, a, b, line
}

// socket is a UDP socket of a host whose arrivals are timed by the kernel.
type socket struct {
	*net.UDPConn
	t testing.TB
}

func udp(t testing.TB, h *Host) socket {
	t.Helper()
	conn, err := h.ListenUDP()
	if err != nil {
		t.Fatal(err)
	}
	return stamped(t, conn)
}

// stamped has the kernel say when datagrams came.
func stamped(t testing.TB, conn *net.UDPConn) socket {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	if err := errors.Join(raw.Control(func(fd uintptr) {
		set = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20))
	}), set); err != nil {
		t.Fatal(err)
	}
	return socket{conn, t}
}

func (s socket) addr() netip.AddrPort { return s.LocalAddr().(*net.UDPAddr).AddrPort() }

// send sends a datagram that makes an IP packet of size bytes, with a number and the time in it.
func (s socket) send(to netip.AddrPort, number, size int) {
	s.t.Helper()
	payload := make([]byte, size-28)
	binary.BigEndian.PutUint64(payload, uint64(number))
	binary.BigEndian.PutUint64(payload[8:], uint64(time.Now().UnixNano()))
	if _, err := s.WriteToUDPAddrPort(payload, to); err != nil {
		s.t.Fatal(err)
	}
}

// arrival is a datagram that came.
type arrival struct {
	number int
	size   int // of the IP packet
	delay  time.Duration
	at     time.Time
	from   netip.AddrPort
}

// receive waits for a datagram; false means that none came within wait.
func (s socket) receive(wait time.Duration) (arrival, bool) {
	s.t.Helper()
	if err := s.SetReadDeadline(time.Now().Add(wait)); err != nil {
		s.t.Fatal(err)
	}
	payload, control := make([]byte, 2048), make([]byte, 128)
	n, nc, _, from, err := s.ReadMsgUDPAddrPort(payload, control)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return arrival{}, false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:nc])
	if err != nil || len(messages) != 1 || len(messages[0].Data) < 16 {
		s.t.Fatalf("no timestamp: %v, %v", messages, err)
	}
	stamp := messages[0].Data
	at := time.Unix(int64(binary.NativeEndian.Uint64(stamp)), int64(binary.NativeEndian.Uint64(stamp[8:])))
	a := arrival{size: n + 28, at: at, from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}
	if n >= 16 {
		a.number = int(binary.BigEndian.Uint64(payload))
		a.delay = at.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(payload[8:]))))
	}
	return a, true
}

// quiet is how long nothing must come before a test takes it that nothing will.
const quiet = 300 * time.Millisecond

// drain receives until nothing came for a while, twice: the first time it may be this process that was kept waiting.
func (s socket) drain() (all []arrival) {
	for silent := 0; silent < 2; {
		if a, ok := s.receive(quiet / 2); ok {
			all, silent = append(all, a), 0
		} else {
			silent++
		}
	}
	return all
}

func TestTCPAndProcesses(t *testing.T) {
	_, a, b, _ := pair(t, Both(Link{Rate: 20_000_000, Delay: 5 * time.Millisecond, Queue: 64 << 10}))
	ctx := t.Context()
	listener, err := b.Listen(ctx, "tcp", netip.AddrPortFrom(b.Addr(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const size = 1 << 20
	served := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = conn.Write(make([]byte, size))
			err = errors.Join(err, conn.Close())
		}
		served <- err
	}()
	conn, err := a.DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin := time.Now()
	n, err := io.Copy(io.Discard, conn)
	if err = errors.Join(err, <-served); err != nil || n != size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if took, least := time.Since(begin), time.Duration(size*8)*time.Second/20_000_000; took < least {
		t.Errorf("%d bytes took %v over a line that needs %v", size, took, least)
	}
	out, err := a.Command(ctx, "cat", "/proc/sys/net/ipv4/tcp_congestion_control", "/proc/net/dev").Output()
	if err != nil || !strings.HasPrefix(string(out), "cubic\n") || !strings.Contains(string(out), device+":") {
		t.Errorf("a process in the host sees %q, %v", out, err)
	}
}

func TestHostsSeeOnlyTheLab(t *testing.T) {
	lab, a, _, _ := pair(t, Path{})
	s := udp(t, a)
	s.send(netip.MustParseAddrPort("192.0.2.1:9"), 0, 100)
	for {
		r, err := lab.Report()
		if err != nil {
			t.Fatal(err)
		}
		if r.Unrouted > 0 {
			break
		}
	}
	if _, err := a.DialContext(t.Context(), "tcp", "example.com:80"); err == nil || !strings.Contains(err.Error(), "no name server") {
		t.Errorf("a name was dialed: %v", err)
	}
}

func TestRoutesTakeTheFewestLines(t *testing.T) {
	lab := newLab(t, Options{})
	left, middle, right := lab.Router("left"), lab.Router("middle"), lab.Router("right")
	lab.Connect(left, middle, Path{})
	long := lab.Connect(middle, right, Path{})
	short := lab.Connect(left, right, Path{})
	a, access := lab.Attach("a", left, Path{})
	b, _ := lab.Attach("b", right, Path{})
	start(t, lab)
	from, to := udp(t, a), udp(t, b)
	from.send(to.addr(), 1, 100)
	if _, ok := to.receive(5 * time.Second); !ok {
		t.Fatal("nothing arrived")
	}
	r, err := lab.Report()
	if err != nil {
		t.Fatal(err)
	}
	for direction, want := range map[*Direction]uint64{access.Up: 1, access.Down: 0, short.Up: 1, short.Down: 0, long.Up: 0, long.Down: 0} {
		if got := r.Directions[direction.Name].Delivered; got != want {
			t.Errorf("%s delivered %d packets, want %d", direction.Name, got, want)
		}
	}
}

func TestSetCutsAndRestores(t *testing.T) {
	_, a, b, line := pair(t, Path{})
	from, to := udp(t, a), udp(t, b)
	if err := line.Up.Set(Link{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	from.send(to.addr(), 1, 100)
	if got := to.drain(); len(got) != 0 {
		t.Fatalf("a cut line delivered %v", got)
	}
	if err := line.Up.Set(Link{}); err != nil {
		t.Fatal(err)
	}
	from.send(to.addr(), 2, 100)
	if got, ok := to.receive(5 * time.Second); !ok || got.number != 2 {
		t.Fatalf("a restored line delivered %v, %v", got, ok)
	}
	if err := line.Up.Set(Link{Rate: 1}); err == nil {
		t.Error("a rate without a queue was accepted")
	}
}

func TestMistakesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		describe func(*Lab)
		want     string
	}{
		"alone": {func(l *Lab) { l.Host("a") }, "a is not connected"},
		"twice": {func(l *Lab) { l.Router("a"); l.Router("a") }, `two nodes called "a"`},
		"name":  {func(l *Lab) { l.Router("A/b") }, `name "A/b"`},
		"two lines": {func(l *Lab) {
			a, b, c := l.Host("a"), l.Router("b"), l.Router("c")
			l.Connect(a, b, Path{})
			l.Connect(a, c, Path{})
		}, "a has a line already"},
		"itself":      {func(l *Lab) { r := l.Router("r"); l.Connect(r, r, Path{}) }, "r cannot be connected to itself"},
		"loss":        {func(l *Lab) { l.Connect(l.Router("a"), l.Router("b"), Both(Link{Loss: 1.5})) }, "a→b: loss 1.5"},
		"queue":       {func(l *Lab) { l.Connect(l.Router("a"), l.Router("b"), Both(Link{Rate: 5})) }, "a rate needs a queue"},
		"nat":         {func(l *Lab) { l.Gateway("g", GatewayConfig{NAT: "odd"}) }, `no NAT "odd"`},
		"hairpin":     {func(l *Lab) { l.Gateway("g", GatewayConfig{Hairpin: true}) }, "hairpinning is"},
		"addresses":   {func(l *Lab) { l.opts.Network = netip.MustParsePrefix("198.18.0.0/31"); l.Host("a"); l.Host("b") }, "no more addresses"},
		"inside name": {func(l *Lab) { g := l.Gateway("g", GatewayConfig{NAT: Symmetric}); g.Host("g") }, `two nodes called "g"`},
	} {
		t.Run(name, func(t *testing.T) {
			lab := newLab(t, Options{})
			c.describe(lab)
			if err := lab.Start(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Start: %v, want %q in it", err, c.want)
			}
		})
	}
}
