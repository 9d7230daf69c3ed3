package viewer

import (
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

// shared is what the parts of one engine have in common: clock, counters, line, segments, pieces and peers.
type shared struct {
	loop     Loop
	epoch    time.Time
	ledger   *ledger
	line     *line
	segments *segments
	store    *store
	peers    *peers
	changed  func()          // something happened that the schedule may act on
	off      schedule.Reason // why peers deliver nothing; empty: they do
	stopped  bool
}

// nowUs is the schedule's clock. It does not begin at zero, so that no moment looks like never.
func (s *shared) nowUs() int64 { return s.usOf(s.loop.Now()) }

func (s *shared) usOf(t time.Time) int64 { return t.Sub(s.epoch).Microseconds() + 1_000_000 }

// sharing says whether what the origin sends may be shared.
func (s *shared) sharing() bool { return s.off == "" && !s.stopped }
