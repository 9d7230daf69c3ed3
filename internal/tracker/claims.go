package tracker

import (
	"time"

	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// reportOfSeed is the outcome of a report that is about a seed: its operator looks into it, and it is not banned.
const reportOfSeed = "seed"

func reportOutcomes() []string {
	all := []string{reportOfSeed}
	for _, v := range swarm.Verdicts {
		all = append(all, string(v))
	}
	return all
}

// claim passes on to the swarm's home what a viewer says of peers that it was introduced to, within what its report may
// claim in all.
func (s *session) claim(member *membership, m *signal.Stats, c *clamp) {
	var claims []bus.Claim
	left := int64(maxBytesPerSecond * c.interval.Seconds())
	take := func(n int64) int64 {
		if n > left {
			c.cut++
		}
		n = min(n, left)
		left -= n
		return n
	}
	for id, p := range m.Peers {
		role, news := s.peers.blames(id, p.Blame > 0)
		switch {
		case role == "":
			if p.Blame > 0 {
				s.t.cfg.Metrics.Add(defReports, 1, string(swarm.Stranger))
			}
		case role == "seed":
			if p.Blame > 0 {
				s.t.cfg.Metrics.Add(defReports, 1, reportOfSeed)
			}
			if news { // no viewer fills the log
				s.t.cfg.Log.Warn("a viewer reports a seed", "seed", id.Hex(), "site", s.site.Name())
			}
		default:
			claims = append(claims, bus.Claim{Peer: id, PeerStats: signal.PeerStats{
				In: take(p.In), Out: take(p.Out), RelayIn: take(p.RelayIn), RelayOut: take(p.RelayOut), Blame: min(p.Blame, 1),
			}})
		}
	}
	if len(claims) > 0 {
		s.swarms.tellHome(member, &bus.HomeRequest{Op: bus.OpStats, Claims: claims})
	}
}

// hear takes in what a member says of others: blame, and bytes that count where the others say the same.
func (h *home) hear(r *bus.HomeRequest, now time.Time) {
	reports, bans, credited := map[swarm.Verdict]int{}, 0, swarm.Bytes{}
	h.mu.Lock()
	s := h.swarms[cluster.Part{Number: r.Part, Level: r.Level}.Key(r.Swarm)]
	if s != nil {
		for _, c := range r.Claims {
			both := s.Claim(r.Session, c.Peer, swarm.Bytes{Direct: c.In, Relay: c.RelayIn}, swarm.Bytes{Direct: c.Out, Relay: c.RelayOut})
			credited.Direct += both.Direct
			credited.Relay += both.Relay
			if c.Blame == 0 {
				continue
			}
			verdict, banned := s.Blame(r.Session, c.Peer, now)
			reports[verdict]++
			if banned {
				bans++
			}
		}
	}
	h.mu.Unlock()
	if s == nil {
		return
	}
	m := h.cfg.Metrics
	m.Add(defCredited, float64(credited.Direct), s.site, metric.Paths[0])
	m.Add(defCredited, float64(credited.Relay), s.site, metric.Paths[1])
	for verdict, n := range reports {
		m.Add(defReports, float64(n), string(verdict))
	}
	if bans > 0 {
		m.Add(defBans, float64(bans))
		h.cfg.Log.Warn("peers banned that viewers of several subnets reported", "site", s.site, "title", s.title, "peers", bans)
	}
}
