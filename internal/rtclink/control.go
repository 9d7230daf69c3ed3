package rtclink

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Bytes of control messages that a peer has not acknowledged (spec/peer-protocol.md, "Rates").
const (
	controlBound = 1 << 20   // above this its link ends
	controlRoom  = 256 << 10 // above this what can wait is held back
)

// farewellWait bounds how long a closing link waits for its last control message to be acknowledged.
const farewellWait = 500 * time.Millisecond

// control hands messages to the control and the ack channel. A peer that does not read them is closed instead of buffered for.
type control struct {
	life     *life
	channels *channels
	heldBack atomic.Bool // ControlRoom has said no since Drain was last called

	// saying is held while SCTP takes a control message. SCTP gives it its number in the stream first and puts it into the
	// queue later, under two locks: of two at a time the second may go out first. No other lock is taken under it.
	saying sync.Mutex
}

// SendControl implements transfer.Link.
func (c *control) SendControl(message []byte) {
	if c.life.usable() {
		c.saying.Lock()
		defer c.saying.Unlock()
		c.say(c.channels.control, message)
	}
}

// SendAck hands a message to the ack channel.
func (c *control) SendAck(message []byte) {
	if c.life.usable() {
		c.say(c.channels.ack, message)
	}
}

// ControlRoom implements transfer.Holder.
func (c *control) ControlRoom() bool {
	if !c.life.usable() {
		return false
	}
	channel := c.channels.control
	if channel.BufferedAmount() < controlRoom {
		return true
	}
	const low = controlRoom / 2
	channel.SetBufferedAmountLowThreshold(low)
	c.heldBack.Store(true)
	if channel.BufferedAmount() > low {
		return false // drained will be called
	}
	c.heldBack.Store(false)
	return true
}

// drained says whether there is room again for which ControlRoom has said no.
func (c *control) drained() bool { return c.heldBack.Swap(false) && !c.life.closing.Load() }

func (c *control) say(channel *datachannel.DataChannel, message []byte) {
	if channel.BufferedAmount() > controlBound {
		c.life.Close(peer.CloseLimit, nil)
		return
	}
	if _, err := channel.Write(message); err != nil {
		c.life.Close(peer.CloseFailed, nil)
	}
}

// farewell says the last words of a link that is closing, and waits until the other side has them or gone is closed.
func (c *control) farewell(message []byte, gone <-chan struct{}) {
	sent := make(chan struct{}, 1)
	channel := c.channels.control
	channel.SetBufferedAmountLowThreshold(0)
	channel.OnBufferedAmountLow(func() {
		select {
		case sent <- struct{}{}:
		default:
		}
	})
	c.saying.Lock()
	_, err := channel.Write(message)
	c.saying.Unlock()
	if err != nil {
		return
	}
	t := time.NewTimer(farewellWait)
	defer t.Stop()
	select {
	case <-sent:
	case <-gone: // it has read the farewell, or will not
	case <-t.C:
	}
}
