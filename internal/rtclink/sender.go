package rtclink

import (
	"sync"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// packetPayload is how many bytes of a message one packet carries at least.
var packetPayload = webrtcend.LeastPayload(webrtcend.MTU)

// sender hands data messages to SCTP, those of the foreground within the bound in flight (flight.go), and takes turns among the
// data channels.
type sender struct {
	life     *life
	channels *channels

	mu          sync.Mutex
	association *sctp.Association // guarded by mu; nil before there is one
	flight      *flight           // guarded by mu
	next        int               // guarded by mu: data channel to write to next
	written     int64             // guarded by mu: bytes handed to the data channels
}

// MaxMessage implements transfer.Link.
func (s *sender) MaxMessage() int { return s.channels.plan.Message }

// Message implements transfer.Cutter: the size of the messages that a whole piece is cut into. The shorter last piece of a segment is cut
// alike. As one message, as long as the plan allows, it would go out on top of a bound that is made for half of that. If it overflowed a
// queue, nothing would follow it that has it sent again soon.
func (s *sender) Message() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flight.message(s.flight.thin())
}

// learn takes the round-trip time of ICE's checks: there is no traffic of the link in the path's queue yet, but there may be of
// others.
func (s *sender) learn(rtt time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight.sample(time.Now(), rtt)
}

// move has the bound in flight follow another way.
func (s *sender) move() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight.move()
}

// over gives the sender its association.
func (s *sender) over(a *sctp.Association) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.association = a
}

// abort ends the association of an open link.
func (s *sender) abort() {
	s.mu.Lock()
	a := s.association
	s.mu.Unlock()
	a.Abort("")
}

// SendData implements transfer.Link.
func (s *sender) SendData(message []byte) bool {
	if !s.takes(message) {
		return false
	}
	s.mu.Lock()
	if !s.room(len(message)) {
		s.mu.Unlock()
		return false
	}
	c := s.turn(len(message))
	s.mu.Unlock()
	return s.carry(c, message)
}

// takes says whether a message may be sent at all.
func (s *sender) takes(message []byte) bool { return s.life.usable() && len(message) <= s.MaxMessage() }

// turn is the data channel that takes the next n bytes. Under mu.
func (s *sender) turn(n int) *datachannel.DataChannel {
	c := s.channels.data[s.next]
	s.next = (s.next + 1) % len(s.channels.data)
	s.written += int64(n)
	return c
}

// carry hands a message to its data channel; false says that the link has ended.
func (s *sender) carry(c *datachannel.DataChannel, message []byte) bool {
	if _, err := c.Write(message); err != nil {
		s.life.Close(peer.CloseFailed, nil)
		return false
	}
	return true
}

// room says whether n more bytes may be handed to SCTP; if not, Drain will be called. Under mu.
func (s *sender) room(n int) bool {
	for {
		buffered := s.buffered()
		now := time.Now()
		s.flight.heard(now, s.written-buffered)
		if s.flight.due(now) {
			s.flight.advance(now, s.written-buffered, time.Duration(s.association.SRTT()*float64(time.Millisecond)))
		}
		if buffered == 0 || buffered+int64(n) <= int64(s.flight.bound(n)) {
			if buffered == 0 || s.flight.asks() {
				s.flight.woke(now, s.written)
			}
			return true
		}
		s.flight.held()
		if s.awaitDrain() {
			return false
		}
	}
}

// buffered is what SCTP holds of the data channels. Under mu.
func (s *sender) buffered() int64 {
	var sum uint64
	for _, c := range s.channels.data {
		sum += c.BufferedAmount()
	}
	return int64(sum)
}

// awaitDrain has Drain called when a channel has lost a quarter of what it holds; false says that one has already.
// Under mu.
func (s *sender) awaitDrain() bool {
	data := s.channels.data
	var low [peer.MaxDataChannels]uint64
	for i, c := range data {
		low[i] = c.BufferedAmount() / 4 * 3
		c.SetBufferedAmountLowThreshold(low[i])
	}
	armed := false
	for i, c := range data {
		armed = armed || c.BufferedAmount() > low[i]
	}
	return armed
}

// Room says whether SCTP takes n more bytes of background: as long as no more than about one message waits for its own
// window. Less than that must not be asked for: SCTP lets its window grow only while something waits, and a message longer
// than the first window would never go. behind says how many bytes wait already: the delay of a message behind them begins
// in our own buffer and not on the path.
//
// Nothing says when there is room again: acks come as long as something is in flight, and with them the next try.
func (s *sender) Room(n int) (behind int, ok bool) {
	if !s.life.usable() {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held, window := int(s.buffered()), int(s.association.CWND())
	return max(held-window, 0), held+n <= window+s.MaxMessage()
}

// SendBackground hands SCTP a data message of the background lane, whatever the room; false says that it is too long or
// the link has ended.
func (s *sender) SendBackground(message []byte) bool {
	if !s.takes(message) {
		return false
	}
	s.mu.Lock()
	c := s.turn(len(message))
	s.mu.Unlock()
	return s.carry(c, message)
}

// Payload is how many bytes of a message one packet carries, 0 while the link is not open.
func (s *sender) Payload() int {
	if !s.life.usable() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return webrtcend.Payload(s.association)
}
