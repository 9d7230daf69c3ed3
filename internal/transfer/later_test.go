package transfer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// slow has pieces only after they were asked for once; now, if set, is called before it says so.
type slow struct {
	asked, there bool
	now          func()
}

func (s *slow) Piece(id segment.ID, i int) ([]byte, Refusal) {
	if s.there {
		return bytesOf{content}.Piece(id, i)
	}
	s.asked = true
	if s.now != nil {
		s.now()
	}
	return nil, Later
}

// TestALinkWhoseBytesComeLaterHoldsUpNoOther: others are served meanwhile, and nothing goes on by itself.
func TestALinkWhoseBytesComeLaterHoldsUpNoOther(t *testing.T) {
	late := &slow{}
	b := newBench(func(c *UploadConfig) { c.Pieces = late })
	other := &tape{room: -1}
	up := b.add(other, nil)
	_ = b.up.Request(request(peer.Foreground, 1, 2))
	_ = up.Request(request(peer.Foreground, 1, 2, 3, 4))
	b.work(100)
	if !late.asked || len(b.link.data) != 0 || !slices.Equal(other.sentIDs(), []uint32{1, 2, 3, 4}) {
		t.Fatalf("%d messages of what is not there, to the other %d", len(b.link.data), other.sentIDs())
	}
	if up, _ := b.u.pick(); up != nil {
		t.Error("the loop goes round for what is not there")
	}
	late.there = true
	b.up.Loaded()
	b.work(100)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("served %d", got)
	}
}

// TestBytesThatComeWhileTheyAreAskedForAreServed: Loaded may be called before Later has been noted.
func TestBytesThatComeWhileTheyAreAskedForAreServed(t *testing.T) {
	late := &slow{}
	b := newBench(func(c *UploadConfig) { c.Pieces = late })
	late.now = func() {
		late.there = true
		b.up.Loaded()
	}
	_ = b.up.Request(request(peer.Foreground, 1))
	b.work(100)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{1}) {
		t.Errorf("served %d", got)
	}
}

// TestWhatIsCanceledWhileItsBytesComeIsNotSent.
func TestWhatIsCanceledWhileItsBytesComeIsNotSent(t *testing.T) {
	late := &slow{}
	b := newBench(func(c *UploadConfig) { c.Pieces = late })
	_ = b.up.Request(request(peer.Foreground, 1, 2))
	b.work(100)
	b.up.Cancel(peer.Cancel{IDs: []uint32{1}})
	late.there = true
	b.up.Loaded()
	b.work(100)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{2}) || b.c.canceled != 1 {
		t.Errorf("served %d, %d canceled", got, b.c.canceled)
	}
}

// TestBytesThatComeLaterGoOutInTheBackground has the foreground of another link served meanwhile.
func TestBytesThatComeLaterGoOutInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		late := &slow{}
		p.up.u.mu.Lock()
		p.up.cfg.Pieces = late
		p.up.u.mu.Unlock()
		p.d.Request(p.target, peer.Background, "background", 0, 1)
		pass(time.Second)
		if p.good() != 0 || !late.asked {
			t.Fatalf("%d pieces of what is not there", p.good())
		}
		late.there = true
		p.up.Loaded()
		pass(10 * time.Second)
		if p.good() != 2 {
			t.Errorf("%d pieces came", p.good())
		}
	})
}
