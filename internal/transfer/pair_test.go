package transfer

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// pipe is a simulated link whose messages of both lanes arrive at the other end, in order, after a while. In a synctest bubble.
type pipe struct {
	*tape
	testkit.Link
	types []peer.Type // guarded by Mu: of the data messages that were sent
}

func newPipe() *pipe {
	p := &pipe{tape: &tape{room: -1}, Link: testkit.Link{Line: &testkit.Line{}, Delay: 40 * time.Millisecond, Again: 300 * time.Millisecond}}
	p.Sending = func(b []byte) { p.types = append(p.types, peer.Type(b[0])) }
	return p
}

// sees has f see each message.
func (p *pipe) sees(f func([]byte)) {
	note := p.Sending
	p.Sending = func(b []byte) { note(b); f(b) }
}

func (p *pipe) SendData(b []byte) bool { return p.tape.SendData(b) && p.SendBackground(b) }
func (p *pipe) MaxMessage() int        { return p.Link.MaxMessage() }

func (p *pipe) kinds() []peer.Type {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Clone(p.types)
}

func (p *pipe) whole() (n int) { return len(p.kinds()) }
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
	p := &pair{pipe: newPipe(), whole: map[int]bool{}}
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
	p.target = &Target{Certificate: &certificate.Certificate{Length: int64(len(content)), Digests: certificate.DigestPieces(content)}}
	p.pipe.Deliver = func(b []byte) {
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
	p.pipe.Acked = func(b []byte) {
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
