package seed

import (
	"sync"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Bounds of the low-latency streams of a site that are followed at a time: each keeps requests open at the origin.
const (
	maxFollowed       = 64
	followedOfSession = 8
	followedOfSubnet  = 16
)

// streamPlaces has a place for each low-latency stream of a site that is followed. A place is charged to one viewer that follows the stream.
type streamPlaces struct {
	most int

	mu       sync.Mutex
	all      int               // guarded by mu
	sessions map[signal.ID]int // guarded by mu
	nets     map[string]int    // guarded by mu
}

func newStreamPlaces(most int) *streamPlaces {
	return &streamPlaces{most: most, sessions: map[signal.ID]int{}, nets: map[string]int{}}
}

// take takes a place for a stream that these viewers follow, charged to the first of them that has one left; false: there is none.
func (p *streamPlaces) take(viewers []party) (payer party, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.most {
		return party{}, false
	}
	return p.charge(viewers)
}

// charge charges a place to the first of these viewers that has one left. Under mu.
func (p *streamPlaces) charge(viewers []party) (payer party, ok bool) {
	for _, v := range viewers {
		if p.sessions[v.session] < followedOfSession && p.nets[v.net()] < followedOfSubnet {
			p.note(v)
			return v, true
		}
	}
	return party{}, false
}

// note is under mu.
func (p *streamPlaces) note(payer party) {
	p.all++
	p.sessions[payer.session]++
	p.nets[payer.net()]++
}

// pass charges a place to another viewer, since its payer does not follow the stream any more; false: none of them has one left.
func (p *streamPlaces) pass(from party, viewers []party) (payer party, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveBack(from)
	if payer, ok = p.charge(viewers); !ok {
		p.note(from) // until the stream is left
	}
	return payer, ok
}

// leave gives back a place.
func (p *streamPlaces) leave(payer party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveBack(payer)
}

// giveBack is under mu.
func (p *streamPlaces) giveBack(payer party) {
	p.all--
	if p.sessions[payer.session]--; p.sessions[payer.session] == 0 {
		delete(p.sessions, payer.session)
	}
	if p.nets[payer.net()]--; p.nets[payer.net()] == 0 {
		delete(p.nets, payer.net())
	}
}
