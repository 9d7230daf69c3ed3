package transportbench

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// linkStack is one end of our links: as a sender it serves both lanes, as a receiver it acknowledges what comes.
type linkStack struct {
	place
	*pairing.Links[*linkEnd]
	rtc  *rtclink.Host
	lane lane
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// keepalive is how often a link is checked; those that hear nothing for half a minute are given up.
const keepalive = 2 * time.Second

func newLinkStack(ctx context.Context, p place) (*linkStack, error) {
	s := &linkStack{place: p}
	s.ctx, s.stop = context.WithCancel(ctx)
	var err error
	if s.lane, err = newLane(s); err != nil {
		return nil, err
	}
	s.rtc, err = rtclink.Listen(rtclink.Config{
		Listen: net.JoinHostPort(p.setup.Addr, "0"), Loopback: true, SocketPerLink: !p.setup.Send,
		Keepalive: keepalive, // there is no session above that pings, and some flows begin after a minute
	})
	s.Links = pairing.New(s.rtc, func(link int, m signal) { s.say(message{Type: saySignal, Link: link, Signal: &m}) }, func() *linkEnd {
		return &linkEnd{stack: s, drained: make(chan struct{}, 1)}
	})
	return s, err
}

func (s *linkStack) begin(link int) error { return s.Begin(link) }

func (s *linkStack) handle(link int, m signal) error { return s.Handle(link, m) }

func (s *linkStack) start() { s.lane.start() }

// burst asks for a foreground segment over the first link.
func (s *linkStack) burst(bytes int) {
	if e, ok := s.Get(0); ok {
		e.expect(bytes)
	}
}

func (s *linkStack) close() error {
	s.stop()
	s.lane.close()
	err := s.rtc.Close()
	s.wg.Wait()
	return err
}

// linkEnd is one end of one link.
type linkEnd struct {
	pairing.Base
	stack   *linkStack
	drained chan struct{}
	sending sync.Mutex // one burst goes out after another: drained wakes one

	mu    sync.Mutex
	asked []segment // guarded by mu: foreground that has not come, in the order in which it was asked for
}

// segment is foreground that was asked for.
type segment struct {
	at            time.Time
	size, missing int // bytes
}

// Made implements pairing.End.
func (e *linkEnd) Made() {}

// Opened implements pairing.End.
func (e *linkEnd) Opened() {
	e.stack.lane.add(e)
	e.stack.say(message{Type: sayOpen, Link: e.Number})
}

// What the other end asks for: so many bytes (32 bits) in a lane.
const (
	askForeground = 'f'
	askBackground = 'b'
)

// Control implements transfer.LinkEvents.
func (e *linkEnd) Control(b []byte) {
	if len(b) != 5 {
		return
	}
	bytes := int(binary.BigEndian.Uint32(b[1:]))
	if b[0] == askBackground {
		e.stack.lane.asked(e, bytes)
		return
	}
	e.stack.wg.Go(func() { e.send(bytes) })
}

func (e *linkEnd) ask(lane byte, bytes int) {
	e.Link.SendControl(binary.BigEndian.AppendUint32([]byte{lane}, uint32(bytes)))
}

// Drain implements transfer.LinkEvents.
func (e *linkEnd) Drain() {
	select {
	case e.drained <- struct{}{}:
	default:
	}
}

// Closed implements transfer.LinkEvents.
func (e *linkEnd) Closed(peer.CloseReason) {}

// Ack implements transfer.AckEvents.
func (e *linkEnd) Ack(b []byte) { e.stack.lane.ack(e, b) }

// Data implements transfer.LinkEvents.
func (e *linkEnd) Data(b []byte) {
	if peer.Type(b[0]) != peer.TypeData {
		e.stack.lane.data(e, b)
		return
	}
	e.arrived(len(b) - peer.DataHeader)
}

// arrived notes bytes of a foreground segment.
func (e *linkEnd) arrived(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for n > 0 && len(e.asked) > 0 { // of the endless foreground flow none was
		s := &e.asked[0]
		part := min(n, s.missing)
		n -= part
		if s.missing -= part; s.missing == 0 {
			e.stack.say(message{Type: sayTook, Link: e.Number, Took: &arrival{Bytes: s.size, Seconds: time.Since(s.at).Seconds()}})
			e.asked = e.asked[1:]
		}
	}
}

// expect asks for a burst.
func (e *linkEnd) expect(bytes int) {
	e.mu.Lock()
	e.asked = append(e.asked, segment{time.Now(), bytes, bytes})
	e.mu.Unlock()
	e.ask(askForeground, bytes)
}

// send serves bytes in the foreground, as a piece's messages do.
func (e *linkEnd) send(bytes int) {
	e.stack.lane.foreground(true)
	defer e.stack.lane.foreground(false)
	e.sending.Lock()
	defer e.sending.Unlock()
	var payload [peer.PieceSize]byte
	var b []byte
	for bytes > 0 {
		n := min(peer.CutSize(peer.PieceSize, e.Link.Message()), bytes)
		b, _ = peer.Append(b[:0], peer.Data{SentAt: uint32(time.Now().UnixMicro()), Payload: payload[:n]}) // within limits
		if !e.wait(b) {
			return
		}
		bytes -= n
	}
}

// wait sends a message when there is room; false: the stack ends.
func (e *linkEnd) wait(b []byte) bool {
	for !e.Link.SendData(b) {
		select {
		case <-e.drained:
		case <-e.stack.ctx.Done():
			return false
		}
	}
	return true
}
