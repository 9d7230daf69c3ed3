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

func pushed(acts []Act) (n int) {
	for _, a := range acts {
		if _, is := a.(Push); is {
			n++
		}
	}
	return n
}
