package tracker

import (
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	maxBytesPerSecond = 125_000_000 // 1 Gbit/s
	maxCount          = 1000
	maxStartup        = 120_000 // ms
	maxInterval       = 600_000 // ms that one report may speak of
	reportSlack       = 2 * time.Second
)

// clamp cuts a viewer's figures to what the time since its last report allows, and counts the cuts.
type clamp struct {
	interval time.Duration
	cut      float64
}

func (c *clamp) to(v, most int64) float64 {
	if v > most {
		c.cut++
		return float64(most)
	}
	return float64(v)
}

func (c *clamp) bytes(v int64) float64 {
	return c.to(v, int64(maxBytesPerSecond*c.interval.Seconds()))
}

func (c *clamp) seconds(ms int64) float64 { return c.to(ms, 2*c.interval.Milliseconds()) / 1000 }

func (c *clamp) count(v int64) float64 { return c.to(v, maxCount) }

// stats adds a viewer's report to the metrics of its site.
func (s *session) stats(m *signal.Stats) {
	now := s.t.cfg.Now()
	s.mu.Lock()
	member := s.swarms[m.Swarm]
	c := &clamp{}
	if member != nil {
		// The viewer's own interval counts only as far as our clock agrees. What is allowed beyond grows back with time, so
		// that many small reports claim no more than one.
		since := now.Sub(member.stats)
		c.interval = min(time.Duration(min(m.Interval, maxInterval))*time.Millisecond, since) + member.slack
		member.stats, member.slack = now, min(reportSlack, since/2)
	}
	s.mu.Unlock()
	if member == nil {
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "Join first.", 0)
		return
	}
	add, site := s.t.cfg.Metrics.Add, s.site.Name()
	variant := "peer"
	if s.policy.ControlGroup {
		variant = "control"
	}
	for _, b := range []struct{ key, source, path string }{
		{"origin", "origin", "direct"}, {"seed", "seed", "direct"}, {"peer", "peer", "direct"},
		{"peer_relay", "peer", "relay"}, {"seed_relay", "seed", "relay"},
	} {
		add(defReceived, c.bytes(m.Bytes[b.key]), site, b.source, b.path, variant)
	}
	for path, v := range m.Uploaded {
		add(defUploaded, c.bytes(v), site, path)
	}
	for source, v := range m.Segments {
		add(defSegments, c.count(v), site, source, variant)
	}
	for reason, v := range m.Reasons {
		add(defReasons, c.count(v), site, reason)
	}
	for reason, v := range m.LinkFailures {
		add(defLinkFailures, c.count(v), reason)
	}
	add(defDuplicate, c.bytes(m.DuplicateBytes), site)
	add(defWasted, c.bytes(m.WastedBytes), site)
	add(defRejectedB, c.bytes(m.RejectedBytes), site)
	add(defContradictions, c.count(m.Contradictions), site)
	add(defStalls, c.count(m.Stalls), site, variant)
	add(defStallTime, c.seconds(m.StallMs), site, variant)
	add(defPlayed, c.seconds(m.PlayedMs), site, variant)
	add(defPlayedBits, 8*c.bytes(m.PlayedBits/8), site, variant)
	add(defSwitches, c.count(m.Switches), site, variant)
	if m.StartupMs > 0 {
		s.t.cfg.Metrics.Observe(defStartup, c.to(m.StartupMs, maxStartup)/1000, site, variant)
	}
	if c.cut > 0 {
		add(defClamped, c.cut)
	}
}
