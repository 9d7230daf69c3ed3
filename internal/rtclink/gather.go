package rtclink

import (
	"sync"
	"time"

	"github.com/pion/ice/v4"

	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// gatherWait is how long a description waits for the addresses of its own machine, which are there at once: sent with
// it, they let the other side begin its checks when the description arrives.
const gatherWait = 20 * time.Millisecond

// gathering sorts the addresses of this side: those of the machine that are there in time go into the description, all others to the
// owner as events. What servers say goes by events always: owners explain by it why a link does not open.
type gathering struct {
	life   *life
	mid    string
	events transfer.LinkEvents
	hosts  int // addresses of the socket

	complete chan struct{} // closed when all of them are known
	once     sync.Once     // of complete

	mu        sync.Mutex
	first     []sdp.Candidate // guarded by mu: for the description
	described bool            // guarded by mu: addresses go out by events
}

// candidate takes an address of the agent; nil says that there are no more.
func (g *gathering) candidate(c ice.Candidate) {
	if g.life.closing.Load() {
		return
	}
	if c == nil {
		g.once.Do(func() { close(g.complete) })
		g.events.Candidate(transfer.Candidate{End: true})
		return
	}
	text := "candidate:" + c.Marshal()
	if c.Type() == ice.CandidateTypeHost && g.describes(text) {
		return
	}
	g.events.Candidate(transfer.Candidate{Candidate: text, Mid: g.mid})
}

// describes takes an address into the description; false when that is out. With the last of them there is no more to
// wait for.
func (g *gathering) describes(text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.described {
		return false
	}
	if c, ok := sdp.ParseCandidate(text); ok {
		g.first = append(g.first, c)
	}
	if len(g.first) == g.hosts {
		g.once.Do(func() { close(g.complete) })
	}
	return true
}

// description waits for what is there at once, and returns it.
func (g *gathering) description() []sdp.Candidate {
	sleep.Until(g.complete, gatherWait)
	g.mu.Lock()
	defer g.mu.Unlock()
	first := g.first
	g.first, g.described = nil, true
	return first
}
