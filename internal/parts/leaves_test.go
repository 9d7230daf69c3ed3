package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAChildThatHasLeftIsSentNothing of what waited for it: it takes that for two seconds, and then charges it, and over a slow uplink there
// is more.
func TestAChildThatHasLeftIsSentNothing(t *testing.T) {
	for name, leaves := range map[string]func(r *rig, stripe uint8){
		"by its own word":   func(r *rig, s uint8) { r.Heard(3, other, peer.Unsubscribe{Stream: stream1, Stripe: s}) },
		"as its lease ends": func(r *rig, _ uint8) { r.Tick(60 * second) },
		"with the stream":   func(r *rig, _ uint8) { r.Heard(3, other, peer.Follow{Stream: stream1}) },
	} {
		r := fedRig()
		for stripe := range uint8(stripes) {
			r.Heard(3, other, peer.Subscribe{Stream: stream1, Stripe: stripe, Slots: 1})
		}
		_, data := partOf(1)
		for i := 1; i*peer.PieceSize < len(data); i++ {
			r.sends(3, seed, 0, 1, i)
		}
		if acts := r.settle(3); pushed(acts) != mostHanded {
			t.Fatalf("%s: %d pieces are on their way", name, pushed(acts))
		}
		for stripe := range uint8(stripes) {
			leaves(r, stripe)
		}
		r.Sent(4, other)
		r.Sent(4, other)
		if n := pushed(r.settle(4)); n > 0 {
			t.Errorf("%s: %d more pieces are sent", name, n)
		}
		if l := r.links[other]; l.out.waits != 0 || len(l.out.waiting) > 0 {
			t.Errorf("%s: %d bytes wait", name, l.out.waits)
		}
	}
}

// TestNothingMoreIsPushed of a part that a peer was told before either side left the stream, when both follow it again.
func TestNothingMoreIsPushed(t *testing.T) {
	for name, leaves := range map[string]func(r *rig){
		"this side leaves": func(r *rig) {
			r.Unfollow(second+6, stream1)
			r.Stream = r.Follow(second+6, stream1, Settings{Slots: 8, Part: partTime})
			r.list(0)
		},
		"this side leaves, and the child had told it to hold": func(r *rig) {
			r.Heard(second+6, other, peer.Hold{Stream: stream1, On: true})
			r.Unfollow(second+6, stream1)
			r.Heard(second+6, other, peer.Hold{Stream: stream1, On: true}) // was on its way
			r.Stream = r.Follow(second+6, stream1, Settings{Slots: 8, Part: partTime})
			r.list(0)
		},
		"the child leaves": func(r *rig) {
			r.Heard(second+6, other, peer.Follow{Stream: stream1})
			r.Heard(second+6, other, peer.Follow{Stream: stream1, On: true})
		},
	} {
		r := aloneRig(8)
		feeds := func(now int64, turn uint32, from, to int) int {
			r.asks(now, turn)
			r.loaded(now, turn)
			for s := range uint8(stripes) {
				r.Heard(now, other, peer.Subscribe{Stream: stream1, Stripe: s, Slots: 8})
			}
			_, data := partOf(turn)
			for i := from; i < to; i++ {
				r.Origin(now, turn, i, pieceOf(data, i))
			}
			var sent int
			for n := 1; n > 0; sent += n {
				r.Sent(now, other)
				r.Sent(now, other)
				n = pushed(r.settle(now))
			}
			return sent
		}
		if sent := feeds(second, 1, 0, 2); sent != 2 {
			t.Fatalf("%s: %d pieces are pushed at first", name, sent)
		}
		leaves(r)
		if sent := feeds(second+7, 1, 0, 4); sent > 0 {
			t.Errorf("%s: %d pieces are pushed after", name, sent)
		}
		if sent := feeds(second+8, 2, 0, 4); sent != 4 {
			t.Errorf("%s: %d pieces of the next part are pushed", name, sent)
		}
	}
}

func pushed(acts []Act) (n int) {
	for _, a := range acts {
		if _, is := a.(Push); is {
			n++
		}
	}
	return n
}
