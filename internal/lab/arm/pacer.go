package arm

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// pacerStep is how often the pacer looks for what is due.
const pacerStep = 5 * time.Millisecond

// pacer sends the chunks of all sessions, from one goroutine. Chunks are due at fixed times, whatever the sessions do.
type pacer struct {
	mu    sync.Mutex
	flows flows // guarded by mu
}

// flow is a session's chunks.
type flow struct {
	s      *session
	source *source
	every  time.Duration
	due    time.Time
	number uint64
	at     int // index in flows; -1: not there
}

func newPacer() *pacer { return &pacer{} }

// add begins a flow at a random moment of its interval, so that sessions which came up together do not send together.
func (p *pacer) add(s *session, src *source, now time.Time) *flow {
	every := time.Duration(float64(8*src.chunk) / float64(src.rate) * float64(time.Second))
	f := &flow{s: s, source: src, every: every, due: now.Add(rand.N(every + 1))}
	p.mu.Lock()
	defer p.mu.Unlock()
	heap.Push(&p.flows, f)
	return f
}

// remove ends a flow; nil is none.
func (p *pacer) remove(f *flow) {
	if f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.at >= 0 {
		heap.Remove(&p.flows, f.at)
	}
}

// run sends until ctx ends.
func (p *pacer) run(ctx context.Context) {
	tick := time.NewTicker(pacerStep)
	defer tick.Stop()
	var buf []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for now := time.Now(); ; {
			f, number, due := p.pop(now)
			if f == nil {
				break
			}
			if n := f.source.chunk; len(buf) < n {
				buf = make([]byte, n)
			}
			putChunk(buf, number, due)
			f.s.sendChunk(buf[:f.source.chunk])
		}
	}
}

// pop takes the chunk that is due the longest, and sets when the next of its flow is.
func (p *pacer) pop(now time.Time) (f *flow, number uint64, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flows) == 0 || p.flows[0].due.After(now) {
		return nil, 0, time.Time{}
	}
	f = p.flows[0]
	number, due = f.number, f.due
	f.number++
	f.due = due.Add(f.every)
	heap.Fix(&p.flows, 0)
	return f, number, due
}

// flows is a heap by due.
type flows []*flow

func (h flows) Len() int           { return len(h) }
func (h flows) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h flows) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *flows) Push(x any) {
	f := x.(*flow)
	f.at = len(*h)
	*h = append(*h, f)
}

// Pop implements heap.Interface.
func (h *flows) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	f.at = -1
	return f
}
