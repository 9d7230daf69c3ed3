package viewer

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestSwappedSegmentsAreNotPlayed: a peer answers with bytes that are the origin's and certified, of another segment or
// rendition than was asked for. They are no better than any others.
func TestSwappedSegmentsAreNotPlayed(t *testing.T) {
	s := newScene(t, fourSeconds(15, 500_000))
	liar := s.viewer(fast, nil)
	s.viewer(fast, nil)
	s.w.run(12 * time.Second)
	victim := s.viewer(fast, nil)
	s.w.run(1200 * time.Millisecond)
	var shown []byte
	swap := func(b []byte) []byte {
		const half = segment.PieceSize / 2 // of a piece, behind the header
		if len(b) < half {
			return b
		}
		payload := b[len(b)-half:]
		if shown == nil {
			shown = bytes.Clone(payload)
		}
		copy(payload, shown)
		return b
	}
	for _, l := range liar.simLinks() {
		if l.far == victim.node {
			l.garble = swap
		}
	}
	s.w.run(80 * time.Second)
	s.check()
	sum := victim.now()
	if shown == nil || sum.Banned != 1 || sum.LinksClosed[peer.CloseBadPiece] != 1 || sum.Stats.RejectedBytes == 0 || sum.Stats.Stalls > 0 {
		t.Errorf("banned %d, closed %v, rejected %d, %d stalls", sum.Banned, sum.LinksClosed, sum.Stats.RejectedBytes, sum.Stats.Stalls)
	}
	if _, ok := victim.title.engine.peers.bans[liar.now().Session]; !ok {
		t.Errorf("the wrong one: %v", victim.title.engine.peers.bans)
	}
}

// TestAStaleSegmentUnderANewNumberIsNotPlayed: in a live stream a peer answers for each new segment with the bytes of the one three before
// it, at the same place: they are the origin's, were certified and were played a moment ago.
func TestAStaleSegmentUnderANewNumberIsNotPlayed(t *testing.T) {
	const behind = 3
	s := newScene(t, onAir(40, 400_000))
	liar := s.viewer(fast, nil)
	s.viewer(fast, nil)
	s.w.run(10 * time.Second)
	segments := make([][]byte, 40)
	for n := range segments {
		segments[n] = s.film.files[fmt.Sprintf("/media/film/0/seg-%d.ts", n)]
	}
	stale := 0
	liar.node.garble = func(b []byte) []byte {
		const header = 20
		for n := behind; n < len(segments) && len(b) > header; n++ {
			if at := bytes.Index(segments[n], b[header:]); at >= 0 {
				stale++
				copy(b[header:], segments[n-behind][at:])
				break
			}
		}
		return b
	}
	victim := s.viewer(fast, nil)
	s.w.run(80 * time.Second)
	s.check()
	sum := victim.now()
	if stale == 0 || sum.Banned != 1 || sum.LinksClosed[peer.CloseBadPiece] != 1 || sum.Stats.RejectedBytes == 0 || sum.Stats.Stalls > 0 {
		t.Errorf("%d stale, banned %d, closed %v, rejected %d, %d stalls", stale, sum.Banned, sum.LinksClosed, sum.Stats.RejectedBytes, sum.Stats.Stalls)
	}
	if _, ok := victim.title.engine.peers.bans[liar.now().Session]; !ok {
		t.Errorf("the wrong one: %v", victim.title.engine.peers.bans)
	}
}
