package parts

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

var (
	other = ID{2}
	seed  = ID{0xff}
)

// rig is a viewer with a seed, whose answers to Verify and Check are the true ones.
type rig struct {
	*Node
	*Stream
	acts []Act
}

func newRig() *rig {
	r := &rig{Node: New(Config{Self: ID{1}})}
	r.Linked(seed, true)
	r.Linked(other, false)
	r.Stream = r.Follow(0, stream1, Settings{Slots: 8, Part: partTime})
	for _, from := range []ID{seed, other} {
		r.Heard(0, from, peer.Follow{Stream: stream1, On: true})
	}
	r.list(0)
	return r
}

func (r *rig) list(turn uint32) {
	id, data := partOf(turn)
	r.Listed(0, turn, id, len(data))
}

// settle answers what is asked, and returns all that was to be done since the last call.
func (r *rig) settle(now int64) []Act {
	for acts := r.Take(); acts != nil; acts = r.Take() {
		r.acts = append(r.acts, acts...)
		for _, a := range acts {
			switch a := a.(type) {
			case Verify:
				if len(a.Raw) < 16 {
					r.Refused(now, a)
				} else {
					r.Certified(now, a, contentOf(binary.BigEndian.Uint32(a.Raw)-1))
				}
			case Check:
				r.Checked(now, a, sha256.Sum256(a.Data) == a.Digest)
			}
		}
	}
	out := r.acts
	r.acts = nil
	return out
}

// blamed sums what peers are blamed for.
func blamed(acts []Act) map[Why]int {
	out := map[Why]int{}
	for _, a := range acts {
		if b, ok := a.(Blame); ok {
			out[b.Why] += max(1, b.Bytes)
		}
	}
	return out
}

func said[M peer.Message](acts []Act, to ID) (out []M) {
	for _, a := range acts {
		if s, ok := a.(Say); ok && s.To == to {
			if m, ok := s.Message.(M); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// subscribed has the viewer subscribe to a peer in all stripes.
func (r *rig) subscribed(now int64, to ID) {
	for stripe := range uint8(stripes) {
		r.Heard(now, to, peer.Place{Stream: stream1, Stripe: stripe, Path: []ID{to}, Room: 4, Least: 255})
	}
}

func (r *rig) announces(now int64, from ID, push, turn uint32) {
	r.Heard(now, from, peer.Part{Stream: stream1, Push: push, Turn: turn, Raw: rawOf(turn)})
}

// sends has a peer send a piece of a part, whole.
func (r *rig) sends(now int64, from ID, push, turn uint32, i int) {
	_, data := partOf(turn)
	r.Data(now, from, peer.Data{Request: peer.PushedID(push, i), Payload: pieceOf(data, i)})
}

// begins has a peer send the first byte of a piece.
func (r *rig) begins(now int64, from ID, push uint32, i int) {
	r.Data(now, from, peer.Data{Request: peer.PushedID(push, i), Payload: []byte{1}})
}

// announcedRig is one that the seed has told part 1, by its push 0.
func announcedRig() *rig {
	r := newRig()
	r.subscribed(1, seed)
	r.announces(2, seed, 0, 1)
	r.settle(2)
	return r
}

// fedRig is one that has the first piece of it, too, so that the seed is the parent of a stripe.
func fedRig() *rig {
	r := announcedRig()
	r.sends(3, seed, 0, 1, 0)
	r.settle(3)
	return r
}
