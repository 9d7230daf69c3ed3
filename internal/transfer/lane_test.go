package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// pipe is a link whose messages arrive at the other end, in order, after a while. In a synctest bubble.
type pipe struct {
	*tape
	delay   time.Duration
	deliver func([]byte) // data messages of both lanes
	acked   func([]byte)
	sending func([]byte)
	lost    func() bool // background messages that come 300 ms late, as what SCTP sends again

	mu    sync.Mutex
	types []peer.Type // of the data messages that were sent
}

func (p *pipe) after(b []byte, f func([]byte), late time.Duration) {
	b = bytes.Clone(b)
	time.AfterFunc(p.delay+late, func() { f(b) })
}

func (p *pipe) note(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.types = append(p.types, peer.Type(b[0]))
	if p.sending != nil {
		p.sending(b)
	}
}

func (p *pipe) kinds() []peer.Type {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.types)
}

func (p *pipe) SendData(b []byte) bool {
	if !p.tape.SendData(b) {
		return false
	}
	p.note(b)
	p.after(b, p.deliver, 0)
	return true
}

func (p *pipe) SendBackground(b []byte) bool {
	p.note(b)
	late := time.Duration(0)
	if p.lost != nil && p.lost() {
		late = 300 * time.Millisecond
	}
	p.after(b, p.deliver, late)
	return true
}

func (p *pipe) SendAck(b []byte)     { p.after(b, p.acked, 0) }
func (p *pipe) Room(int) (int, bool) { return 0, true }
func (p *pipe) Payload() int         { return 1156 }
func (p *pipe) whole() (n int)       { return len(p.kinds()) }
func (p *pipe) count(t peer.Type) int {
	return len(p.kinds()) - len(slices.DeleteFunc(p.kinds(), func(k peer.Type) bool { return k == t }))
}

// counted is a tally that two goroutines keep.
type counted struct {
	mu sync.Mutex
	t  tally
}

func (c *counted) Sent(l peer.Lane, n int) { c.mu.Lock(); c.t.Sent(l, n); c.mu.Unlock() }
func (c *counted) Promoted(n int)          { c.mu.Lock(); c.t.Promoted(n); c.mu.Unlock() }
func (c *counted) Served()                 { c.mu.Lock(); c.t.Served(); c.mu.Unlock() }
func (c *counted) Rejected(r peer.RejectReason, n int) {
	c.mu.Lock()
	c.t.Rejected(r, n)
	c.mu.Unlock()
}
func (c *counted) Canceled(n int) { c.mu.Lock(); c.t.Canceled(n); c.mu.Unlock() }

func (c *counted) read() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// pair is a download that asks an upload over a pipe.
type pair struct {
	*bench
	counts    counted
	pipe      *pipe
	d         *Download
	requester *background.Requester
	target    *Target
	whole     map[int]bool // pieces that came, and whether they match
	orders    []Order
	mu        sync.Mutex
	stop      func()
}

func (p *pair) Arrived(o Order, _ []byte, matches bool) {
	p.mu.Lock()
	p.whole[o.Piece] = matches
	p.orders = append(p.orders, o)
	p.mu.Unlock()
	p.d.Remove(o.ID)
}
func (p *pair) Wasted(int) {}

func (p *pair) good() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ok := range p.whole {
		if ok {
			n++
		}
	}
	return n
}

// newPair runs in a bubble; stop ends it.
func newPair(t *testing.T) *pair { return newPairOf(t, false) }

func newPairOf(t *testing.T, paced bool) *pair {
	p := &pair{pipe: &pipe{tape: &tape{room: -1}, delay: 20 * time.Millisecond}, whole: map[int]bool{}}
	p.bench = &bench{link: p.pipe.tape, c: &tally{}, p: &purse{left: 1 << 30}, u: NewUploader(time.Now)}
	p.u.Background, p.u.Paced = background.NewSender(ledbat.Config{}, time.Now), paced
	p.up = p.add(p.pipe.tape, func(c *UploadConfig) { c.Link, c.Observer, c.MaxRequests = p.pipe, &p.counts, 256 })
	p.up.Acknowledged(p.pipe)
	p.requester = background.NewRequester(ledbat.Config{}, time.Now)
	p.d = NewDownload(func(m peer.Message) {
		switch m := m.(type) {
		case peer.Request:
			if err := p.up.Request(m); err != nil {
				t.Error(err)
			}
		case peer.Promote:
			p.up.Promote(m)
		case peer.Cancel:
			p.up.Cancel(m)
		}
	}, time.Now, p)
	p.d.Background(p.pipe, p.requester, nil)
	p.target = &Target{Length: int64(len(content))}
	for i := range len(content) / peer.PieceSize {
		p.target.Digests = append(p.target.Digests, sha256.Sum256(content[i*peer.PieceSize:(i+1)*peer.PieceSize]))
	}
	p.pipe.deliver = func(b []byte) {
		err := error(nil)
		if peer.Type(b[0]) == peer.TypeBackgroundData {
			err = p.d.BackgroundData(b)
		} else if m, bad := peer.DecodeData(b, p.pipe.MaxMessage()); bad == nil {
			err = p.d.Data(m)
		}
		if err != nil {
			t.Error(err)
		}
	}
	p.pipe.acked = func(b []byte) {
		if err := p.up.Ack(b); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); p.u.Run(ctx) }()
	p.stop = func() {
		p.d.Close()
		p.up.Remove()
		cancel()
		<-ran
	}
	return p
}

// pass lets the bubble's time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// begun waits until something went out.
func (p *pair) begun() {
	for p.counts.read().sent == 0 {
		pass(time.Millisecond)
	}
}

func TestPiecesComeInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.stop()
		n := 0
		p.pipe.lost = func() bool { n++; return n%7 == 0 }
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
			t.Error("who reads nothing holds up the background for ever")
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
		var kinds []uint32 // request IDs of both links, as their messages went out; one goroutine sends
		note := func(b []byte) { kinds = append(kinds, binary.BigEndian.Uint32(b[1:])) }
		other := &pipe{tape: &tape{room: -1}, delay: 20 * time.Millisecond}
		up := p.add(other.tape, func(c *UploadConfig) { c.Link, c.Observer = other, &p.counts })
		up.Acknowledged(other)
		r := background.NewReceiver(other, nil, time.Now)
		defer r.Close()
		other.deliver = func(b []byte) { _, _, _ = r.Data(b) }
		other.sending, p.pipe.sending = note, note
		other.acked = func(b []byte) { _ = up.Ack(b) }
		_ = up.Request(peer.Request{Lane: peer.Background, Requests: []peer.PieceRequest{{ID: 1000, Piece: 1}, {ID: 1001, Piece: 2}, {ID: 1002, Piece: 3}, {ID: 1003, Piece: 4}}})
		p.begun()
		before := len(kinds)
		p.d.Request(p.target, peer.Foreground, "near", 0, 1, 2, 3, 4)
		pass(20 * time.Second)
		after := kinds[before:]
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
		p.pipe.delay = 100 * time.Millisecond
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
			t.Error("a link that was sent nothing has state in the law")
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
	for _, c := range []struct{ n, want int }{{16364, 8192}, {16384, 16384}, {8000, 8000}, {1136, 1136}, {14564, 14564}, {14565, 8192}} {
		b.up.back = &backlog{ready: []queued{{data: content[:peer.PieceSize], lane: peer.Foreground}}}
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
