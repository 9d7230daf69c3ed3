package viewer

import (
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const keptSignals = 64 // until links may be made

// early is what came before links may be made: peers that the tracker named, and what they signaled.
type early struct {
	begun   bool
	peers   []signal.Peer
	signals []*signal.Signal
}

// name keeps peers until links may be made; false: they may.
func (e *early) name(peers []signal.Peer) bool {
	if e.begun {
		return false
	}
	e.peers = append(e.peers, peers...)
	e.peers = e.peers[max(0, len(e.peers)-signal.MaxWant):]
	return true
}

// keep keeps a signal until links may be made; false: they may.
func (e *early) keep(m *signal.Signal) bool {
	if !e.begun && len(e.signals) < keptSignals {
		e.signals = append(e.signals, m)
	}
	return !e.begun
}

// names says whether a seed is among the peers, or any peer if it may be a viewer.
func (e *early) names(viewers bool) bool {
	for _, p := range e.peers {
		if viewers || p.Role == string(schedule.Seed) {
			return true
		}
	}
	return false
}

// begin hands over what was kept.
func (e *early) begin() (peers []signal.Peer, signals []*signal.Signal) {
	peers, signals = e.peers, e.signals
	e.begun, e.peers, e.signals = true, nil, nil
	return peers, signals
}

// clear forgets what was kept.
func (e *early) clear() { e.peers, e.signals = nil, nil }
