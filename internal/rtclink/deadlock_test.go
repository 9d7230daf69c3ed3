package rtclink

import (
	"sync/atomic"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestReceiverDoesNotDeadlock fills a receiver that does not read with the largest messages on as many channels as a
// plan may have, all of them interleaved. With a receive buffer that the unfinished messages fill (pion's default and
// 20 × 64 KiB, or this one at 256 KiB) no message can be finished, none read, and the transfer stands still for good.
func TestReceiverDoesNotDeadlock(t *testing.T) {
	leakCheck(t)
	const each = 12 // messages a channel: more than the buffer holds
	plan := peer.Plan{V: 1, Data: peer.MaxDataChannels, Message: peer.MaxMessage}
	if unfinished := peer.MaxDataChannels*peer.MaxMessage + 2*sctpMessage; 2*unfinished > receiveBuffer {
		t.Errorf("a receive buffer of %d bytes for up to %d in unfinished messages", receiveBuffer, unfinished)
	}
	seed, viewer := listen(t, func(c *Config) { c.Plan = plan }), listen(t, func(c *Config) { c.Plan = plan })
	a, b := newEnd(), newEnd()
	release, all := make(chan struct{}), make(chan struct{})
	var received atomic.Int32
	a.data = func([]byte) {
		<-release
		if received.Add(1) == each*peer.MaxDataChannels {
			close(all)
		}
	}
	connect(t, viewer, seed, a, b)
	link := b.link.(*Link)
	full := make(chan struct{})
	link.data[0].SetBufferedAmountLowThreshold(peer.MaxMessage * (each - 1))
	link.data[0].OnBufferedAmountLow(func() {
		select {
		case <-full:
		default:
			close(full)
		}
	})
	message := make([]byte, peer.MaxMessage)
	for range each { // past SendData, whose bound would not let it come to this
		for _, c := range link.data {
			if _, err := c.Write(message); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait(t, full, "the receiver to take in the first messages")
	close(release)
	wait(t, all, "every message")
}
