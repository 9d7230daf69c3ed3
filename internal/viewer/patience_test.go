package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// tried is patience with a peer of which a test says what came.
type tried struct {
	patience
	w       *world
	bytes   int64
	came    int64
	last    time.Time
	pings   uint32
	dropped []peer.CloseReason
}

func newTried(lenient bool) *tried {
	p := &tried{w: newWorld()}
	p.patienceHost = patienceHost{
		loop: p.w, lenient: lenient, drifted: func() bool { return false }, came: func() int64 { return p.came },
		nowUs: func() int64 { return p.w.now.Sub(worldBegin).Microseconds() }, data: func() (int64, time.Time) { return p.bytes, p.last },
		ping: func() uint32 { p.pings++; return p.pings }, drop: func(r peer.CloseReason) { p.dropped = append(p.dropped, r) },
	}
	return p
}

func TestThreeStallsEndALinkUnlessItIsTheSeeds(t *testing.T) {
	for _, c := range []struct {
		lenient, silent bool
		want            peer.CloseReason
	}{{false, false, peer.CloseStalled}, {false, true, peer.CloseTimeout}, {true, false, ""}} {
		p := newTried(c.lenient)
		p.bytes = 2 * peer.PieceSize
		p.forgive()
		for i := range mostStalls {
			if p.stalled(); p.stalledUs != stallPause.Microseconds()<<i {
				t.Errorf("after %d stalls it is left alone until %d", i+1, p.stalledUs)
			}
			if !c.silent {
				p.came++
			}
		}
		p.w.run(0)
		if got := len(p.dropped); (c.want == "") != (got == 0) || got > 0 && p.dropped[0] != c.want {
			t.Errorf("%+v: dropped %v", c, p.dropped)
		}
	}
}

func TestBytesOfAPieceForgiveStallsAndRejects(t *testing.T) {
	p := newTried(false)
	p.stalled()
	p.rejected(peer.RejectBusy, nil)
	p.bytes = peer.PieceSize
	if p.forgive(); p.stalls != 0 || p.rejects != 0 {
		t.Errorf("%d stalls, %d rejects", p.stalls, p.rejects)
	}
	if p.rejected(peer.RejectBusy, nil) || !p.rejected(peer.RejectNotHeld, nil) {
		t.Error("that a peer is busy does not say that the piece is gone; that it holds none does")
	}
	if p.rejected(peer.RejectLaneOff, []transfer.Order{{Lane: peer.Background}}); p.behindUs != never || p.rejects != 2 {
		t.Errorf("in the background until %d, %d rejects", p.behindUs, p.rejects)
	}
}

func TestAPeerThatAnswersPingsAndSendsNothingIsDropped(t *testing.T) {
	p := newTried(false)
	p.stalled()
	p.pong(p.pings, time.Millisecond)
	p.w.run(muteTime)
	if p.pings != 2 || len(p.dropped) > 0 {
		t.Fatalf("%d pings, dropped %v", p.pings, p.dropped)
	}
	p.pong(1, time.Millisecond) // the first one again
	p.pong(p.pings, time.Millisecond)
	if len(p.dropped) != 1 || p.dropped[0] != peer.CloseStalled {
		t.Errorf("dropped %v", p.dropped)
	}
}

// TestAPeerThatRejectsIsNotSilent: a busy viewer says so, if after the stall.
func TestAPeerThatRejectsIsNotSilent(t *testing.T) {
	p := newTried(false)
	p.stalled()
	p.pong(p.pings, time.Millisecond)
	p.rejected(peer.RejectBusy, nil)
	p.w.run(muteTime)
	p.pong(p.pings, time.Millisecond)
	if len(p.dropped) > 0 {
		t.Errorf("dropped %v", p.dropped)
	}
}

func TestALatePeerIsLeftAloneLongerEachTime(t *testing.T) {
	p := newTried(false)
	ask := func() []transfer.Order {
		p.w.run(time.Millisecond)
		return []transfer.Order{{
			Lane: peer.Foreground, Why: schedule.WhyNear, Sent: p.w.now, Target: &transfer.Target{Certificate: &certificate.Certificate{Length: 1 << 20}},
		}}
	}
	for i := range 2 {
		gone := ask()
		p.w.run(time.Minute)
		p.last = p.w.now
		p.late(4*time.Second, gone)
		if until := (p.nowUs() + stallPause.Microseconds()<<i); p.stalledUs != until || p.stalls != 0 {
			t.Errorf("left alone until %d, not %d; %d stalls", p.stalledUs, until, p.stalls)
		}
	}
	for range promptPieces {
		p.brought()
	}
	if p.lateness.times != 0 {
		t.Error("pieces that came whole do not shorten the next pause")
	}
	gone := ask()
	p.w.run(time.Minute)
	p.lateness.brought = 0
	if p.late(4*time.Second, gone); p.stalls != 1 {
		t.Error("a peer of which not a byte came has not stalled")
	}
}
