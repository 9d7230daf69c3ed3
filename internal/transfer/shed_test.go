package transfer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// busy are the IDs that were rejected as busy over the link, sorted.
func (l *tape) busy() (out []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.control {
		if m, is := m.(peer.Reject); is && m.Reason == peer.RejectBusy {
			out = append(out, m.IDs...)
		}
	}
	slices.Sort(out)
	return out
}

// TestABusyViewerSaysSo has a line that carries one message and then nothing: what waits is rejected before a stall time is over, a piece
// that was begun, too, but not what came later.
func TestABusyViewerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPairOf(t, true)
		defer p.stop()
		ask := func(up *Upload, ids ...uint32) {
			if err := up.Request(request(peer.Foreground, ids...)); err != nil {
				t.Error(err)
			}
		}
		other := newPipe()
		up := p.add(other.tape, func(c *UploadConfig) { c.Link, c.Observer = other, &p.counts })
		up.Acknowledged(other)
		p.u.Background.Cap(1) // kbit/s: a message goes out, and no second one
		ask(p.up, 1, 2, 3)
		synctest.Wait()
		ask(up, 4)
		pass(mostWait / 2)
		ask(p.up, 5)
		pass(mostWait/2 + time.Millisecond)
		if begun, waits := p.link.busy(), other.busy(); !slices.Equal(waits, []uint32{4}) || !slices.Equal(begun, []uint32{1, 2, 3}) {
			t.Errorf("rejected are %v, and %v of the link of which nothing went out", begun, waits)
		}
		pass(mostWait)
		if got := p.link.busy(); !slices.Equal(got, []uint32{1, 2, 3, 5}) || p.up.Len() != 0 {
			t.Errorf("rejected are %v, %d are left", got, p.up.Len())
		}
		up.Remove()
	})
}

// TestOnlyWhatIsPacedIsRejectedAsBusy: a seed holds what its budget does not allow yet, and what is pushed was not asked for.
func TestOnlyWhatIsPacedIsRejectedAsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.tape(func() { p.link.room = 0 })
		p.d.Request(p.target, peer.Foreground, "near", 0, 1)
		pass(3 * mostWait)
		if got := p.link.busy(); got != nil {
			t.Errorf("a seed rejected %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPairOf(t, true)
		defer p.stop()
		p.u.Background.Cap(1)
		for n := range 3 {
			p.up.Push(peer.PushedID(0, n), content[:peer.PieceSize])
		}
		pass(3 * mostWait)
		if got := p.link.busy(); got != nil || p.up.Len() != 3 {
			t.Errorf("rejected are %v, %d are left", got, p.up.Len())
		}
	})
}
