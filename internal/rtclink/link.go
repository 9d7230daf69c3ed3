package rtclink

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// controlBound is how many bytes of control messages a peer may leave unread before its link is ended.
const controlBound = 1 << 20

// farewellWait bounds how long a closing link waits for its last control message to be acknowledged.
const farewellWait = 500 * time.Millisecond

// Link is one peer connection. It satisfies transfer.Link.
type Link struct {
	host   *Host
	pc     *webrtc.PeerConnection
	own    *socket // this link's socket, nil when the host's is used
	events transfer.LinkEvents

	plan    peer.Plan
	opened  atomic.Bool
	closing atomic.Bool
	readers sync.WaitGroup
	gone    chan struct{} // closed when the other side went away
	leave   sync.Once     // closes gone
	done    chan struct{}

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu: OpenTimeout
	control *channel    // guarded by mu until opened, then fixed
	data    []*channel  // guarded by mu until opened, then fixed; nil entries are awaited
	ack     *channel    // guarded by mu
	strays  int         // guarded by mu
	next    int         // guarded by mu: data channel to write to next
	written int64       // guarded by mu: bytes handed to the data channels
	flight  *flight     // guarded by mu
}

var _ transfer.Link = (*Link)(nil)

// channel is a detached data channel.
type channel struct {
	dc  *webrtc.DataChannel
	raw io.ReadWriteCloser
}

func (h *Host) newLink(plan peer.Plan, events transfer.LinkEvents) (*Link, error) {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	pc, own, err := h.connection()
	if err != nil {
		return nil, err
	}
	l := &Link{host: h, pc: pc, own: own, events: events, plan: plan, gone: make(chan struct{}), done: make(chan struct{})}
	l.data = make([]*channel, plan.Data)
	l.flight = newFlight(h.cfg.InFlight, plan.Message)
	pc.OnICECandidate(func(c *webrtc.ICECandidate) {
		if l.closing.Load() {
			return
		}
		if c == nil {
			events.Candidate(transfer.Candidate{End: true})
			return
		}
		init := c.ToJSON()
		out := transfer.Candidate{Candidate: init.Candidate}
		if init.SDPMid != nil {
			out.Mid = *init.SDPMid
		}
		if init.SDPMLineIndex != nil {
			out.Line = *init.SDPMLineIndex
		}
		events.Candidate(out)
	})
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		switch s {
		case webrtc.PeerConnectionStateFailed:
			l.Close(peer.CloseFailed, nil)
		case webrtc.PeerConnectionStateClosed:
			l.Close(peer.CloseClosed, nil)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		l.closing.Store(true)
		go l.shutdown(peer.CloseShutdown, nil, false)
		return nil, ErrClosed
	}
	h.links[l] = struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(h.cfg.OpenTimeout, func() {
		if !l.opened.Load() {
			l.Close(peer.CloseTimeout, nil)
		}
	})
	return l, nil
}

// MaxMessage implements transfer.Link.
func (l *Link) MaxMessage() int { return l.plan.Message }

// Done implements transfer.Link.
func (l *Link) Done() <-chan struct{} { return l.done }

// Path implements transfer.Link.
func (l *Link) Path() transfer.Path {
	if pair, err := l.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePair(); err == nil && pair != nil &&
		(pair.Local.Typ == webrtc.ICECandidateTypeRelay || pair.Remote.Typ == webrtc.ICECandidateTypeRelay) {
		return transfer.Relay
	}
	return transfer.Direct
}

// RTT implements transfer.Link.
func (l *Link) RTT() time.Duration {
	if !l.opened.Load() || l.closing.Load() {
		return 0
	}
	return time.Duration(l.pc.SCTP().Stats().SmoothedRoundTripTime * float64(time.Second))
}

// SendControl implements transfer.Link.
func (l *Link) SendControl(message []byte) {
	if !l.opened.Load() || l.closing.Load() {
		return
	}
	if l.control.dc.BufferedAmount() > controlBound {
		l.Close(peer.CloseLimit, nil)
		return
	}
	if _, err := l.control.raw.Write(message); err != nil {
		l.Close(peer.CloseFailed, nil)
	}
}

// SendData implements transfer.Link.
func (l *Link) SendData(message []byte) bool {
	if !l.opened.Load() || l.closing.Load() || len(message) > l.plan.Message {
		return false
	}
	l.mu.Lock()
	if !l.room(len(message)) {
		l.mu.Unlock()
		return false
	}
	c := l.data[l.next]
	l.next = (l.next + 1) % len(l.data)
	l.written += int64(len(message))
	l.mu.Unlock()
	if _, err := c.raw.Write(message); err != nil {
		l.Close(peer.CloseFailed, nil)
		return false
	}
	return true
}

// room says whether n more bytes may be handed to SCTP; if not, Drain will be called. Under mu.
func (l *Link) room(n int) bool {
	for {
		buffered := l.buffered()
		if now := time.Now(); l.flight.due(now) {
			rtt := time.Duration(l.pc.SCTP().Stats().SmoothedRoundTripTime * float64(time.Second))
			l.flight.advance(now, l.written-buffered, rtt)
		}
		if buffered+int64(n) <= int64(l.flight.bound()) {
			return true
		}
		l.flight.held()
		if l.awaitDrain() {
			return false
		}
	}
}

// buffered is what SCTP holds of the data channels. Under mu.
func (l *Link) buffered() int64 {
	var sum uint64
	for _, c := range l.data {
		sum += c.dc.BufferedAmount()
	}
	return int64(sum)
}

// awaitDrain has Drain called when a channel has lost a quarter of what it holds; false says that one has already.
// Under mu.
func (l *Link) awaitDrain() bool {
	var low [peer.MaxDataChannels]uint64
	for i, c := range l.data {
		low[i] = c.dc.BufferedAmount() / 4 * 3
		c.dc.SetBufferedAmountLowThreshold(low[i])
	}
	armed := false
	for i, c := range l.data {
		armed = armed || c.dc.BufferedAmount() > low[i]
	}
	return armed
}

// Close implements transfer.Link.
func (l *Link) Close(reason peer.CloseReason, farewell []byte) {
	if l.closing.Swap(true) {
		return
	}
	go l.shutdown(reason, farewell, true)
}

// abandon ends a link whose making failed: its owner never had it, so it hears nothing of it.
func (l *Link) abandon() {
	if !l.closing.Swap(true) {
		go l.shutdown(peer.CloseFailed, nil, false)
	}
}

func (l *Link) shutdown(reason peer.CloseReason, farewell []byte, tell bool) {
	l.mu.Lock() // an adopt that began before closing was set has counted its readers
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if farewell != nil && l.opened.Load() {
		l.sayFarewell(farewell)
	}
	_ = l.pc.GracefulClose() // waits for pion's goroutines; the readers end with their channels
	l.readers.Wait()
	if l.own != nil {
		l.own.close()
	}
	if tell {
		l.events.Closed(reason)
	}
	l.host.mu.Lock()
	delete(l.host.links, l)
	l.host.mu.Unlock()
	close(l.done)
}

func (l *Link) sayFarewell(message []byte) {
	sent := make(chan struct{}, 1)
	l.control.dc.SetBufferedAmountLowThreshold(0)
	l.control.dc.OnBufferedAmountLow(func() {
		select {
		case sent <- struct{}{}:
		default:
		}
	})
	if _, err := l.control.raw.Write(message); err != nil {
		return
	}
	t := time.NewTimer(farewellWait)
	defer t.Stop()
	select {
	case <-sent:
	case <-l.gone: // it has read the farewell, or will not
	case <-t.C:
	}
}
