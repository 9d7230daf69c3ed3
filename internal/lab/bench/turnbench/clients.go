package turnbench

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/turnclient"
)

// step is how often packets are sent: many at once are what a server of many clients gets.
const step = 2 * time.Millisecond

// peer sends back what it gets.
type peer struct {
	conn net.PacketConn
	done chan struct{}
}

func openPeer() (*peer, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	_, _ = conn.SetReadBuffer(4<<20), conn.SetWriteBuffer(4<<20)
	p := &peer{conn, make(chan struct{})}
	go func() {
		defer close(p.done)
		packet := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(packet)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDPAddrPort(packet[:n], from)
		}
	}()
	return p, nil
}

func (p *peer) addr() net.Addr { return p.conn.LocalAddr() }

func (p *peer) close() {
	_ = p.conn.Close()
	<-p.done
}

// crowd is clients with an allocation each.
type crowd struct {
	peer    net.Addr
	clients []*turnclient.Allocation
	sent    int64
	back    atomic.Int64
	readers sync.WaitGroup
}

func gather(count int, server string, peer net.Addr) (*crowd, error) {
	c := &crowd{peer: peer}
	for i := range count {
		a, err := allocate(server, fmt.Sprint("client", i))
		if err != nil {
			c.close()
			return nil, err
		}
		c.clients = append(c.clients, a)
		c.readers.Go(func() {
			packet := make([]byte, 2048)
			for {
				if _, _, err := a.ReadFrom(packet); err != nil {
					return
				}
				c.back.Add(1)
			}
		})
	}
	return c, nil
}

// pace sends packets in turn at an even rate.
func (c *crowd) pace(ctx context.Context, size, perSecond int, long time.Duration) error {
	packet := make([]byte, size)
	tick := time.NewTicker(step)
	defer tick.Stop()
	began, sent := time.Now(), 0
	for {
		due := int(time.Since(began).Seconds() * float64(perSecond))
		for ; sent < due; sent++ {
			if _, err := c.clients[sent%len(c.clients)].WriteTo(packet, c.peer); err != nil {
				return fmt.Errorf("send: %w", err)
			}
			c.sent++
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if time.Since(began) >= long {
			return nil
		}
	}
}

func (c *crowd) counts() (sent, back int64) { return c.sent, c.back.Load() }

func (c *crowd) close() {
	for _, a := range c.clients {
		_ = a.Close() // the server may be gone
	}
	c.readers.Wait()
}
