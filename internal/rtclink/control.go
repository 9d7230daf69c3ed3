package rtclink

import (
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

// SendControl implements transfer.Link.
func (l *Link) SendControl(message []byte) {
	if l.usable() {
		l.saying.Lock()
		defer l.saying.Unlock()
		l.say(l.control, message)
	}
}

// ControlRoom implements transfer.Holder.
func (l *Link) ControlRoom() bool {
	if !l.usable() {
		return false
	}
	if l.control.BufferedAmount() < controlRoom {
		return true
	}
	const low = controlRoom / 2
	l.control.SetBufferedAmountLowThreshold(low)
	l.heldBack.Store(true)
	if l.control.BufferedAmount() > low {
		return false // Drain will be called
	}
	l.heldBack.Store(false)
	return true
}

// say hands a message to the control or the ack channel. A peer that does not read them is closed instead of buffered for.
func (l *Link) say(c *datachannel.DataChannel, message []byte) {
	if c.BufferedAmount() > controlBound {
		l.Close(peer.CloseLimit, nil)
		return
	}
	if _, err := c.Write(message); err != nil {
		l.Close(peer.CloseFailed, nil)
	}
}

func (l *Link) sayFarewell(message []byte) {
	sent := make(chan struct{}, 1)
	l.control.SetBufferedAmountLowThreshold(0)
	l.control.OnBufferedAmountLow(func() {
		select {
		case sent <- struct{}{}:
		default:
		}
	})
	l.saying.Lock()
	_, err := l.control.Write(message)
	l.saying.Unlock()
	if err != nil {
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
