package transfer

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestPiecesComeInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.pipe.Late = func(n int) bool { return n%7 == 0 }
		p.d.Request(p.target, peer.Background, "background", 0, 1, 2, 3, 4)
		if got := p.d.Queued(); got != 0 {
			t.Errorf("%d bytes of the background count as foreground", got)
		}
		if s := p.requester.Stats(); s.Flight != int64(len(content)) {
			t.Errorf("%d bytes are asked for, of %d", s.Flight, len(content))
		}
		pass(20 * time.Second)
		if p.good() != 5 || p.pipe.count(peer.TypeData) != 0 {
			t.Errorf("%d pieces came, by %d foreground messages", p.good(), p.pipe.count(peer.TypeData))
		}
		if p.counts.read().served != 5 || p.counts.read().sent != len(content) {
			t.Errorf("tally %+v", p.counts.read())
		}
		if s := p.requester.Stats(); s.Flight != 0 {
			t.Errorf("%d bytes are still owed", s.Flight)
		}
		if p.d.Rate() != 0 || p.d.LastBehind().IsZero() {
			t.Errorf("rate %d, last %s", p.d.Rate(), p.d.LastBehind())
		}
	})
}

// TestForegroundStopsTheBackgroundAtOnce asks in the foreground while the background sends: until all of that is handed
// over, no background message follows.
func TestForegroundStopsTheBackgroundAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.d.Request(p.target, peer.Background, "background", 1, 2, 3, 4)
		p.begun()
		if p.good() == 4 || p.pipe.count(peer.TypeBackgroundData) == 0 {
			t.Fatalf("%d of 4 pieces, %d messages: nothing to stop", p.good(), p.pipe.count(peer.TypeBackgroundData))
		}
		p.tape(func() { p.link.room = 1 })
		before := p.pipe.whole()
		p.d.Request(p.target, peer.Foreground, "near", 0)
		pass(100 * time.Millisecond)
		if got := p.pipe.kinds()[before:]; !slices.Equal(got, []peer.Type{peer.TypeData}) {
			t.Errorf("while foreground waits for room, these go out: %x", got)
		}
		p.tape(func() { p.link.room = -1 })
		p.up.Drain()
		pass(10 * time.Second)
		got := p.pipe.kinds()[before:]
		if last := slices.Index(got, peer.TypeBackgroundData); last >= 0 && slices.Contains(got[last:], peer.TypeData) {
			t.Errorf("background between foreground: %x", got)
		}
		if p.good() != 5 {
			t.Errorf("%d pieces", p.good())
		}
	})
}

func (p *pair) tape(f func()) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	f()
}

// TestALinkThatReadsNothingHoldsUpTheBackgroundForAMoment has two links: one asks in the foreground and takes nothing.
func TestALinkThatReadsNothingHoldsUpTheBackgroundForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		full := &tape{room: 0}
		other := p.add(full, nil)
		_ = other.Request(request(peer.Foreground, 1))
		synctest.Wait()
		p.d.Request(p.target, peer.Background, "background", 0)
		pass(mostBlocked - time.Millisecond)
		if n := p.pipe.whole(); n != 0 {
			t.Errorf("%d messages went out in the background of waiting foreground", n)
		}
		pass(5 * time.Second)
		if p.good() != 1 {
			t.Error("a peer that reads nothing delays the background forever")
		}
		other.Remove()
	})
}

// TestPromotionGoesOnWhereTheBackgroundWas asks for pieces in the background and promotes them in the midst of it.
func TestPromotionGoesOnWhereTheBackgroundWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.d.Request(p.target, peer.Background, "background", 0, 1, 2)
		for p.counts.read().sent == 0 || p.counts.read().sent%peer.PieceSize == 0 { // until a part of a piece is out
			pass(5 * time.Millisecond)
		}
		behind := p.pipe.count(peer.TypeBackgroundData)
		promoted := 0
		for n := range 3 {
			promoted += p.d.Promote(p.target.Segment, n)
		}
		pass(time.Second)
		if p.good() != 3 || promoted == 0 {
			t.Errorf("%d pieces came, %d were promoted", p.good(), promoted)
		}
		if n := p.pipe.count(peer.TypeBackgroundData); n != behind {
			t.Errorf("%d background messages, %d before the promotion", n, behind)
		}
		if c := p.counts.read(); c.sent != 3*peer.PieceSize || c.served != 3 || c.promoted != promoted || c.behind == 0 || c.behind >= c.sent {
			t.Errorf("bytes went out twice, or not at all: %+v", p.counts.read())
		}
		if s := p.requester.Stats(); s.Flight != 0 || p.d.Queued() != 0 {
			t.Errorf("%d and %d bytes are still owed", s.Flight, p.d.Queued())
		}
		if p.p.left != 1<<30-3*peer.PieceSize {
			t.Errorf("%d bytes were paid for", 1<<30-p.p.left)
		}
	})
}

