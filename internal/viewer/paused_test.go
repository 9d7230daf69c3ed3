package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAPlayerThatPausesCostsItsParentsNothing: they push what comes, ahead of a playlist that nothing reads any more. The stream is left, so
// that they push no more, and is followed again when the player asks again. So it does several times in a session.
func TestAPlayerThatPausesCostsItsParentsNothing(t *testing.T) {
	for _, role := range []schedule.Role{schedule.Seed, schedule.Viewer} {
		t.Run(string(role), func(t *testing.T) {
			r, data := newPartRig(t), media(5)
			r.seed = r.speaker(3, role)
			r.fed(data)
			n := 1
			for pause := 0; n < 200; pause++ {
				r.seed.sent = nil
				pushed := 0
				for ; len(of[peer.Follow](r.seed)) == 0 && pushed < 60; pushed++ {
					n++
					r.seed.pushes(r, n, r.signs(n, data), data, 0, 1, 2, 3, 4)
					r.w.run(partDuration - 10*time.Millisecond)
				}
				if r.seed.noted.ended != "" || pushed == 60 {
					t.Fatalf("pause %d: %d parts were pushed, the link ended %q", pause, pushed, r.seed.noted.ended)
				}
				r.seed.sent = nil
				r.plays(n, time.Second)
				r.seed.joins(r)
				n++
				r.seed.pushes(r, n, r.signs(n, data), data, 0, 1, 2, 3, 4)
				if r.plays(n, time.Second); r.seed.noted.ended != "" {
					t.Fatalf("pause %d: the link ended %q", pause, r.seed.noted.ended)
				}
			}
		})
	}
}
