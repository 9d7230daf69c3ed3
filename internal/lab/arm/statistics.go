package arm

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

const (
	statisticsEvery = time.Second
	longestDelay    = time.Minute // of a histogram; a longer one counts as that
	digits          = 3           // that a histogram is exact to
)

// counts are of all sessions.
type counts struct {
	sentBytes, receivedBytes, sentChunks, receivedChunks, held, receivedPackets, nacks, lostPackets atomic.Int64
	recorded                                                                                        atomic.Int64
	openedAll, failed, lost, up                                                                     atomic.Int64

	mu                  sync.Mutex
	setup, delay, start *hdrhistogram.Histogram // guarded by mu; of µs, since the last statistics
	past                armwire.ViewerCounts    // guarded by mu: of viewers that are gone
}

func (c *counts) begin() {
	for _, h := range []**hdrhistogram.Histogram{&c.setup, &c.delay, &c.start} {
		*h = hdrhistogram.New(1, longestDelay.Microseconds(), digits)
	}
}

// note counts a delay. Clocks of two machines differ, so a delay may seem to be below 0.
func (c *counts) note(h *hdrhistogram.Histogram, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = h.RecordValue(min(max(d.Microseconds(), 0), longestDelay.Microseconds())) // within the histogram's range
}

func (c *counts) opened(took time.Duration) {
	c.openedAll.Add(1)
	c.up.Add(1)
	c.note(c.setup, took)
}

func (c *counts) chunk(delay time.Duration) { c.note(c.delay, delay) }

// closed counts the end of a connection: one that was not asked for is a failure, or a loss of what was up.
func (c *counts) closed(wasUp bool, reason string) {
	asked := reason == "hangup" || reason == "destroyed" || reason == "ending"
	if wasUp {
		c.up.Add(-1)
	}
	switch {
	case asked:
	case wasUp:
		c.lost.Add(1)
	default:
		c.failed.Add(1)
	}
}

// watched counts a viewer that is gone.
func (c *counts) watched(r armwire.ViewerReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addViewer(&c.past, r)
}

func addViewer(v *armwire.ViewerCounts, r armwire.ViewerReport) {
	v.Played += r.Played
	v.Stalled += r.Stalled
	v.Origin += r.Origin
	v.Peers += r.Peers
	switch {
	case r.Ended == "":
		v.Playing++
	case r.Error != "":
		v.Errors++
	default:
		v.Ended++
	}
}

// delays are those since the last call that took them.
func (c *counts) delays(take bool) (d armwire.Delays) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for text, h := range map[*string]*hdrhistogram.Histogram{&d.Setup: c.setup, &d.Chunk: c.delay, &d.Start: c.start} {
		if h.TotalCount() == 0 {
			continue
		}
		if b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
			*text = string(b)
		}
		if take {
			h.Reset()
		}
	}
	return d
}

// watch tells the controller of the arm every second, and keeps idle links alive.
func (a *Arm) watch(ctx context.Context) {
	a.self.Start(ctx)
	defer a.self.Wait()
	tick := time.NewTicker(statisticsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			a.event(armwire.Statistics, "", a.statistics(now, true))
			for _, s := range a.all() {
				s.mu.Lock()
				conn := s.conn
				s.mu.Unlock()
				if conn != nil && s.live.Load() {
					conn.keepAlive(now)
				}
			}
		}
	}
}

// all are the sessions that are there.
func (a *Arm) all() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.sessions))
}

// statistics counts; take says that delays begin anew.
func (a *Arm) statistics(now time.Time, take bool) armwire.StatisticsBody {
	c := &a.counts
	b := armwire.StatisticsBody{
		At: now.UnixMicro(), Delays: c.delays(take), Machine: a.self.Figures(take),
		Sessions: armwire.SessionCounts{Up: int(c.up.Load()), Opened: c.openedAll.Load(), Failed: c.failed.Load(), Lost: c.lost.Load()},
		Traffic: armwire.TrafficCounts{
			SentBytes: c.sentBytes.Load(), ReceivedBytes: c.receivedBytes.Load(), SentChunks: c.sentChunks.Load(),
			ReceivedChunks: c.receivedChunks.Load(), HeldChunks: c.held.Load(), ReceivedPackets: c.receivedPackets.Load(), NACKs: c.nacks.Load(), LostPackets: c.lostPackets.Load(),
		},
	}
	c.mu.Lock()
	viewers := c.past
	c.mu.Unlock()
	for _, s := range a.all() {
		b.Sessions.Now++
		s.mu.Lock()
		v := s.viewer
		s.mu.Unlock()
		if v != nil {
			addViewer(&viewers, v.report())
		}
	}
	if viewers != (armwire.ViewerCounts{}) {
		b.Viewers = &viewers
	}
	return b
}
