package viewer

import (
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// pacing sends what links and the controller of the host let go, over all links.
type pacing struct {
	loop     Loop
	uploader *transfer.Uploader
	// requester bounds what is asked for in the background.
	requester *background.Requester
	posted    atomic.Bool // a call of work is on its way
	timer     func()
	stopped   bool
	sent      int64 // at the last report
	stats     ledbat.Stats
}

func newPacing(loop Loop) *pacing {
	p := &pacing{loop: loop, uploader: transfer.NewUploader(loop.Now), requester: background.NewRequester(ledbat.Config{}, loop.Now)}
	p.uploader.MostQueued, p.uploader.Share = mostQueued, queueShare
	sender := background.NewSender(ledbat.Config{}, loop.Now)
	sender.Awake, p.uploader.Wake = p.soon, p.soon
	p.uploader.Background, p.uploader.Paced = sender, true // a home's uplink carries its own requests, too
	return p
}

// work sends what may go out now.
func (p *pacing) work() {
	if p.stopped {
		return
	}
	if p.timer != nil {
		p.timer()
		p.timer = nil
	}
	if wait := p.uploader.Work(); wait < longestSleep {
		p.timer = p.loop.After(wait, p.work)
	}
}

// soon has work called, from any goroutine.
func (p *pacing) soon() {
	if !p.posted.Swap(true) {
		p.loop.Post(func() {
			p.posted.Store(false)
			p.work()
		})
	}
}

// fetched has the controller hear what it costs to take n bytes of the origin.
func (p *pacing) fetched(n int) { p.uploader.Background.Beside(n / tcpPart) }

// cap bounds what is sent to others, kbit/s; 0: nothing but the controller does.
func (p *pacing) cap(kbps int64) { p.uploader.Background.Cap(kbps) }

// take is how sending stands under the controller; nil if nothing was sent since the last time.
func (p *pacing) take() *signal.Pacing {
	sent, _ := p.uploader.Background.Totals()
	if sent == p.sent {
		return nil
	}
	now, was := p.uploader.Background.Stats(), p.stats
	p.sent, p.stats = sent, now
	return &signal.Pacing{
		Queuing: now.Queuing, Base: now.Base, Target: now.Target, Window: now.Window, Rate: now.PacingRate,
		Yields: now.Yields - was.Yields, Slowdowns: max(0, now.Slowdowns-was.Slowdowns), // a host that starts anew counts anew
	}
}

func (p *pacing) stop() {
	p.stopped = true
	if p.timer != nil {
		p.timer()
	}
}
