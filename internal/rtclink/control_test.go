package rtclink

import (
	"sync/atomic"
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// unreading connects a link whose other side, b, reads control messages once the gate is closed.
func unreading(t *testing.T) (a, b *end, gate chan struct{}, read *atomic.Int32) {
	t.Helper()
	seed, viewer := listen(t, nil), listen(t, nil)
	a, b = newEnd(), newEnd()
	gate, read = make(chan struct{}), &atomic.Int32{}
	b.reads = func() {
		<-gate
		read.Add(1)
	}
	connect(t, seed, viewer, a, b)
	return a, b, gate, read
}

// TestLongMessagesAreHeldBackUntilTheOthersAreRead: a sender that asks for room loses nothing, however late they are read.
func TestLongMessagesAreHeldBackUntilTheOthersAreRead(t *testing.T) {
	leakCheck(t)
	a, _, gate, read := unreading(t)
	link := a.link.(*Link)
	message := make([]byte, peer.MaxCertificate)
	said := 0
	for link.ControlRoom() {
		link.SendControl(message)
		if said++; said*len(message) > receiveBuffer+controlBound {
			t.Fatal("there is always room")
		}
	}
	close(gate)
	for said < 500 {
		for ; said < 500 && link.ControlRoom(); said++ {
			link.SendControl(message)
		}
		if said < 500 {
			wait(t, a.drained, "room")
		}
	}
	for int(read.Load()) < said {
		select {
		case r := <-a.closed:
			t.Fatalf("ended (%s) after %d of %d messages", r, read.Load(), said)
		case <-a.drained:
		default:
		}
	}
}

// TestAPeerThatReadsNothingLosesItsLink: what does not ask for room is bounded too.
func TestAPeerThatReadsNothingLosesItsLink(t *testing.T) {
	leakCheck(t)
	a, _, gate, _ := unreading(t)
	defer close(gate)
	message := make([]byte, peer.MaxCertificate)
	for said := 0; ; said += len(message) {
		select {
		case r := <-a.closed:
			if r != peer.CloseLimit {
				t.Errorf("ended (%s)", r)
			}
			return
		default:
		}
		if said > 2*(receiveBuffer+controlBound) && a.link.(*Link).usable() {
			t.Fatalf("%d bytes wait for a peer that reads nothing", said)
		}
		a.link.SendControl(message)
	}
}
