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
	for _, v := range viewers {
		if p.sessions[v.session] < followedOfSession && p.nets[v.net()] < followedOfSubnet {
			p.all++
			p.sessions[v.session]++
			p.nets[v.net()]++
			return v, true
		}
	}
	return party{}, false
}

// leave gives back a place.
func (p *streamPlaces) leave(payer party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.sessions[payer.session]--; p.sessions[payer.session] == 0 {
		delete(p.sessions, payer.session)
	}
	if p.nets[payer.net()]--; p.nets[payer.net()] == 0 {
		delete(p.nets, payer.net())
	}
}
