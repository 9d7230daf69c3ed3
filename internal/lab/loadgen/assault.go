package loadgen

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// Kind is a way to be a burden to a tracker.
type Kind string

// The kinds.
const (
	HalfOpen  Kind = "half-open" // connections that say nothing, every other one after half a request
	Malformed Kind = "malformed" // messages that are none
	Oversized Kind = "oversized" // messages above the limit
	Flood     Kind = "flood"     // well-formed announces, more of them than one session may send
	Deaf      Kind = "deaf"      // sessions that ask for much and read nothing
)

// deafSwarms is in how many swarms a deaf session is: a scrape tells of all of them.
const deafSwarms = 64

// Assault is sockets that are a burden in one way. Those that the tracker ends come back.
type Assault struct {
	cfg    Config
	kind   Kind
	pace   *rate.Limiter
	cancel context.CancelFunc
	wg     sync.WaitGroup
	serial atomic.Int64
	sent   atomic.Int64
	ended  atomic.Int64
}

// Assail begins: cfg.Sessions sockets, and so many messages or connections a second together.
func Assail(cfg Config, kind Kind, perSecond int) (*Assault, error) {
	switch kind {
	case HalfOpen, Malformed, Oversized, Flood, Deaf:
	default:
		return nil, fmt.Errorf("load: %q is no way to be a burden", kind)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Assault{cfg: cfg, kind: kind, cancel: cancel, pace: rate.NewLimiter(rate.Limit(perSecond), 1+perSecond/100)}
	for range cfg.Sessions {
		a.wg.Go(func() {
			for ctx.Err() == nil {
				a.one(ctx)
				a.ended.Add(1)
			}
		})
	}
	return a, nil
}

// End ends it, and says how many messages or connections there were, and how many sockets the tracker has ended.
func (a *Assault) End() (sent, ended int64) {
	sent, ended = a.sent.Load(), a.ended.Load()
	a.cancel()
	a.wg.Wait()
	return sent, ended
}

// one is the life of one socket.
func (a *Assault) one(ctx context.Context) {
	if a.pace.Wait(ctx) != nil {
		return
	}
	n := a.serial.Add(1)
	from := a.cfg.Sources[int(n)%len(a.cfg.Sources)]
	if a.kind == HalfOpen {
		a.hold(ctx, n, &net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: from.AsSlice()}})
		return
	}
	ws, err := dial(ctx, a.cfg, from)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = ws.conn.Close() })
	defer func() {
		stop()
		_ = ws.conn.Close()
	}()
	a.burden(ctx, ws, n)
}

// hold keeps a connection for as long as the tracker does.
func (a *Assault) hold(ctx context.Context, n int64, d *net.Dialer) {
	conn, err := d.DialContext(ctx, "tcp", a.cfg.Address.String())
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close()
	}()
	a.sent.Add(1)
	if n%2 == 0 {
		_, _ = conn.Write([]byte("\x16\x03\x01GET / HT")[3*(n/2%2):])
	}
	_, _ = conn.Read(make([]byte, 1))
}

// burden sends until the tracker ends the socket.
func (a *Assault) burden(ctx context.Context, ws *socket, n int64) {
	if a.kind != Deaf {
		a.wg.Go(func() { // the tracker is not to wait for this side
			b := make([]byte, 4096)
			for {
				if _, err := ws.conn.Read(b); err != nil {
					_ = ws.conn.Close()
					return
				}
			}
		})
	}
	var peer webtorrent.ID
	copy(peer[:], "-XX0000-"+a.kind[:4]) // what another kind says is not for this one
	binary.BigEndian.PutUint64(peer[12:], uint64(n))
	for i := 0; ; i++ {
		if i > 0 && a.pace.Wait(ctx) != nil {
			return
		}
		_ = ws.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := ws.conn.Write(appendFrame(nil, opText, a.message(i, peer))); err != nil {
			return
		}
		a.sent.Add(1)
	}
}

// message is the next of a socket.
func (a *Assault) message(i int, peer webtorrent.ID) []byte {
	var swarm webtorrent.ID
	copy(swarm[:], fmt.Sprintf("burden %d", i%deafSwarms))
	switch {
	case a.kind == Malformed:
		return []byte(`{"action":"announce","info_hash":[[[["` + string(peer[12:15]))
	case a.kind == Oversized:
		return make([]byte, 2*webtorrent.MaxMessage)
	case a.kind == Deaf && i >= deafSwarms:
		return webtorrent.AppendRequest(nil, &webtorrent.Request{Kind: webtorrent.Scrape, Own: true})
	}
	return webtorrent.AppendRequest(nil, &webtorrent.Request{Kind: webtorrent.Announce, InfoHash: swarm, PeerID: peer})
}
