package rtclink

import (
	"sync"
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
	held, all := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release() // a test that fails has to be able to end
	var received atomic.Int32
	a.data = func([]byte) {
		<-held
		if received.Add(1) == each*peer.MaxDataChannels {
			close(all)
		}
	}
	connect(t, viewer, seed, a, b)
	link := b.link.(*Link)
	full := make(chan struct{})
	taken := sync.OnceFunc(func() { close(full) })
	const low = peer.MaxMessage * (each - 1)
	link.channels.data[0].SetBufferedAmountLowThreshold(low)
	link.channels.data[0].OnBufferedAmountLow(taken)
	message := make([]byte, peer.MaxMessage)
	for range each { // past SendData, whose bound would not let it come to this
		for _, c := range link.channels.data {
			if _, err := c.Write(message); err != nil {
				t.Fatal(err)
			}
		}
	}
	if link.channels.data[0].BufferedAmount() <= low {
		taken() // it was faster than the writing, and the threshold was never passed from above
	}
	wait(t, full, "the receiver to take in the first messages")
	release()
	wait(t, all, "every message")
}
