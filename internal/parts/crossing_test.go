package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestPushesThatCrossAnEndAreNoFault: for two seconds after a subscription has ended, by either side, as much as a parent may have on its
// way is no fault. What comes later is counted, and no part of it ends the link by itself.
func TestPushesThatCrossAnEndAreNoFault(t *testing.T) {
	each := func(do func(stripe uint8)) {
		for stripe := range uint8(stripes) {
			do(stripe)
		}
	}
	for name, ends := range map[string]func(r *rig){
		"the parent ends it": func(r *rig) {
			each(func(s uint8) { r.Heard(3, other, peer.End{Stream: stream1, Stripe: s}) })
		},
		"the child does": func(r *rig) { // its parent has none any more
			each(func(s uint8) {
				r.Heard(3, other, peer.Place{Stream: stream1, Stripe: s, Rank: 1<<53 - 1, Least: 255})
			})
		},
		"the parent leaves the stream": func(r *rig) { r.Heard(3, other, peer.Follow{Stream: stream1}) },
		"the child leaves the stream":  func(r *rig) { r.Unfollow(3, stream1) },
	} {
		r := newRig()
		r.subscribed(1, other)
		all := func(now int64, push, turn uint32) map[Why]int {
			r.list(turn)
			r.announces(now, other, push, turn)
			_, data := partOf(turn)
			for i := 0; i*peer.PieceSize < min(len(data), Backlog); i++ {
				r.sends(now, other, push, turn, i)
			}
			return blamed(r.settle(now))
		}
		all(2, 0, 1)
		ends(r)
		r.settle(3)
		if b := all(Grace-1, 1, 2); len(b) > 0 {
			t.Errorf("%s, on its way: %v", name, b)
		}
		r.Tick(Grace + 4)
		if b := all(Grace+5, 2, 3); len(b) != 1 || b[Unsolicited] == 0 || b[Unsolicited] > peer.MaxUnsolicited/2 {
			t.Errorf("%s, later: %v", name, b)
		}
	}
}
