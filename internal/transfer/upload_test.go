package transfer

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape is a link that keeps what is sent; room bounds the data messages that it takes (-1: all).
type tape struct {
	mu      sync.Mutex
	control []peer.Message
	data    []peer.Data
	room    int
	ended   peer.CloseReason
	bye     peer.Message
}

func (l *tape) SendControl(b []byte) {
	m, err := peer.Decode(peer.Control, bytes.Clone(b))
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control = append(l.control, m)
}

func (l *tape) SendData(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.room == 0 {
		return false
	}
	l.room--
	m, err := peer.DecodeData(bytes.Clone(b), l.MaxMessage())
	if err != nil {
		panic(err)
	}
	l.data = append(l.data, m)
	return true
}

func (l *tape) MaxMessage() int              { return 16384 }
func (l *tape) Path() Path                   { return Direct }
func (l *tape) AddCandidate(Candidate) error { return nil }
func (l *tape) Done() <-chan struct{}        { return nil }
func (l *tape) Close(r peer.CloseReason, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == "" {
		l.ended = r
		l.bye, _ = peer.Decode(peer.Control, b)
	}
}

func (l *tape) sentIDs() []uint32 {
	var out []uint32
	for _, d := range l.data {
		if len(out) == 0 || out[len(out)-1] != d.Request {
			out = append(out, d.Request)
		}
	}
	return out
}

type bytesOf struct{ segment []byte }

func (b bytesOf) Piece(_ segment.ID, i int) ([]byte, Refusal) {
	from := i * peer.PieceSize
	if from >= len(b.segment) {
		return nil, Refuse(peer.RejectOutOfRange)
	}
	return b.segment[from:min(from+peer.PieceSize, len(b.segment))], Served
}

type purse struct {
	left int
	wait time.Duration
}

func (p *purse) Take(n int) (time.Duration, bool) {
	if p.left < n {
		return p.wait, false
	}
	p.left -= n
	return 0, true
}

type tally struct{ sent, behind, served, promoted, rejected, canceled int }

func (c *tally) Sent(lane peer.Lane, n int) {
	if c.sent += n; lane == peer.Background {
		c.behind += n
	}
}
func (c *tally) Promoted(n int)                      { c.promoted += n }
func (c *tally) Served()                             { c.served++ }
func (c *tally) Rejected(_ peer.RejectReason, n int) { c.rejected += n }
func (c *tally) Canceled(n int)                      { c.canceled += n }

var content = bytes.Repeat([]byte("leeway! "), 5*peer.PieceSize/8)

type bench struct {
	u    *Uploader
	now  time.Time
	link *tape
	up   *Upload
	c    *tally
	p    *purse
}

func newBench(change func(*UploadConfig)) *bench {
	b := &bench{now: time.Unix(1000, 0), link: &tape{room: -1}, c: &tally{}, p: &purse{left: 1 << 30}}
	b.u = NewUploader(func() time.Time { return b.now })
	b.up = b.add(b.link, change)
	return b
}

func (b *bench) add(l *tape, change func(*UploadConfig)) *Upload {
	cfg := UploadConfig{
		Link: l, Send: func(m peer.Message) { out, _ := peer.Append(nil, m); l.SendControl(out) },
		Pieces: bytesOf{content}, Budget: b.p, Observer: b.c, MaxRequests: 8, Background: true,
	}
	if change != nil {
		change(&cfg)
	}
	return b.u.Add(cfg)
}

// work does what Run does until nothing can be done, at most n steps.
func (b *bench) work(n int) {
	for range n {
		up, _ := b.u.pick()
		if up == nil {
			return
		}
		b.u.step(up)
	}
}

func request(lane peer.Lane, list ...uint32) peer.Request {
	m := peer.Request{Lane: lane}
	for _, id := range list {
		m.Requests = append(m.Requests, peer.PieceRequest{ID: id, Piece: uint16(id % 5)})
	}
	return m
}

func TestLinksTakeTurns(t *testing.T) {
	b := newBench(nil)
	other := &tape{room: -1}
	up := b.add(other, nil)
	_ = b.up.Request(request(peer.Foreground, 1, 2, 3, 4))
	_ = up.Request(request(peer.Foreground, 1, 2, 3, 4))
	b.work(8)
	if n, m := len(b.link.data), len(other.data); n != m {
		t.Errorf("%d and %d messages after eight turns", n, m)
	}
}

// cutter is a tape whose path has messages of its own length.
type cutter struct {
	*tape
	message int
}

func (l *cutter) Message() int { return l.message }

func TestPiecesAreCutToSuitThePath(t *testing.T) {
	b := newBench(nil)
	link := &cutter{&tape{room: -1}, 1156}
	up := b.add(link.tape, func(cfg *UploadConfig) { cfg.Link = link })
	_ = up.Request(request(peer.Foreground, 1))
	b.work(1)
	link.message = 16384 // a piece that is begun goes on as it was cut
	b.work(100)
	_ = up.Request(request(peer.Foreground, 2))
	b.work(100)
	whole := map[uint32]int{}
	for _, m := range link.data {
		if whole[m.Request] += len(m.Payload); m.Request == 1 && len(m.Payload)+peer.DataHeader > 1156 {
			t.Errorf("a message of %d bytes on a path of 1156", len(m.Payload)+peer.DataHeader)
		}
	}
	if len(link.data) != 15+2 || whole[1] != peer.PieceSize || whole[2] != peer.PieceSize {
		t.Errorf("%d messages, bytes of each request %v", len(link.data), whole)
	}
}

