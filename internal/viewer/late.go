package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Of lateness (spec/peer-protocol.md, rule 12).
const (
	// lateShare of the segment's own rate is what a peer has to bring if it is to be asked again at once.
	lateShare = 10
	// promptPieces without lateness are as many as a new peer is asked for: the next pause is the shortest again.
	promptPieces = 4
)

// lateness is how a peer keeps up with what it is asked for.
type lateness struct {
	times   int // in a row
	judged  time.Time
	brought int // pieces since then
}

// late judges a viewer whose requests for a segment were taken back since another source is quicker, once for what was asked before.
// One that brings next to nothing is left alone, longer each time. One of which not a byte came has stalled; but no ping tells
// whether it could have sent: others may have asked it before, and what was taken back does not come any more.
func (r *remote) late(s *seg, gone []transfer.Order) {
	l := &r.lateness
	first := slices.IndexFunc(gone, func(o transfer.Order) bool {
		return o.Lane == peer.Foreground && o.Why == schedule.WhyNear && o.Sent.After(l.judged)
	})
	if r.role == schedule.Seed || first < 0 {
		return
	}
	o, now, brought := gone[first], r.e.loop.Now(), int64(l.brought)*segment.PieceSize
	l.judged, l.brought = now, 0
	if brought > 0 && brought*lateShare*s.ref.Duration.Milliseconds() >= o.Target.Length*now.Sub(o.Sent).Milliseconds() {
		return
	}
	r.leaveAlone(stallPause, l.times)
	l.times++
	if r.download.Heard().Before(o.Sent) {
		r.countStall()
	}
}

// bring counts a piece that came whole.
func (l *lateness) bring() {
	if l.brought++; l.brought >= promptPieces {
		l.times = 0
	}
}
