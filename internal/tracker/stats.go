package tracker

import (
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	maxBytesPerSecond = 125_000_000 // 1 Gbit/s
	maxCount          = 1000
	maxPerSecond      = 100     // of what is counted
	maxStartup        = 120_000 // ms
	maxLag            = 86_400  // s behind a live stream's clock: a day that can be gone back
	maxInterval       = 600_000 // ms that one report may speak of
	reportSlack       = 2 * time.Second
)

// slack is what a session's reports of statistics may exceed the time since the one before. It grows back with time, for all swarms of
// the session together: many small reports, or memberships, claim no more than one. Only Receive has it.
type slack struct {
	left time.Duration
	at   time.Time // when left was that
}

// take spends all that there is now.
func (s *slack) take(now time.Time) time.Duration {
	all := min(reportSlack, s.left+now.Sub(s.at)/2)
	s.left, s.at = 0, now
	return all
}

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

func (c *clamp) count(v int64) float64 {
	return c.to(v, min(maxCount, int64(maxPerSecond*c.interval.Seconds())))
}

// stats adds a viewer's report to the metrics of its site.
func (s *session) stats(m *signal.Stats) {
	now := s.t.cfg.Now()
	member := s.swarms.get(m.Swarm)
	if member == nil {
		s.fail(m.Request, "not-joined", "The session is not in this swarm.", "Join first.", 0)
		return
	}
	interval, startup := s.swarms.reported(member, m, now)
	c := &clamp{interval: interval + s.slack.take(now)}
	add, site := s.t.cfg.Metrics.Add, s.site.Name()
	variant := variantOf(s.rule.allowed())
	var got received
	for i, r := range receptions {
		got[i] = int64(c.bytes(m.Bytes[r.key]))
		add(defReceived, float64(got[i]), site, r.source, r.path, variant)
	}
	for path, v := range m.Uploaded {
		add(defUploaded, c.bytes(v), site, path)
	}
	for source, v := range m.Segments {
		add(defSegments, c.count(v), site, source, variant)
	}
	c.parts(s.t.cfg.Metrics, m.Parts, site, variant)
	reasons := make(map[string]int64, len(m.Reasons))
	for reason, v := range m.Reasons {
		reasons[reason] = int64(c.count(v))
		add(defReasons, float64(reasons[reason]), site, reason)
	}
	s.t.audience.report(site, member.join.Title, &got, reasons)
	for reason, v := range m.LinkFailures {
		add(defLinkFailures, c.count(v), reason)
	}
	s.t.hints.segments(site, m.UnlistedQuery, c)
	add(defDuplicate, c.bytes(m.DuplicateBytes), site)
	add(defWasted, c.bytes(m.WastedBytes), site)
	add(defRejectedB, c.bytes(m.RejectedBytes), site)
	for lane, v := range m.Lanes {
		add(defLanes, c.bytes(v), site, lane)
	}
	add(defPrefetched, c.bytes(m.PrefetchedBytes), site)
	add(defPrefetchWasted, c.bytes(m.PrefetchWasted), site)
	add(defPromotions, c.count(m.Promotions), site)
	add(defDisk, c.bytes(m.DiskBytes), site)
	samples := c.samples(&s.t.cfg)
	if m.Pacing != nil {
		c.pacing(samples, m.Pacing, site)
	}
	add(defContradictions, c.count(max(0, m.Contradictions-m.Disputes)), site, "origin")
	add(defContradictions, c.count(m.Disputes), site, "certificates")
	add(defStalls, c.count(m.Stalls), site, variant)
	stalled, played, began := c.seconds(m.StallMs), c.seconds(m.PlayedMs), 0.0
	add(defStallTime, stalled, site, variant)
	add(defPlayed, played, site, variant)
	add(defPlayedBits, 8*c.bytes(m.PlayedBits/8), site, variant)
	add(defSwitches, c.count(m.Switches), site, variant)
	if startup {
		began = c.to(m.StartupMs, maxStartup) / 1000
		s.t.cfg.Metrics.Observe(defStartup, began, site, variant)
	}
	if played := c.seconds(m.LiveMs); played > 0 {
		samples.Observe(defLiveLag, c.to(m.LiveLag/m.LiveMs, maxLag), site, variant)
	}
	s.fares.Report(played, stalled, began)
	s.claim(member, m, c)
	if c.cut > 0 {
		add(defClamped, c.cut)
	}
}

// variantOf is the group that a viewer is counted in. One that is allowed no peers, and would be in neither group, would make the viewers with
// peers look like those without.
func variantOf(policy signal.Policy) string {
	switch {
	case policy.Role == configured.RoleOff:
		return "off"
	case policy.ControlGroup:
		return "control"
	}
	return "peer"
}

// samples is where the distributions of a report go. They have a sample a report: of one viewer, reports that follow each other at once would
// weigh as much as those of so many viewers.
func (c *clamp) samples(cfg *Config) metric.Sink {
	if c.interval < cfg.StatsInterval/2 {
		return unsampled{cfg.Metrics}
	}
	return cfg.Metrics
}

// unsampled takes no sample.
type unsampled struct{ metric.Sink }

// Observe implements metric.Sink.
func (unsampled) Observe(*metric.Def, float64, ...string) {}

// parts adds where parts of low-latency streams came from, and how the trees stand that bring them.
func (c *clamp) parts(m metric.Sink, parts map[string]int64, site, variant string) {
	for _, source := range metric.Sources {
		m.Add(defParts, c.count(parts[source]), site, source, variant)
	}
	m.Add(defPartHops, c.count(parts["hops"]), site)
	m.Add(defPartLost, c.count(parts["lost"]), site)
}

// What a figure of the controller can be at most (spec/background-transport.md).
const (
	mostDelay  = 60_000_000 // µs
	mostWindow = 16 << 20   // bytes
)

// pacing adds how a viewer's sending stands.
func (c *clamp) pacing(m metric.Sink, p *signal.Pacing, site string) {
	m.Observe(defQueuing, c.to(p.Queuing, mostDelay)/1e6, site)
	m.Observe(defBase, c.to(p.Base, mostDelay)/1e6, site)
	m.Observe(defTarget, c.to(p.Target, mostDelay)/1e6, site)
	m.Observe(defWindow, c.to(p.Window, mostWindow), site)
	m.Observe(defPacing, c.to(p.Rate, maxBytesPerSecond), site)
	m.Add(defYields, c.count(p.Yields), site)
	m.Add(defSlowdowns, c.count(p.Slowdowns), site)
}