func TestFullLinkWaitsForDrainAndHoldsUpNoOther(t *testing.T) {
	b := newBench(nil)
	other := &tape{room: -1}
	up := b.add(other, nil)
	b.link.room = 1
	_ = b.up.Request(request(peer.Foreground, 1))
	_ = up.Request(request(peer.Foreground, 1))
	b.work(1000)
	if len(b.link.data) != 1 || len(other.data) != 2 {
		t.Fatalf("%d and %d messages", len(b.link.data), len(other.data))
	}
	b.link.room = -1
	b.work(1000)
	if len(b.link.data) != 1 {
		t.Error("a blocked link was tried again without a drain")
	}
	b.up.Drain()
	b.work(1000)
	if b.c.served != 2 {
		t.Errorf("tally %+v", *b.c)
	}
}

func TestCancelStopsQueuedAndRunningRequests(t *testing.T) {
	b := newBench(nil)
	b.link.room = 1
	_ = b.up.Request(request(peer.Foreground, 1, 2, 3))
	b.work(1000)
	b.up.Cancel(peer.Cancel{IDs: []uint32{1, 3, 77}})
	b.link.room = -1
	b.up.Drain()
	b.work(1000)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{1, 2}) || len(b.link.data) != 3 || b.c.canceled != 2 {
		t.Errorf("served %v in %d messages, tally %+v", got, len(b.link.data), *b.c)
	}
}

func TestRequestsAreRejected(t *testing.T) {
	b := newBench(nil)
	_ = b.up.Request(request(peer.Background, 50))
	_ = b.up.Request(request(peer.Foreground, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	if err := b.up.Request(request(peer.Foreground, 3)); err == nil {
		t.Error("an ID that is outstanding was taken twice")
	}
	b.p.left = peer.PieceSize // for one piece; the rest is refused
	b.work(1000)
	want := []peer.Message{
		peer.Reject{Reason: peer.RejectLaneOff, IDs: []uint32{50}}, peer.Reject{Reason: peer.RejectBusy, IDs: []uint32{9, 10}},
		peer.Reject{Reason: peer.RejectBudget, IDs: []uint32{2}},
	}
	for i, w := range want {
		g, ok := b.link.control[i].(peer.Reject)
		if !ok || g.Reason != w.(peer.Reject).Reason || !slices.Equal(g.IDs, w.(peer.Reject).IDs) {
			t.Errorf("control message %d is %+v, want %+v", i, b.link.control[i], w)
		}
	}
	_ = b.up.Request(peer.Request{Requests: []peer.PieceRequest{{ID: 60, Piece: 5}}})
	b.work(1000)
	last := b.link.control[len(b.link.control)-1].(peer.Reject)
	if last.Reason != peer.RejectOutOfRange {
		t.Errorf("piece out of range: %+v", last)
	}
	b.up.Remove()
	if up, _ := b.u.pick(); up != nil {
		t.Error("a removed link is served")
	}
}

func TestBudgetDelaysForAWhileThenRejects(t *testing.T) {
	b := newBench(nil)
	b.p.left, b.p.wait = 0, 500*time.Millisecond
	_ = b.up.Request(request(peer.Foreground, 1))
	b.work(10)
	if up, wait := b.u.pick(); up != nil || wait != 500*time.Millisecond {
		t.Fatalf("waits %s", wait)
	}
	b.now = b.now.Add(maxQueueAge + time.Second)
	b.work(10)
	if b.c.rejected != 1 {
		t.Errorf("tally %+v", *b.c)
	}
}

// TestWhatIsCanceledWhileItWaitsTakesNoBudget: what there is then is for the next request.
func TestWhatIsCanceledWhileItWaitsTakesNoBudget(t *testing.T) {
	b := newBench(nil)
	b.p.left, b.p.wait = 0, 500*time.Millisecond
	_ = b.up.Request(request(peer.Foreground, 1, 2))
	b.work(10)
	b.up.Cancel(peer.Cancel{IDs: []uint32{1}})
	b.p.left, b.now = peer.PieceSize, b.now.Add(time.Second)
	b.work(10)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{2}) || b.c.served != 1 || b.p.left != 0 {
		t.Errorf("served %v, %d bytes of the budget are left, tally %+v", got, b.p.left, *b.c)
	}
}

func TestWithdrawnSegmentsAreRejected(t *testing.T) {
	b := newBench(nil)
	_ = b.up.Request(peer.Request{Segment: segment.ID{1}, Requests: []peer.PieceRequest{{ID: 1}}})
	_ = b.up.Request(peer.Request{Segment: segment.ID{2}, Requests: []peer.PieceRequest{{ID: 2}}})
	b.up.Withdraw(segment.ID{1})
	b.work(100)
	if got := b.link.sentIDs(); !slices.Equal(got, []uint32{2}) || b.c.rejected != 1 {
		t.Errorf("served %v, tally %+v", got, *b.c)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	b := newBench(nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { b.u.Run(ctx); close(done) }()
	_ = b.up.Request(request(peer.Foreground, 1))
	cancel()
	<-done
}

func TestAllLinksTogetherAreBounded(t *testing.T) {
	b := newBench(nil)
	b.u.MostQueued, b.u.Share = 6, 2
	other := &tape{room: -1}
	up := b.add(other, nil)
	_ = b.up.Request(request(peer.Foreground, 1, 2, 3, 4, 5))
	_ = up.Request(request(peer.Foreground, 1, 2, 3))
	if got := other.control[len(other.control)-1].(peer.Reject); got.Reason != peer.RejectBusy || !slices.Equal(got.IDs, []uint32{3}) {
		t.Errorf("beyond six in all: %+v", got)
	}
	if up.Len() != 2 || b.up.Len() != 5 {
		t.Errorf("%d and %d are queued: a share stays", up.Len(), b.up.Len())
	}
}
