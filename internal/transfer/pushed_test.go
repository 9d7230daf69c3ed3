package transfer

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAPushedPieceIsSentLikeARequestedOne: in turn, paid for, and reported when it is sent. The other side cannot cancel it.
func TestAPushedPieceIsSentLikeARequestedOne(t *testing.T) {
	sent, lost := 0, 0
	b := newBench(func(c *UploadConfig) {
		c.Pushed = func(ok bool) {
			if ok {
				sent++
			} else {
				lost++
			}
		}
	})
	before := b.p.left
	_ = b.up.Request(request(peer.Foreground, 1))
	id := peer.PushedID(7, 2)
	b.up.Push(id, content[:peer.PieceSize])
	b.up.Cancel(peer.Cancel{IDs: []uint32{id}})
	b.work(10)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{1, id}) || sent != 1 || b.c.served != 1 || before-b.p.left != 2*peer.PieceSize {
		t.Errorf("sent %v, %d pushed, tally %+v, paid %d", got, sent, *b.c, before-b.p.left)
	}
	b.p.left, b.p.wait = 0, 500*time.Millisecond
	b.up.Push(id, content[:peer.PieceSize])
	b.work(10)
	b.now = b.now.Add(maxQueueAge + time.Second)
	b.work(10)
	if lost != 1 || b.c.rejected != 0 || len(b.link.control) > 0 {
		t.Errorf("%d given up, tally %+v, said %v", lost, *b.c, b.link.control)
	}
}

// TestPushedPiecesGoOutUnderTheController, from a host that gives way, and come to the owner of pushes.
func TestPushedPiecesGoOutUnderTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPairOf(t, true)
		var mu sync.Mutex
		got, sent := make([]byte, peer.PieceSize), 0
		left := len(got)
		p.d.Pushed = func(m peer.Data) error {
			mu.Lock()
			defer mu.Unlock()
			left -= copy(got[m.Offset:], m.Payload)
			return nil
		}
		p.up.cfg.Pushed = func(bool) { mu.Lock(); sent++; mu.Unlock() }
		p.up.Push(peer.PushedID(1, 0), content[:peer.PieceSize])
		for {
			pass(10 * time.Millisecond)
			mu.Lock()
			done := left == 0 && sent == 1
			mu.Unlock()
			if done {
				break
			}
		}
		p.stop()
		if !bytes.Equal(got, content[:peer.PieceSize]) || len(p.orders) > 0 {
			t.Error("other bytes than were pushed")
		}
	})
}

// TestNothingIsPushedBesideTheCap, which the controller keeps: the peer does not speak of acks.
func TestNothingIsPushedBesideTheCap(t *testing.T) {
	lost := 0
	b := newBench(func(c *UploadConfig) {
		c.Pushed = func(sent bool) {
			if !sent {
				lost++
			}
		}
	})
	b.u.Background = background.NewSender(ledbat.Config{}, b.u.now)
	for i, kbps := range []int64{1000, 0} {
		b.u.Background.Cap(kbps)
		b.up.Push(peer.PushedID(1, i), content[:peer.PieceSize])
		b.work(10)
		if sent := len(b.link.sentIDs()); lost != 1 || sent != i {
			t.Errorf("under a cap of %d kbit/s %d pieces were sent, and %d given up", kbps, sent, lost)
		}
	}
}
