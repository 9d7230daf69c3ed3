package arm

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// linkQuiet is how long a link may be silent before the side that offered it says something: links end after rtclink.LostAfter.
const linkQuiet = rtclink.LostAfter / 3

// linkConn is a session of the stack link.
type linkConn struct {
	s        *session
	at       *seat[*rtclink.Host]
	text     string        // the peer's offer
	gathered chan struct{} // closed when there are no more candidates of this side
	made     chan struct{} // closed once link is set, or never will be
	link     transfer.Link // nil: it could not be made
	accept   func(transfer.Description) error
	spoke    atomic.Int64 // Unix ns: when this side last sent

	mu       sync.Mutex
	trickles bool                 // guarded by mu
	waiting  []transfer.Candidate // guarded by mu: those that are to go into the description, where they do not trickle
}

var _ connection = (*linkConn)(nil)

func newLinkConn(s *session, at *seat[*rtclink.Host]) *linkConn {
	return &linkConn{s: s, at: at, made: make(chan struct{}), gathered: make(chan struct{})}
}

func (c *linkConn) offer(b armwire.OfferBody) (string, *armwire.Error) {
	c.trickle(b)
	defer close(c.made)
	link, d, err := c.at.socket.of.Offer(c)
	if err != nil {
		return "", armwire.Fail(armwire.Failed, "%v", err)
	}
	c.link, c.accept = link, link.Accept
	return c.whole(d.SDP), nil
}

func (c *linkConn) trickle(b armwire.OfferBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trickles = b.Trickles()
}

// whole adds candidates that came behind the description, unless they trickle. A link waits but briefly for those of its own socket.
func (c *linkConn) whole(sdp string) string {
	c.mu.Lock()
	trickles := c.trickles
	c.mu.Unlock()
	if trickles {
		return sdp
	}
	sleep.Until(c.gathered, gatherWithin)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.waiting {
		sdp += "a=" + t.Candidate + "\r\n"
	}
	return sdp
}

func (c *linkConn) takeOffer(sdp string) *armwire.Error {
	c.text = sdp
	return nil
}

func (c *linkConn) answer(b armwire.OfferBody) (string, *armwire.Error) {
	c.trickle(b)
	defer close(c.made)
	link, d, err := c.at.socket.of.Answer(transfer.Description{SDP: c.text, Plan: linkPlan}, c)
	c.text = ""
	if err != nil {
		return "", armwire.Fail(armwire.BadSDP, "%v", err)
	}
	c.link = link
	return c.whole(d.SDP), nil
}

func (c *linkConn) takeAnswer(sdp string) *armwire.Error {
	if err := c.at.meet(addressesOf(sdp)); err != nil {
		return err
	}
	if err := c.accept(transfer.Description{SDP: sdp, Plan: linkPlan}); err != nil {
		return armwire.Fail(armwire.BadSDP, "%v", err)
	}
	return nil
}

func (c *linkConn) candidate(b armwire.CandidateBody) *armwire.Error {
	if err := c.at.meet(addressesOf(b.Candidate)); err != nil {
		return err
	}
	select {
	case <-c.made:
	default:
		return armwire.Fail(armwire.WrongState, "a candidate before the answer was generated")
	}
	if err := c.link.AddCandidate(transfer.Candidate{Candidate: b.Candidate, Mid: b.Mid, Line: uint16(b.Line), End: b.Candidate == ""}); err != nil {
		return armwire.Fail(armwire.BadSDP, "%v", err)
	}
	return nil
}

func (c *linkConn) send(b []byte) bool {
	c.spoke.Store(time.Now().UnixNano())
	return c.link.SendData(b)
}

// keepAlive has the side that offered say something; the other one's acknowledgement is a sign of life, too.
func (c *linkConn) keepAlive(now time.Time) {
	if c.accept == nil || now.UnixNano()-c.spoke.Load() < int64(linkQuiet) {
		return
	}
	c.spoke.Store(now.UnixNano())
	c.link.SendControl([]byte{0})
}

func (c *linkConn) figures() (nacks, lost int64) { return 0, 0 }

func (c *linkConn) close() {
	select {
	case <-c.made:
		if c.link != nil {
			c.link.Close(peer.CloseClosed, nil)
			<-c.link.Done()
		}
	default: // neither offered nor answered
	}
	c.at.leave()
}

// Candidate implements transfer.LinkEvents.
func (c *linkConn) Candidate(t transfer.Candidate) {
	c.mu.Lock()
	trickles := c.trickles
	if !trickles && !t.End {
		c.waiting = append(c.waiting, t)
	}
	c.mu.Unlock()
	if trickles {
		c.s.event(armwire.Trickle, armwire.CandidateBody{Candidate: t.Candidate, Mid: t.Mid, Line: int(t.Line)})
	} else if t.End {
		close(c.gathered)
	}
}

// Open implements transfer.LinkEvents.
func (c *linkConn) Open() {
	<-c.made
	c.spoke.Store(time.Now().UnixNano())
	c.s.opened(c)
}

// Control implements transfer.LinkEvents.
func (c *linkConn) Control([]byte) {}

// Data implements transfer.LinkEvents.
func (c *linkConn) Data(b []byte) {
	<-c.made
	c.s.message(c, b)
}

// Drain implements transfer.LinkEvents.
func (c *linkConn) Drain() {}

// Closed implements transfer.LinkEvents.
func (c *linkConn) Closed(reason peer.CloseReason) {
	text := "closed"
	switch reason {
	case peer.CloseFailed, peer.CloseTimeout:
		text = string(reason)
	}
	c.s.closed(c, text)
}
