// Package fleet makes a seed one of several: it knows the others by their beats, asks them for segments before the origin is asked, and
// has them give a newcomer what is wanted before viewers come (spec/cluster.md, "Seeds"). It satisfies seed.Fleet. A seed runs without it.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Bounds of asking siblings (spec/cluster.md, "Seeds").
const (
	ownerAnswer = 5 * time.Second // within which an owner has a segment, unless Config.Patience says otherwise
	maxAsking   = 64              // questions under way at a time
)

// Config of a seed's place in its fleet.
type Config struct {
	ID       sibling.FleetID
	Address  netip.AddrPort // where siblings reach this seed
	Siblings Siblings
	Patience time.Duration // within which an owner has a segment; 0: 5 s
	Linger   time.Duration // for which a seed that drains stays for its siblings, if there are any
	WarmUp   *WarmUp       // before viewers come; nil: none
	Metrics  metric.Sink
	Log      *slog.Logger
	Now      func() time.Time
}

// Sibling is another seed of the fleet.
type Sibling struct {
	ID      signal.ID
	Address netip.AddrPort
}

// Siblings asks other seeds. Errors are *AskError. accept judges a certificate, and how many bytes come with it, before
// these are taken.
type Siblings interface {
	Ask(ctx context.Context, from signal.ID, to Sibling, q sibling.Question, accept func(certificate []byte, length int) error) (*sibling.Answer, error)
	// Wanted asks what viewers of a sibling asked for of late; any error will do.
	Wanted(ctx context.Context, from signal.ID, to Sibling) (sibling.Wanted, error)
}

// Outcome is what came of a question to a sibling: the closed set of the metric.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeNone        Outcome = "none"        // it has no certificate, or does not hold the segment
	OutcomeUnreachable Outcome = "unreachable" // or broke off
	OutcomeSlow        Outcome = "slow"        // worked on the answer for too long
	OutcomeRefused     Outcome = "refused"     // busy
	OutcomeInvalid     Outcome = "invalid"     // a certificate that does not hold, other bytes, no answer at all
)

// Outcomes lists the closed set.
var Outcomes = []Outcome{OutcomeOK, OutcomeNone, OutcomeUnreachable, OutcomeSlow, OutcomeRefused, OutcomeInvalid}

// AskError is why a question brought no answer.
type AskError struct {
	Outcome Outcome
	Cause   error
}

func (e *AskError) Error() string { return fmt.Sprintf("ask a sibling: %s: %v", e.Outcome, e.Cause) }

// Unwrap is the cause.
func (e *AskError) Unwrap() error { return e.Cause }

// Member is one seed's place in a fleet.
type Member struct {
	cfg    Config
	known  *siblings
	demand *demand
	asking chan struct{} // bounds the questions to siblings
	warm   chan struct{} // closed once viewers may come, for all that siblings have to give
	local  seed.Local    // set by Join
	room   int64         // likewise
}

var _ seed.Fleet = (*Member)(nil)

// New makes a place for the seed that will join.
func New(cfg Config) *Member {
	cfg.Patience = cmp.Or(cfg.Patience, ownerAnswer)
	cfg.Metrics = cmp.Or(cfg.Metrics, metric.Discard)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	m := &Member{cfg: cfg, demand: newDemand(), asking: make(chan struct{}, maxAsking), warm: make(chan struct{})}
	if cfg.WarmUp == nil {
		close(m.warm)
	}
	return m
}

// Join implements seed.Fleet.
func (m *Member) Join(l seed.Local, room int64) {
	m.local, m.room, m.known = l, room, newSiblings(m.cfg.ID, l.ID())
}

// Says implements seed.Fleet.
func (m *Member) Says() *bus.SeedFleet {
	return &bus.SeedFleet{ID: m.cfg.ID[:], Address: m.cfg.Address.String()}
}

// Heard implements seed.Fleet.
func (m *Member) Heard(b *bus.SeedBeat) (isNew bool) { return m.known.heard(b, m.cfg.Now()) }

// Asked implements seed.Fleet.
func (m *Member) Asked(swarm swarm.ID, id segment.ID) {
	m.demand.note(wantedID{swarm, id}, m.cfg.Now())
}

// Drain implements seed.Fleet.
func (m *Member) Drain() { m.known.drain() }

// Linger implements seed.Fleet: siblings ask now for what this seed holds, or has on its way.
func (m *Member) Linger() {
	if m.cfg.Linger > 0 && m.known.others() > 0 {
		sleep.For(context.Background(), m.cfg.Linger)
	}
}

// Expire implements seed.Fleet.
func (m *Member) Expire() int { return m.known.expire(m.cfg.Now()) }

// Answered counts what went out to a sibling.
func (m *Member) Answered(bytes int) { m.cfg.Metrics.Add(mSiblingBytes, float64(bytes), "out") }

// Wanted says to a sibling what viewers asked for here.
func (m *Member) Wanted() sibling.Wanted {
	var out sibling.Wanted
	at, segments := map[swarm.ID]int{}, 0
	for _, w := range m.demand.list(m.cfg.Now()) {
		if segments == sibling.MaxWantedIDs {
			break
		}
		i, known := at[w.id.swarm]
		if !known {
			t, serves := m.local.Title(w.id.swarm)
			if !serves || len(out.Titles) == sibling.MaxWantedTitles {
				continue
			}
			i = len(out.Titles)
			at[w.id.swarm] = i
			out.Titles = append(out.Titles, sibling.WantedTitle{Title: t})
		}
		out.Titles[i].Segments = append(out.Titles[i].Segments, sibling.WantedSegment{ID: signal.ID(w.id.segment), N: int(math.Ceil(w.worth))})
		segments++
	}
	return out
}
