package viewer

import (
	"bytes"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestSwappedAndStaleSegmentsAreNotPlayed: a peer answers with bytes that are the origin's and certified, of another segment or
// rendition than was asked for. They are no better than any others.
func TestSwappedAndStaleSegmentsAreNotPlayed(t *testing.T) {
	s := newScene(t, fourSeconds(15, 500_000))
	liar := s.viewer(fast, nil)
	s.viewer(fast, nil)
	s.w.run(12 * time.Second)
	victim := s.viewer(fast, nil)
	s.w.run(1200 * time.Millisecond)
	var stale []byte
	swap := func(b []byte) []byte {
		const half = segment.PieceSize / 2 // of a piece, behind the header
		if len(b) < half {
			return b
		}
		payload := b[len(b)-half:]
		if stale == nil {
			stale = bytes.Clone(payload)
		}
		copy(payload, stale)
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
	if stale == nil || sum.Banned != 1 || sum.LinksClosed[peer.CloseBadPiece] != 1 || sum.Stats.RejectedBytes == 0 || sum.Stats.Stalls > 0 {
		t.Errorf("banned %d, closed %v, rejected %d, %d stalls", sum.Banned, sum.LinksClosed, sum.Stats.RejectedBytes, sum.Stats.Stalls)
	}
	if _, ok := victim.title.engine.peers.bans[liar.now().Session]; !ok {
		t.Errorf("the wrong one: %v", victim.title.engine.peers.bans)
	}
}
