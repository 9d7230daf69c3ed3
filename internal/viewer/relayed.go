package viewer

import (
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
)

// originRest is how long after an error the origin counts as unable to serve. Then the next segment is asked of it again,
// and not of a relay.
const originRest = 30 * time.Second

// asksRelays says whether peers behind a relay are asked for anything (spec/schedule.md, "Input"): each of their bytes is
// paid for twice, so only where nobody else can serve, or where the site has its viewers meet by relays alone.
func (e *engine) asksRelays() bool {
	if e.relayOnly() {
		return true
	}
	if !e.line.failing || e.loop.Now().Sub(e.line.failed) >= originRest {
		return false
	}
	for _, r := range e.peers {
		if r.ready && r.role == schedule.Seed && r.path == transfer.Direct {
			return false
		}
	}
	return true
}

// unasked is how the schedule sees a peer that nothing more is to be asked of: as long as something is on its way from it.
func unasked(p schedule.Peer) schedule.Peer {
	p.OnDemand, p.Slots, p.Holds, p.Heard = false, 0, map[string]schedule.Holding{}, map[string]int64{}
	return p
}

// linked counts the open links by role and path.
func (e *engine) linked() map[string]int {
	out := map[string]int{}
	for _, r := range e.peers {
		if r.ready {
			out[string(r.role)+"/"+string(r.path)]++
		}
	}
	return out
}

// withoutRelays are the servers for a link that is not to be relayed.
func withoutRelays(servers []ICEServer) (out []ICEServer) {
	for _, s := range servers {
		var urls []string
		for _, u := range s.URLs {
			if !strings.HasPrefix(u, "turn") {
				urls = append(urls, u)
			}
		}
		if len(urls) > 0 {
			out = append(out, ICEServer{URLs: urls, Username: s.Username, Credential: s.Credential})
		}
	}
	return out
}
