package tracker

import (
	"slices"
	"sync"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	// maxKnown bounds the peers that a session may signal to: what it was introduced to and what signaled to it.
	maxKnown = 512
	// maxCandidates of one session to one peer and link (spec).
	maxCandidates = 64
)

// acquaintances are the peers that a session may signal to, and what the session and others have used of the allowances of signals.
type acquaintances struct {
	cfg      *Config
	learned  *learned
	learners []learner // that a viewer it learns of is charged to; set before the session is open

	mu    sync.Mutex
	known map[signal.ID]*acquaintance // guarded by mu
	said  spent                       // guarded by mu: of fromSession
	heard Inflow                      // guarded by mu
}

// acquaintance is a peer that a session may signal to. Guarded by acquaintances.mu.
type acquaintance struct {
	bus.Target
	link       signal.ID // of the latest attempt
	candidates int       // of that link
	offered    signal.ID // link that this session offered and that was not answered yet
	said       spent     // of toPeer, by this session
	reported   bool      // by this session: said once in the log
}

// meet notes a peer that the session may signal to. The oldest knowledge is not kept apart: a session that met too many
// forgets any one of them, and is introduced anew when it asks for more.
func (as *acquaintances) meet(target bus.Target) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if old := as.known[target.Peer]; old != nil {
		old.Target = target
		return
	}
	for id := range as.known {
		if len(as.known) < maxKnown {
			break
		}
		delete(as.known, id)
	}
	as.known[target.Peer] = &acquaintance{Target: target}
}

// learns says whether the session may get to know a viewer. One that it knows costs nothing.
func (as *acquaintances) learns(peer signal.ID) bool {
	as.mu.Lock()
	_, known := as.known[peer]
	as.mu.Unlock()
	if known {
		return true
	}
	if full := as.learned.take(as.learners, as.cfg.Now()); full != "" {
		as.cfg.Metrics.Add(defUnlearned, 1, full)
		return false
	}
	as.cfg.Metrics.Add(defLearned, 1)
	return true
}

// room is how many of the viewers that the session wants it may get to know: what its home is told, so that no viewer's place is
// taken for nothing. Nil: all of them.
func (as *acquaintances) room(want int) *int {
	room, full := as.learned.room(as.learners, want, as.cfg.Now())
	if full == "" {
		return nil
	}
	as.cfg.Metrics.Add(defUnlearned, float64(want-room), full)
	return &room
}

// introducible are those of the peers that the session may get to know: seeds, and viewers as far as its share goes.
func (as *acquaintances) introducible(targets []bus.Target) []bus.Target {
	return slices.DeleteFunc(slices.Clone(targets), func(target bus.Target) bool {
		return target.Role == "viewer" && !as.learns(target.Peer)
	})
}

// addressed finds the peer that a signal is for, and counts its candidates; tooMany says that the link has had all that it may.
func (as *acquaintances) addressed(m *signal.Signal) (target bus.Target, known, tooMany bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	peer := as.known[m.To]
	if peer == nil {
		return bus.Target{}, false, false
	}
	if peer.link != m.Link {
		peer.link, peer.candidates = m.Link, 0
	}
	if m.Kind == "candidate" {
		peer.candidates++
		tooMany = peer.candidates > maxCandidates
	}
	return peer.Target, true, tooMany
}

// offers notes that the session offers a link to a peer.
func (as *acquaintances) offers(to, link signal.ID) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if peer := as.known[to]; peer != nil {
		peer.offered = link
	}
}

// blames says what a peer is that the session reports: its role, empty for a stranger, and whether it is blamed for the first time.
func (as *acquaintances) blames(id signal.ID, blame bool) (role string, news bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	peer := as.known[id]
	if peer == nil {
		return "", false
	}
	news = blame && !peer.reported
	peer.reported = peer.reported || news
	return peer.Role, news
}

// says charges this session for a signal to a peer that it knows, or names the allowance that the signal exceeds.
func (as *acquaintances) says(to signal.ID, size int) (exceeded string) {
	now := as.cfg.Steady()
	as.mu.Lock()
	defer as.mu.Unlock()
	peer, one, all := as.known[to], toPeer.at(as.cfg.MessagesPerSecond), fromSession.at(as.cfg.MessagesPerSecond)
	switch {
	case peer == nil: // forgotten just now, for others that it met since
		exceeded = "pair"
	case !peer.said.fits(one, size, now):
		exceeded = "pair"
	case !as.said.fits(all, size, now):
		exceeded = "session"
	default:
		peer.said.charge(one, size, now)
		as.said.charge(all, size, now)
		return ""
	}
	as.cfg.Metrics.Add(defSignalRefused, 1, exceeded)
	return exceeded
}

// hears charges a signal that came for this session to the subnet of its sender, or names the allowance that it exceeds. What a
// seed says, and the one answer to an offer of its own, the session has asked for.
func (as *acquaintances) hears(m *bus.Signal, size int) (exceeded string) {
	now := as.cfg.Steady()
	as.mu.Lock()
	defer as.mu.Unlock()
	if m.Role != "viewer" || m.Tracker.IsZero() { // of a seed, or of a tracker
		return ""
	}
	if peer := as.known[m.From]; peer != nil && m.Kind == "answer" && m.Link == peer.offered {
		peer.offered = signal.ID{}
		return ""
	}
	if exceeded = as.heard.Take(m.Subnet, size, as.cfg.MessagesPerSecond, now); exceeded != "" {
		as.cfg.Metrics.Add(defSignalRefused, 1, exceeded)
	}
	return exceeded
}