// TestPacedForegroundGoesAheadUnderTheLaw asks in both lanes of a host that paces both.
func TestPacedForegroundGoesAheadUnderTheLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPairOf(t, true)
		defer p.stop()
		p.d.Request(p.target, peer.Background, "background", 1, 2, 3, 4)
		p.begun()
		p.d.Promote(p.target.Segment, 4)
		p.d.Request(p.target, peer.Foreground, "near", 0)
		if s := p.requester.Stats(); s.Flight == 0 || s.Flight > 3*peer.PieceSize {
			t.Errorf("%d bytes of the background are owed, of three pieces", s.Flight)
		}
		pass(20 * time.Second)
		if p.good() != 5 || p.pipe.count(peer.TypeData) != 0 || p.counts.read().sent != len(content) {
			t.Errorf("%d pieces came, by %d messages that were not paced; tally %+v", p.good(), p.pipe.count(peer.TypeData), p.counts.read())
		}
		var order []int
		for _, o := range p.orders {
			order = append(order, o.Piece)
		}
		if slices.Index(order, 4) > 1 || slices.Index(order, 0) > 2 {
			t.Errorf("pieces 4 (promoted) and 0 (foreground) came too late: %v", order)
		}
		if s := p.requester.Stats(); s.Flight != 0 || p.d.Queued() != 0 {
			t.Errorf("%d and %d bytes are still owed", s.Flight, p.d.Queued())
		}
		if p.d.Rate() == 0 {
			t.Error("foreground gave no sample of the rate")
		}
	})
}

// TestBackgroundOfOneLinkWaitsForForegroundOfAnother has two links that are both paced.
func TestBackgroundOfOneLinkWaitsForForegroundOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPairOf(t, true)
		defer p.stop()
		var mu sync.Mutex
		var list []uint32 // guarded by mu: request IDs of both links, as their messages went out
		note := func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, binary.BigEndian.Uint32(b[1:]))
		}
		sent := func() []uint32 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(list)
		}
		other := newPipe()
		up := p.add(other.tape, func(c *UploadConfig) { c.Link, c.Observer = other, &p.counts })
		up.Acknowledged(other)
		r := background.NewReceiver(other, nil, time.Now)
		defer r.Close()
		other.Deliver = func(b []byte) { _, _, _ = r.Data(b) }
		other.sees(note)
		p.pipe.sees(note)
		other.Acked = func(b []byte) { _ = up.Ack(b) }
		_ = up.Request(peer.Request{Lane: peer.Background, Requests: []peer.PieceRequest{{ID: 1000, Piece: 1}, {ID: 1001, Piece: 2}, {ID: 1002, Piece: 3}, {ID: 1003, Piece: 4}}})
		p.begun()
		before := len(sent())
		p.d.Request(p.target, peer.Foreground, "near", 0, 1, 2, 3, 4)
		pass(20 * time.Second)
		after := sent()[before:]
		if first := slices.IndexFunc(after, func(id uint32) bool { return id >= 1000 }); first < 0 || slices.ContainsFunc(after[first:], func(id uint32) bool { return id < 1000 }) {
			t.Errorf("requests in the order of their messages: %v", after)
		}
		if p.good() != 5 || up.Len() != 0 {
			t.Errorf("%d of 5 pieces, %d left", p.good(), up.Len())
		}
		up.Remove()
	})
}

// TestAnotherPathIsMeasuredAnew has the path become longer: without a word that is a queue, after one it is a base.
func TestAnotherPathIsMeasuredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.d.Request(p.target, peer.Background, "background", 0, 1)
		pass(2 * time.Second)
		if base := p.u.Background.Stats().Base; base < 40_000 || base > 45_000 {
			t.Fatalf("a base of %d µs on a path of 40 ms", base)
		}
		p.up.Moved()
		p.pipe.Delay = 200 * time.Millisecond
		p.d.Request(p.target, peer.Background, "background", 2, 3)
		pass(5 * time.Second)
		if s := p.u.Background.Stats(); s.Base < 200_000 || s.Queuing > 10_000 {
			t.Errorf("after the path became longer: %+v", s)
		}
	})
}

func TestCanceledBackgroundIsOwedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.d.Request(p.target, peer.Background, "background", 0, 1, 2, 3, 4)
		p.begun()
		gone := p.d.Cancel(func(o Order) bool { return o.Lane == peer.Background })
		sent := p.counts.read().sent
		pass(5 * time.Second)
		if len(gone) == 0 || p.counts.read().sent != sent || p.up.Len() != 0 {
			t.Errorf("%d canceled, %d bytes before and %d after, %d are queued", len(gone), sent, p.counts.read().sent, p.up.Len())
		}
		if s := p.requester.Stats(); s.Flight != 0 {
			t.Errorf("%d bytes are still owed", s.Flight)
		}
	})
}

func TestBackgroundIsRejectedWhereItIsOffOrCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		deaf := &tape{room: -1} // its hello did not say that it acks
		_ = p.add(deaf, nil).Request(request(peer.Background, 1))
		if m, ok := deaf.control[0].(peer.Reject); !ok || m.Reason != peer.RejectLaneOff {
			t.Errorf("without acks: %+v", deaf.control)
		}
		_ = p.up.Request(peer.Request{Lane: peer.Background, Requests: []peer.PieceRequest{{ID: 60, Piece: 5}}})
		synctest.Wait()
		p.p.left = 0
		_ = p.up.Request(peer.Request{Lane: peer.Background, Requests: []peer.PieceRequest{{ID: 61}}})
		synctest.Wait()
		p.tape(func() {
			for i, want := range []peer.RejectReason{peer.RejectOutOfRange, peer.RejectBudget} {
				if m, ok := p.link.control[i].(peer.Reject); !ok || m.Reason != want {
					t.Errorf("reject %d is %+v, want reason %d", i, p.link.control[i], want)
				}
			}
		})
		if p.up.lane() != nil {
			t.Error("a link that was sent nothing has state in the controller")
		}
	})
}

func TestWithdrawnBackgroundIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.d.Request(p.target, peer.Background, "background", 0, 1, 2, 3, 4)
		p.begun()
		waiting := p.up.Len()
		p.up.Withdraw(p.target.Segment)
		if p.up.Len() != 0 || p.counts.read().rejected != waiting || waiting == 0 {
			t.Errorf("%d waited, %d were rejected, %d are left", waiting, p.counts.read().rejected, p.up.Len())
		}
	})
}

func TestNoMessageIsForAFewBytes(t *testing.T) {
	b := newBench(nil)
	for _, c := range []struct {
		n, want int
		paced   bool
	}{
		{16164, 7*1156 - background.Header, false}, {16164, 8192, true}, {16384, 16384, false}, {8000, 8000, false}, {1136, 1136, false},
		{14564, 14564, false}, {14565, 8192, true},
	} {
		b.u.Paced = c.paced
		b.up.back, b.up.ready = &backlog{}, []queued{{data: content[:peer.PieceSize], lane: peer.Foreground}}
		part, ok := source{b.up}.Next(c.n)
		if rest, again := (source{b.up}).Next(c.n); !ok || len(part.Payload) != c.want || again != (c.want < peer.PieceSize) || again && int(rest.Offset) != c.want {
			t.Errorf("of %d bytes at most: %d, then from %d", c.n, len(part.Payload), rest.Offset)
		}
	}
}

func TestWhatIsNoAckIsRefused(t *testing.T) {
	b := newBench(nil)
	for _, m := range [][]byte{nil, {0x30}, make([]byte, ledbat.AckLen)} {
		if b.up.Ack(m) == nil {
			t.Errorf("%x was taken for an ack", m)
		}
	}
	if err := b.up.Ack(ledbat.Ack{Highest: 7}.Append(nil)); err != nil {
		t.Errorf("an ack where nothing was sent is wrong, and changes nothing: %v", err)
	}
}

// TestARequestComesWhileTheControllerSends: with a cap, a request over a link without acks is refused, also while a message goes out,
// which the controller's sender hands over under its lock.
func TestARequestComesWhileTheControllerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		p.u.Background.Cap(10_000)
		var refused counted
		plain := p.add(&tape{room: -1}, func(c *UploadConfig) { c.Observer, c.MaxRequests = &refused, 256 })
		asks := sync.OnceFunc(func() {
			if err := plain.Request(peer.Request{Segment: p.target.Segment, Lane: peer.Foreground, Requests: []peer.PieceRequest{{ID: 1}}}); err != nil {
				t.Error(err)
			}
		})
		p.pipe.sees(func([]byte) { asks() })
		p.d.Request(p.target, peer.Background, "background", 0, 1, 2, 3, 4)
		pass(20 * time.Second)
		if got := refused.read().rejected; p.good() != 5 || got != 1 {
			t.Errorf("%d of 5 pieces came, %d requests were refused", p.good(), got)
		}
	})
}
