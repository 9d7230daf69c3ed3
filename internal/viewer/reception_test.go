package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestWhatIsToldOfALinkIsActedOnOnTheLoop: and not any more once the peer is gone.
func TestWhatIsToldOfALinkIsActedOnOnTheLoop(t *testing.T) {
	r := newRig(t)
	f := r.peer(2, schedule.Viewer, 0)
	e := reception{loop: r.w}
	ping, _ := peer.Append(nil, peer.Ping{Nonce: 9})
	e.Control(ping)
	e.Data([]byte{0})
	e.Ack([]byte{0})
	if r.w.run(time.Millisecond); f.sent != nil || e.came.Load() != 3 {
		t.Errorf("before there is a peer: %v, %d messages", f.sent, e.came.Load())
	}
	e.attach(f.remote)
	buffer := append([]byte(nil), ping...)
	e.Control(buffer)
	buffer[0] = 0xff // the caller's again
	if len(of[peer.Pong](f)) != 0 {
		t.Error("acted on beside the loop")
	}
	if r.w.run(time.Millisecond); len(of[peer.Pong](f)) != 1 || f.came.Load() != 4 {
		t.Errorf("%v, %d messages", f.sent, f.came.Load())
	}
	e.Control(ping)
	f.gone = true
	if r.w.run(time.Millisecond); len(of[peer.Pong](f)) != 1 {
		t.Error("a peer that is gone is heard")
	}
}
