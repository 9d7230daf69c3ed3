package turnbench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/lab/turnclient"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	burst  = 16 // packets that a line sends by one system call, at most
	buffer = 4 << 20
	// quiet is for how long nothing comes back any more when all that will has.
	quiet = 100 * time.Millisecond
)

// gang is lines, and a peer that sends back what they send, at the least cost: what they take of a processor a server on the same
// machine does not get.
type gang struct {
	lines   []*turnclient.Line
	senders []*ipv4.PacketConn
	peer    *net.UDPConn
	ports   map[uint16]bool // of the sockets
	sent    int64
	back    atomic.Int64
	running sync.WaitGroup
}

// tally is what came of some time of sending.
type tally struct {
	Sent, Back int64
	Dropped    int64 // of those that did not come back: at the clients' and the peer's own sockets
	Seconds    float64
	Error      string
}

func (t tally) loss() float64 { return 1000 * float64(t.Sent-t.Back) / float64(t.Sent) }

// keeps says whether the clients kept their pace.
func (t tally) keeps(perSecond int) bool { return float64(t.Sent) >= late*float64(perSecond)*t.Seconds }

func newGang() (*gang, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	g := &gang{peer: conn, ports: map[uint16]bool{}}
	g.note(conn)
	g.running.Go(func() { echo(ipv4.NewPacketConn(conn)) })
	return g, nil
}

// note asks for the largest buffers that the kernel gives, and knows the socket again in its books.
func (g *gang) note(conn *net.UDPConn) {
	_, _ = conn.SetReadBuffer(buffer), conn.SetWriteBuffer(buffer)
	g.ports[conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()] = true
}

// echo sends back what comes until the socket is closed.
func echo(conn *ipv4.PacketConn) {
	messages := batch()
	for {
		n, err := conn.ReadBatch(messages, 0)
		if err != nil {
			return
		}
		for i := range messages[:n] {
			messages[i].Buffers[0] = messages[i].Buffers[0][:messages[i].N]
		}
		for sent := 0; sent < n; {
			m, err := conn.WriteBatch(messages[sent:n], 0)
			if err != nil {
				return
			}
			sent += m
		}
		for i := range messages[:n] {
			messages[i].Buffers[0] = messages[i].Buffers[0][:cap(messages[i].Buffers[0])]
		}
	}
}

func batch() []ipv4.Message {
	messages := make([]ipv4.Message, burst)
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, 2048)}
	}
	return messages
}

// join takes a line in, which the gang closes from then on.
func (g *gang) join(l *turnclient.Line) {
	conn := ipv4.NewPacketConn(l.UDPConn)
	g.lines, g.senders = append(g.lines, l), append(g.senders, conn)
	g.note(l.UDPConn)
	g.running.Go(func() {
		messages := batch()
		for {
			n, err := conn.ReadBatch(messages, 0)
			if err != nil {
				return
			}
			for _, m := range messages[:n] {
				if _, ok := turnclient.Payload(m.Buffers[0][:m.N]); ok {
					g.back.Add(1)
				}
			}
		}
	})
}

// send sends packets of a size at an even rate, and counts those that come back.
func (g *gang) send(ctx context.Context, size, perSecond int, long time.Duration) (t tally, err error) {
	sent, back, dropped := g.sent, g.back.Load(), g.dropped()
	began := time.Now()
	if err := g.pace(ctx, size, perSecond, long); err != nil {
		return t, err
	}
	t.Seconds = time.Since(began).Seconds()
	for last := int64(-1); last != g.back.Load() && sleep.For(ctx, quiet); {
		if last = g.back.Load(); last-back == g.sent-sent {
			break
		}
	}
	t.Sent, t.Back, t.Dropped = g.sent-sent, g.back.Load()-back, g.dropped()-dropped
	return t, ctx.Err()
}

func (g *gang) pace(ctx context.Context, size, perSecond int, long time.Duration) error {
	frame := turnclient.Frame(size)
	messages := make([]ipv4.Message, burst)
	for i := range messages {
		messages[i].Buffers = [][]byte{frame}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began, done := time.Now(), 0
	for turn := 0; ; {
		elapsed := min(time.Since(began), long)
		for due := int(elapsed.Seconds() * float64(perSecond)); done < due; turn++ {
			n, err := g.senders[turn%len(g.senders)].WriteBatch(messages[:min(burst, due-done)], 0)
			if err != nil {
				return fmt.Errorf("send: %w", err)
			}
			done += n
			g.sent += int64(n)
			if time.Since(began) > 2*long {
				return nil // it does not keep its pace, as the count says
			}
		}
		if elapsed == long {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// dropped is what the kernel had no room for at the gang's own sockets.
func (g *gang) dropped() (all int64) {
	f, err := os.Open("/proc/net/udp")
	if err != nil {
		return 0 // losses are the server's then, which claims less
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 13 {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil || !g.ports[uint16(port)] {
			continue
		}
		if n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil {
			all += n
		}
	}
	return all
}

// close ends the lines, whose allocations stay, and the peer.
func (g *gang) close() {
	for _, l := range g.lines {
		_ = l.Close()
	}
	_ = g.peer.Close()
	g.running.Wait()
}

// openLine asks a server for a line as a user of his own would.
func openLine(from, server netip.AddrPort, peer net.Addr, holder string) (*turnclient.Line, error) {
	s, err := access.NewRelaySecret(secret)
	if err != nil {
		return nil, err
	}
	username, password := s.Mint("bench", holder, time.Now().Add(time.Hour))
	return turnclient.OpenLine(from, server, peer.(*net.UDPAddr).AddrPort(), username, password)
}
