package transportbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// linkStack is one end of our links: as a sender it serves both lanes, as a receiver it acknowledges what comes.
type linkStack struct {
	place
	rtc  *rtclink.Host
	lane lane
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	links map[int]*linkEnd // guarded by mu
}

// keepalive is how often a link is checked; those that hear nothing for half a minute are given up.
const keepalive = 2 * time.Second

func newLinkStack(ctx context.Context, p place) (*linkStack, error) {
	s := &linkStack{place: p, links: map[int]*linkEnd{}}
	s.ctx, s.stop = context.WithCancel(ctx)
	var err error
	if s.lane, err = newLane(s); err != nil {
		return nil, err
	}
	s.rtc, err = rtclink.Listen(rtclink.Config{
		Listen: net.JoinHostPort(p.setup.Addr, "0"), Loopback: true, SocketPerLink: !p.setup.Send,
		Keepalive: keepalive, // there is no session above that pings, and some flows begin after a minute
	})
	return s, err
}

func (s *linkStack) begin(link int) error {
	e := newLinkEnd(s, link)
	l, offer, err := s.rtc.Offer(e)
	if err != nil {
		return err
	}
	e.transport, e.offered = l, l
	s.keep(e)
	s.say(message{Type: saySignal, Link: link, Signal: &signal{Description: &offer}})
	e.release()
	return nil
}

func (s *linkStack) keep(e *linkEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links[e.link] = e
}

func (s *linkStack) handle(link int, m signal) error {
	s.mu.Lock()
	e := s.links[link]
	s.mu.Unlock()
	switch {
	case m.Candidate != nil && e != nil:
		_ = e.transport.AddCandidate(*m.Candidate)
		return nil
	case m.Description == nil:
		return fmt.Errorf("link %d: a signal before the offer", link)
	case e != nil:
		return e.offered.Accept(*m.Description)
	}
	e = newLinkEnd(s, link)
	l, answer, err := s.rtc.Answer(*m.Description, e)
	if err != nil {
		return err
	}
	e.transport = l.(*rtclink.Link)
	close(e.made)
	s.keep(e)
	s.say(message{Type: saySignal, Link: link, Signal: &signal{Description: &answer}})
	e.release()
	return nil
}

func (s *linkStack) start() { s.lane.start() }

// burst asks for a foreground segment over the first link.
func (s *linkStack) burst(bytes int) {
	s.mu.Lock()
	e := s.links[0]
	s.mu.Unlock()
	e.expect(bytes)
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
	stack     *linkStack
	link      int
	transport *rtclink.Link
	offered   *rtclink.Link // the offerer's
	made      chan struct{} // closed when transport is set
	drained   chan struct{}
	sending   sync.Mutex // one burst goes out after another: drained wakes one

	mu      sync.Mutex
	hold    bool                 // guarded by mu: the description is not out yet
	waiting []transfer.Candidate // guarded by mu
	asked   []segment            // guarded by mu: foreground that has not come, in the order in which it was asked for
}

// segment is foreground that was asked for.
type segment struct {
	at            time.Time
	size, missing int // bytes
}

func newLinkEnd(s *linkStack, link int) *linkEnd {
	return &linkEnd{stack: s, link: link, hold: true, made: make(chan struct{}), drained: make(chan struct{}, 1)}
}

// Candidate implements transfer.LinkEvents.
func (e *linkEnd) Candidate(c transfer.Candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hold {
		e.waiting = append(e.waiting, c)
		return
	}
	e.stack.say(message{Type: saySignal, Link: e.link, Signal: &signal{Candidate: &c}})
}

func (e *linkEnd) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hold = false
	for _, c := range e.waiting {
		e.stack.say(message{Type: saySignal, Link: e.link, Signal: &signal{Candidate: &c}})
	}
}

// Open implements transfer.LinkEvents.
func (e *linkEnd) Open() {
	if e.offered == nil {
		<-e.made
	}
	e.stack.lane.add(e)
	e.stack.say(message{Type: sayOpen, Link: e.link})
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
	e.transport.SendControl(binary.BigEndian.AppendUint32([]byte{lane}, uint32(bytes)))
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
			e.stack.say(message{Type: sayTook, Link: e.link, Took: &arrival{Bytes: s.size, Seconds: time.Since(s.at).Seconds()}})
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
	e.stack.lane.urgent(true)
	defer e.stack.lane.urgent(false)
	e.sending.Lock()
	defer e.sending.Unlock()
	var payload [peer.PieceSize]byte
	var b []byte
	for bytes > 0 {
		n := min(peer.CutSize(peer.PieceSize, e.transport.Message()), bytes)
		b, _ = peer.Append(b[:0], peer.Data{SentAt: uint32(time.Now().UnixMicro()), Payload: payload[:n]}) // within limits
		if !e.wait(b) {
			return
		}
		bytes -= n
	}
}

// wait sends a message when there is room; false: the stack ends.
func (e *linkEnd) wait(b []byte) bool {
	for !e.transport.SendData(b) {
		select {
		case <-e.drained:
		case <-e.stack.ctx.Done():
			return false
		}
	}
	return true
}
