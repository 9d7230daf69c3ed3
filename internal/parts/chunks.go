package parts

import (
	"slices"

	"github.com/leeway-video/leeway/internal/segment"
)

// What a node needs for a player of a stream of chunks (spec/parts.md, "Chunks"): no playlist lists what is at its turns, the player
// expects it.

// End is the number, among those of its chunks, under which a segment is told once it is complete.
const End = turns - 1

// Expect says what is to be at a turn of a stream of chunks, by the name in its certificate: only that is taken there, of viewers, too. What
// a seed has told there and does not fit is forgotten. reached: the player is there.
func Expect(s *Stream, now int64, turn uint32, fits func(name segment.Name) bool, reached bool) {
	if reached {
		list(s, now, turn)
	}
	if !s.shelf.near(turn) {
		return
	}
	p := s.shelf.part(turn)
	if p.fits = fits; p.content != nil && p.misfits(p.content) {
		s.contradicted(p)
		p = s.shelf.part(turn)
		p.fits = fits
	}
	claims(s, turn, false)
}

// Expected says whether something is expected at a turn.
func Expected(s *Stream, turn uint32) bool {
	p := s.shelf.parts[turn]
	return p != nil && p.fits != nil
}

// Told is the verified content at a turn, expected there or not; nil: there is none. here: all of it has come, verified.
func Told(s *Stream, turn uint32) (c *Content, here bool) {
	p := s.shelf.parts[turn]
	if p == nil || p.content == nil {
		return nil, false
	}
	return p.content, !slices.ContainsFunc(p.pieces, func(pc piece) bool { return !pc.verified })
}

// Beyond says whether anything behind a turn has been told.
func Beyond(s *Stream, turn uint32) bool {
	for _, p := range s.shelf.parts {
		if p.content != nil && int32(p.turn-turn) > 0 {
			return true
		}
	}
	return false
}

// Fed says whether the node is fed in each stripe.
func Fed(s *Stream) bool {
	for stripe := range stripes {
		if len(s.mesh.Path(stripe)) == 0 {
			return false
		}
	}
	return true
}

// Signs says whether the packager's certificates of chunks are to be loaded: the node is to be the source, and has not missed too many.
func Signs(s *Stream, now int64) bool { return now >= s.signed.again && isSource(s, now, nil, nil) }

// Sign says that the origin has sent a chunk of so many bytes that no peer has told, or a segment to its end; 0: that says itself how long it
// is. The packager's certificate is loaded, by what the owner knows of it: Certificate has that.
func Sign(s *Stream, now int64, turn uint32, length int, of any) {
	p := s.shelf.part(turn)
	if p.length == 0 && length > 0 {
		p.size(length)
	}
	p.beside = of
	goOn(s, now)
}

// Lasts says how long a part plays from now on, and how long what is listed at a time, µs.
func Lasts(s *Stream, part, listed int64) { s.set.Part, s.set.Listed = part, listed }

// Flows says whether the origin sends what the player waits for, as it comes. Then nothing of it is waited for from peers, and parents are told
// so as soon as they tell it: it would come twice, and each would make the other late.
func Flows(s *Stream, on bool) { s.player.flows = on }

// Missed says that no parent has told what the origin has sent.
func Missed(s *Stream, now int64) {
	for stripe := range stripes {
		s.mesh.Missed(now, stripe)
	}
}
